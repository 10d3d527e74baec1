"""Where file sinks write: folders are made, and nothing is overwritten unasked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from penstock.query.errors import RunError
from penstock.state.files import create_folder

_HINT = "give another path, or overwrite=True if what is there may go"


def absolute(path: Path) -> Path:
    """The same place, whatever the working directory is later."""
    return Path(os.path.abspath(path))


def check_file(path: Path, overwrite: bool) -> None:
    """Raises unless an output file may begin here."""
    if path.is_dir():
        raise RunError(f"cannot write '{path}': it is a folder; give the path of a file")
    if not overwrite and path.exists() and path.stat().st_size:
        raise RunError(f"'{path}' exists and is not empty: {_HINT}")


def prepare_file(path: Path, overwrite: bool) -> None:
    """Makes way for one output file."""
    check_file(path, overwrite)
    make_folder(path.parent)


def check_folder(path: Path, overwrite: bool) -> None:
    """Raises unless output files may begin in this folder."""
    if path.exists() and not path.is_dir():
        raise RunError(f"cannot write into '{path}': it is a file; give the path of a folder")
    if not overwrite and path.is_dir() and any(not file.name.startswith(".") for file in path.iterdir()):
        raise RunError(f"folder '{path}' is not empty: {_HINT}")


def prepare_folder(path: Path, patterns: Iterable[str], overwrite: bool) -> None:
    """Makes way for output files in a folder. Overwriting removes what matches a pattern, nothing else."""
    check_folder(path, overwrite)
    make_folder(path)
    for pattern in patterns:
        for file in [*path.glob(pattern), *path.glob(f".{pattern}.tmp")]:
            file.unlink()


def make_folder(path: Path) -> None:
    """Makes a folder and those that it is in, if they are not there; their names are on disk then."""
    try:
        create_folder(path)
        path.mkdir(exist_ok=True)  # raises where a file is
    except OSError as error:
        raise RunError(f"cannot make folder '{path}': {error}") from None
