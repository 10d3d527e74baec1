"""Where file sinks write: folders are made, and nothing is overwritten unasked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from penstock.query.errors import RunError


def prepare_file(path: Path, overwrite: bool) -> None:
    """Makes way for one output file."""
    if path.is_dir():
        raise RunError(f"cannot write '{path}': it is a folder; give the path of a file")
    if not overwrite and path.exists() and path.stat().st_size:
        raise RunError(f"'{path}' exists and is not empty: give overwrite=True, or another path")
    _make_folder(path.parent)


def prepare_folder(path: Path, patterns: Iterable[str], overwrite: bool) -> None:
    """Makes way for output files in a folder. Overwriting removes what matches a pattern, nothing else."""
    if path.exists() and not path.is_dir():
        raise RunError(f"cannot write into '{path}': it is a file; give the path of a folder")
    _make_folder(path)
    present = [file for file in path.iterdir() if not file.name.startswith(".")]
    if present and not overwrite:
        raise RunError(f"folder '{path}' is not empty: give overwrite=True, or another path")
    for pattern in patterns:
        for file in [*path.glob(pattern), *path.glob(f".{pattern}.tmp")]:
            file.unlink()


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make folder '{path}': {error}") from None
