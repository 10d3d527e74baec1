"""What the package brings compiled is used where it is safe and fits, and never needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.compiled import ahead
from penstock.compiled.folder import KernelFolder

_ROOT = Path(__file__).parent.parent.parent
_MB = 1 << 20
_SCRIPT = """
import logging
from pathlib import Path
import numpy as np
from penstock.compiled import ahead, cache
logging.disable()
ahead._FOLDER = Path({folder!r})
from penstock.routing.router import TwoTierRouter
split = TwoTierRouter((1, 0), 2).split(np.array([0, 1, 3, 2]))
print(split.order.tolist(), cache.counts.compiled, cache.counts.loaded)
"""


def run(folder: Path, cache: Path, **variables: str) -> str:
    """What a process says that needs one function of fixed types."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(folder=str(folder))],
        env={**os.environ, "PENSTOCK_CACHE": str(cache), **variables},
        capture_output=True,
        text=True,
        check=True,
        cwd=_ROOT,
    )
    return done.stdout.strip()


def test_what_is_made_beforehand_is_loaded_where_it_is_safe(tmp_path: Path) -> None:
    folder = tmp_path / "ahead"
    making = {ahead._MAKING: "1", **ahead.compiling_for()}
    assert run(folder, tmp_path / "none", **making) == "[1, 2, 0, 3] 1 0"
    assert run(folder, tmp_path / "one") == "[1, 2, 0, 3] 0 1"
    assert run(folder, tmp_path / "two", **{ahead.OFF_VARIABLE: "1"}) == "[1, 2, 0, 3] 1 0"
    folder.chmod(0o777)  # others may write: as if it were not there
    assert run(folder, tmp_path / "three") == "[1, 2, 0, 3] 1 0"


def test_another_owner_than_that_of_the_source_is_not_trusted(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=f"belongs to user {os.geteuid()}"):
        KernelFolder(tmp_path / "kernels", _MB, owner=os.geteuid() + 1)


def test_every_function_of_fixed_types_is_found() -> None:
    declaring = {
        file.relative_to(_ROOT)
        for file in (_ROOT / "penstock").rglob("*.py")
        if "\n@fixed(" in file.read_text()
    }
    assert {Path(*module.split(".")).with_suffix(".py") for module in ahead.declaring_modules()} == declaring
    assert Path("penstock/scheduling/dispatch/machine.py") in declaring
