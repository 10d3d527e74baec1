"""A part of a file: what one batch reads of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.connectors.files.journal import InputFile
from penstock.query.errors import RunError


@dataclass(frozen=True)
class FilePart:
    """From ``start`` to before ``stop``, in rows or in bytes of text; None: to its end."""

    path: Path
    start: int = 0
    stop: int | None = None
    file: InputFile | None = None  # as it must still be; None: nobody knows how it was

    def check(self) -> None:
        """Refuses a file that is no longer what it was when the part was cut."""
        change = None if self.file is None else self.file.change()
        if change is not None:
            raise RunError(
                f"file '{self.path}' {change} since it was found: what is left of it cannot be read; put it "
                f"back, and write files under another name until they are whole"
            )
