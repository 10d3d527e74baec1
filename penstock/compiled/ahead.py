"""Machine code made ready beforehand: that of functions whose types are fixed, in a folder of the package.

It is made for every processor of a kind, not for the one at hand, so that a package built here serves there.
Loading it runs it, so the folder is trusted exactly as far as the package's own source.
"""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numba

from penstock.compiled.folder import KernelCacheError, KernelFolder
from penstock.query.errors import PenstockError

_PACKAGE = Path(__file__).parent.parent
_FOLDER = _PACKAGE / "compiled" / "machine_code"
_LIMIT_BYTES = 64 << 20

#: By architecture: what code is made for, and what a processor must have to run it.
_KINDS = {
    "x86_64": ("x86-64-v2", {"cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}),
    "aarch64": ("generic", set()),
}

#: Set to 1: machine code of the package is not used.
OFF_VARIABLE = "PENSTOCK_WITHOUT_AHEAD"

#: Says that this process makes the folder: its functions are compiled for the kind of processor.
_MAKING = "PENSTOCK_MAKES_AHEAD"


@cache
def portable_machine() -> str:
    """What code that was made beforehand depends on beside its source; empty where there is none."""
    kind, needed = _KINDS.get(platform.machine(), ("", set()))
    features = llvm.get_host_cpu_features()
    if not kind or not all(features.get(feature) for feature in needed):
        return ""
    versions = f"numba {numba.__version__} llvmlite {llvmlite.__version__} {sys.implementation.cache_tag}"
    return f"{sys.platform} {platform.machine()} {kind} {versions}"


@cache
def ahead_folder() -> KernelFolder | None:
    """The folder; None where there is none, or none that is as safe as the source beside it."""
    is_there = is_making() or (_FOLDER.is_dir() and os.environ.get(OFF_VARIABLE) != "1")
    if not portable_machine() or not is_there:
        return None
    try:
        return KernelFolder(_FOLDER, _LIMIT_BYTES, owner=_PACKAGE.stat().st_uid)
    except KernelCacheError:
        return None


def is_making() -> bool:
    """Whether this process fills the folder."""
    return os.environ.get(_MAKING) == "1"


def make() -> int:
    """Fills the folder, in a process of its own; how many functions it has."""
    if not portable_machine():
        return 0
    for file in _FOLDER.glob("*.kernel"):
        file.unlink()  # of an earlier version of the package
    environment = {**os.environ, _MAKING: "1", **compiling_for()}
    done = subprocess.run(
        [sys.executable, "-m", __name__], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PenstockError(f"machine code could not be made ready: {done.stderr.strip().splitlines()[-1]}")
    return int(done.stdout.split()[-1])


def compiling_for() -> dict[str, str]:
    """The variables under which Numba compiles for the kind of processor instead of the one at hand."""
    kind, _ = _KINDS[platform.machine()]
    return {"NUMBA_CPU_NAME": kind, "NUMBA_CPU_FEATURES": ""}


def declaring_modules() -> list[str]:
    """The modules of the package that declare functions of fixed types."""
    return [
        ".".join(file.relative_to(_PACKAGE.parent).with_suffix("").parts)
        for file in sorted(_PACKAGE.rglob("*.py"))
        if "\n@fixed(" in file.read_text(encoding="utf-8")
    ]


def _make_all() -> int:
    from penstock.compiled import fixed

    for module in declaring_modules():
        importlib.import_module(module)
    for function in fixed.ALL:
        function.kernel()
    return len(fixed.ALL)


if __name__ == "__main__":
    sys.stdout.write(f"{_make_all()}\n")  # read by whoever started this process
