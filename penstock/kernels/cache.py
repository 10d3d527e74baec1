"""The kernel cache: generated source becomes machine code once per shape, in this process and on disk.

What is kept on disk is named by all that it depends on: the source, the signature, the compiled code that the
source imports. The source itself is never read back: what is executed is the text that was generated here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import os
import pickle
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import ccallback, compiler, registry, serialize, sigutils
from numba.core.compiler_lock import global_compiler_lock

from penstock.kernels.folder import KernelFolder, chosen_limit_bytes, chosen_root
from penstock.kernels.timing import KernelTimer

#: The raw entry point of a compiled function: checks less and costs less than Numba's dispatcher.
Kernel = Callable[..., Any]

#: Called with a kernel's name right before it is compiled, never for one that is on disk already.
on_compile: Callable[[str], None] | None = None

_kernels: dict[tuple[str, str, str], Kernel] = {}
_callbacks: dict[tuple[str, str, str], int] = {}
_compiled: list[Any] = []  # keeps the machine code alive: an entry point and an address do not
_CFunc: Any = ccallback.CFunc
_CompileResult: Any = compiler.CompileResult
_serialize: Any = serialize
_sigutils: Any = sigutils
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
                kernel = _kernels[key] = _built(name, source, key[2], _kernel, signature).entry_point
    return KernelTimer.wrap(kernel)


def compile_callback(name: str, source: str, signature: Any) -> int:
    """The address of the function ``name`` that ``source`` defines, for kernels that call it by address.

    Its parameters and result are plain numbers. Kept like a kernel.
    """
    key = (name, source, f"callback {signature}")
    with _lock:
        address = _callbacks.get(key)
        if address is None:
            built = _built(name, source, key[2], _callback, signature)
            wrapper = built.fndesc.llvm_cfunc_wrapper_name
            address = _callbacks[key] = int(built.library.get_pointer_to_function(wrapper))
    return address


@cache
def kernel_folder() -> KernelFolder:
    """Where kernels are kept: a folder of this user's own."""
    return KernelFolder(chosen_root() / f"user-{os.geteuid()}", chosen_limit_bytes())


def _built(name: str, source: str, signature: str, compiled: Callable[[Any, Any], Any], types: Any) -> Any:
    """The machine code of a function, from disk if it is there."""
    key = _key(name, source, signature)
    module = ModuleType(f"penstock_kernel_{name}_{hashlib.sha256(key.encode()).hexdigest()}")
    sys.modules[module.__name__] = module  # Numba looks the function's module up by name
    folder = kernel_folder()
    with global_compiler_lock:
        built = _loaded(folder.read(key))
        if built is not None:
            counts.loaded += 1
        else:
            if on_compile is not None:
                on_compile(name)
            built = compiled(_function(name, source, module), types)
            counts.compiled += 1
            if not built.library.has_dynamic_globals:  # addresses of this process
                folder.write(key, _serialize.dumps(built._reduce()))
    _compiled.append(built)
    return built


def _kernel(function: Any, signature: Any) -> Any:
    dispatcher: Any = numba.njit(nogil=True, boundscheck=False, error_model="numpy")(function)
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    _compiled.append(dispatcher)
    (built,) = dispatcher.overloads.values()
    return built


def _callback(function: Any, signature: Any) -> Any:
    callback = _CFunc(
        function, _sigutils.normalize_signature(signature), locals={}, options={"error_model": "numpy"}
    )
    return callback._compile_uncached()


def _loaded(data: bytes | None) -> Any:
    """What Numba's own cache does with what it has read."""
    if data is None:
        return None
    context = registry.cpu_target.target_context
    context.refresh()
    return _CompileResult._rebuild(context, *pickle.loads(data))


def _function(name: str, source: str, module: ModuleType) -> Any:
    file = f"<{module.__name__}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # for Numba's errors
    exec(compile(source, file, "exec"), module.__dict__)
    return getattr(module, name)


@cache
def _machine() -> str:
    processor = f"{platform.machine()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return f"{processor} numba {numba.__version__} python {sys.version}"


def _key(name: str, source: str, signature: str) -> str:
    """All that the machine code depends on."""
    files = sorted(_compiled_modules(source))
    imported = [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files]
    return "\n".join([_machine(), name, signature, *imported, source])


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
