"""The kernel cache: source becomes machine code once per shape, in this process and on disk.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType, ModuleType
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import ccallback, compiler, registry, serialize, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import nrt

from penstock.compiled.ahead import ahead_folder, is_making, portable_machine
from penstock.compiled.folder import KernelFolder, chosen_limit_bytes, chosen_root
from penstock.compiled.notice import compiling
from penstock.compiled.timing import KernelTimer

#: The raw entry point of a compiled function: checks less and costs less than Numba's dispatcher.
Kernel = Callable[..., Any]

_kernels: dict[tuple[str, str, str], Kernel] = {}
_callbacks: dict[tuple[str, str, str], int] = {}
_compiled: list[Any] = []  # keeps the machine code alive: an entry point and an address do not
_CFunc: Any = ccallback.CFunc
_CompileResult: Any = compiler.CompileResult
_serialize: Any = serialize
_sigutils: Any = sigutils
_njit: Any = numba.njit
_nrt: Any = nrt
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
                kernel = _kernels[key] = _built(
                    name, source, key[2], lambda module: _kernel(_function(name, source, module), signature)
                ).entry_point
    return KernelTimer.wrap(kernel)


def compile_callback(name: str, source: str, signature: Any) -> int:
    """The address of the function ``name`` that ``source`` defines, for kernels that call it by address.

    Its parameters and result are plain numbers. Kept like a kernel.
    """
    key = (name, source, f"callback {signature}")
    with _lock:
        address = _callbacks.get(key)
        if address is None:
            built = _built(
                name, source, key[2], lambda module: _callback(_function(name, source, module), signature)
            )
            wrapper = built.fndesc.llvm_cfunc_wrapper_name
            address = _callbacks[key] = int(built.library.get_pointer_to_function(wrapper))
    return address


@cache
def kernel_folder() -> KernelFolder:
    """Where kernels are kept: a folder of this user's own."""
    return KernelFolder(chosen_root() / f"user-{os.geteuid()}", chosen_limit_bytes())


def compile_fixed(function: Callable[..., Any], signature: Any, options: Mapping[str, Any]) -> Kernel:
    """A function of a module of ours, compiled for ``signature``; called by position only."""
    # The module's own text stands for the function's: constants and functions that it uses are there.
    digest = _file(function.__code__.co_filename).digest
    source = f"from {function.__module__} import {function.__name__}\n# {digest}\n"
    with _lock:
        built = _built(
            function.__name__, source, str(signature), lambda _: _kernel(function, signature, options), True
        )
    kernel: Kernel = built.entry_point
    return kernel


def _built(
    name: str,
    source: str,
    signature: str,
    compiled: Callable[[ModuleType], Any],
    is_fixed: bool = False,
) -> Any:
    """The machine code of a function, from disk if it is there."""
    code = _dependencies(name, source, signature)
    key = f"{_machine()}\n{code}"
    places = [(kernel_folder(), key)]
    if is_fixed and (ahead := ahead_folder()) is not None:
        made_ahead = (ahead, f"{portable_machine()}\n{code}")
        places = [made_ahead] if is_making() else [made_ahead, *places]
    module = ModuleType(f"penstock_kernel_{name}_{hashlib.sha256(key.encode()).hexdigest()}")
    sys.modules[module.__name__] = module  # Numba looks the function's module up by name
    with global_compiler_lock:
        for folder, named in places:
            data = folder.read(named)
            if data is not None:
                built = _loaded(data)
                counts.loaded += 1
                break
        else:
            with compiling(name):
                built = compiled(module)
            counts.compiled += 1
            if not built.library.has_dynamic_globals:  # addresses of this process
                folder.write(named, _serialize.dumps(built._reduce()))
    _compiled.append(built)
    return built


def _kernel(function: Any, signature: Any, options: Mapping[str, Any] = MappingProxyType({})) -> Any:
    options = {"boundscheck": False, "error_model": "numpy", **options}
    dispatcher = _njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
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


def _loaded(data: bytes) -> Any:
    """What Numba's own cache does with what it has read, without all that only compiling needs."""
    context = registry.cpu_target.target_context
    _nrt.rtsys.initialize(context)
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


def _dependencies(name: str, source: str, signature: str) -> str:
    """All that the machine code depends on, but for the machine."""
    imported = [_file(file).digest for file in sorted(_compiled_modules(source))]
    return "\n".join([name, signature, *imported, source])


@dataclass(frozen=True)
class _File:
    """A source file that compiled code may come from."""

    digest: str
    imports: tuple[str, ...]  # modules of ours, if it has compiled functions


_IMPORT = re.compile(r"^(?:from|import) (penstock[\w.]*)", re.MULTILINE)
_COMPILED = re.compile(r"^@(?:numba\.)?(?:njit|part|fixed)\b|^@intrinsic|= intrinsic", re.MULTILINE)


@cache
def _file(path: str) -> _File:
    content = Path(path).read_bytes()
    text = content.decode()
    imports = tuple(_IMPORT.findall(text)) if _COMPILED.search(text) else ()
    return _File(hashlib.sha256(content).hexdigest(), imports)


@cache
def _origin(module: str) -> str | None:
    spec = importlib.util.find_spec(module)
    return None if spec is None else spec.origin


def _compiled_modules(source: str) -> set[str]:
    """The files whose functions and constants end up in the machine code: Numba does not notice when they
    change. What has compiled functions may take constants from what it imports."""
    files: set[str] = set()
    to_read = list(_IMPORT.findall(source))
    while to_read:
        origin = _origin(to_read.pop())
        if origin is not None and origin not in files:
            files.add(origin)
            to_read += _file(origin).imports
    return files
