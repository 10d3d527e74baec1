"""The kernel cache: generated source becomes machine code once per shape, in this process and on disk.

A kernel's file is named by what it depends on (its source, its signature, the compiled code it imports), so a
file never changes once it is there and any number of processes can share the folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import llvmlite.binding as llvm
import numba

from penstock.kernels.timing import KernelTimer

#: The raw entry point of a compiled function: checks less and costs less than Numba's dispatcher.
Kernel = Callable[..., Any]

#: Called with a kernel's name right before it is compiled, never for one that is on disk already.
on_compile: Callable[[str], None] | None = None

_kernels: dict[tuple[str, str, str], Kernel] = {}
_callbacks: dict[tuple[str, str, str], Any] = {}
_dispatchers: list[Any] = []  # keeps the machine code alive: an entry point does not
_lock = Lock()  # Numba compiles one function at a time anyway


@dataclass
class KernelCounts:
    """How many kernels this process has compiled, and how many it has loaded from disk."""

    compiled: int = 0
    loaded: int = 0


counts = KernelCounts()


def compile_kernel(name: str, source: str, signature: Any) -> Kernel:
    """The function ``name`` that ``source`` defines, compiled for ``signature``; called by position only.

    ``source`` is a whole module with its own imports. Constants must be parameters: other text, other kernel.
    The first compilation of a shape takes 0.1 to 1 s, loading it from disk some milliseconds.
    """
    key = (name, source, str(signature))
    kernel = _kernels.get(key)
    if kernel is None:
        with _lock:
            kernel = _kernels.get(key)
            if kernel is None:
                kernel = _kernels[key] = _build(name, source, signature)
    return KernelTimer.wrap(kernel)


def compile_callback(name: str, source: str, signature: Any) -> int:
    """The address of the function ``name`` that ``source`` defines, for kernels that call it by address.

    Its parameters and result are plain numbers. Kept like a kernel.
    """
    key = (name, source, f"callback {signature}")
    with _lock:
        callback = _callbacks.get(key)
        if callback is None:
            module, path = _module(name, source, key[2])
            if on_compile is not None and not any(path.parent.glob(f"__pycache__/{path.stem}.*.nbi")):
                on_compile(name)
            callback = numba.cfunc(signature, cache=True, error_model="numpy")(getattr(module, name))
            if callback.cache_hits:
                counts.loaded += 1
            else:
                counts.compiled += 1
            _callbacks[key] = callback
    return int(callback.address or 0)


@cache
def cache_folder() -> Path:
    """Where kernels are kept, for their owner only: one folder per processor, Python and Numba."""
    base = os.environ.get("PENSTOCK_CACHE")
    root = Path(base) if base else Path.home() / ".cache" / "penstock" / "kernels"
    machine = f"{platform.machine()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    versions = f"numba {numba.__version__} python {sys.version}"
    folder = root / hashlib.sha256(f"{machine} {versions}".encode()).hexdigest()[:16]
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def _build(name: str, source: str, signature: Any) -> Kernel:
    module_object, path = _module(name, source, str(signature))
    compiler = numba.njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
    dispatcher: Any = compiler(getattr(module_object, name))
    if on_compile is not None and not any(Path(dispatcher.stats.cache_path).glob(f"{path.stem}.*.nbi")):
        on_compile(name)
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    if dispatcher.stats.cache_hits:
        counts.loaded += 1
    else:
        counts.compiled += 1
    _dispatchers.append(dispatcher)
    (compiled,) = dispatcher.overloads.values()
    entry_point: Kernel = compiled.entry_point
    return entry_point


def _module(name: str, source: str, signature: str) -> tuple[Any, Path]:
    """The module that ``source`` is, from its file in the cache."""
    digest = hashlib.sha256(f"{signature}\n{source}".encode())
    for module in sorted(_compiled_modules(source)):
        digest.update(Path(module).read_bytes())
    path = cache_folder() / f"{name}_{digest.hexdigest()}.py"
    if not path.exists():
        _write(path, source)
    spec = importlib.util.spec_from_file_location(f"penstock_kernel_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module_object = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module_object  # Numba looks the function's module up by name
    spec.loader.exec_module(module_object)
    return module_object, path


def _write(path: Path, source: str) -> None:
    """Writes whole files only, all with the same time: Numba discards machine code older than its source."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(source)
    os.utime(temporary, (0, 0))
    os.replace(temporary, path)


_IMPORT = re.compile(r"^(?:from|import) (penstock[\w.]*)", re.MULTILINE)


def _compiled_modules(source: str) -> set[str]:
    """The files whose compiled functions end up in the kernel: Numba does not notice when they change."""
    found: set[str] = set()
    to_read = [source]
    while to_read:
        for module in _IMPORT.findall(to_read.pop()):
            spec = importlib.util.find_spec(module)
            if spec is None or spec.origin is None or spec.origin in found:
                continue
            text = Path(spec.origin).read_text(encoding="utf-8")
            if "njit" in text:
                found.add(spec.origin)
                to_read.append(text)
    return found
