"""What a sink has put into files, as the manifest has it: looked for, read again, and gone back to.

The same code serves a run that goes on and whoever looks at a checkpoint without its app.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Delivery(ABC):
    """The output of one sink after a batch. ``batch`` is always the first one that had not counted then.

    What the output has beyond it, of that batch or of later ones, is no mistake: it never counted.
    """

    kind: str
    path: str  # absolute

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether nothing was delivered yet."""

    @property
    @abstractmethod
    def amount(self) -> str:
        """How much it is, in words."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """As JSON has it."""

    @abstractmethod
    def check(self, batch: int) -> str | None:
        """What of it is missing or another, by names and sizes, in words; None: all is there."""

    @abstractmethod
    def verify(self, batch: int) -> str | None:
        """The same, by reading everything that was delivered."""

    @abstractmethod
    def roll_back(self, batch: int) -> None:
        """Removes what is there beyond it. Only what has passed ``check`` may be rolled back, and only by
        who holds the lock of its target."""

    def is_at(self, path: Path) -> bool:
        """Whether that is the same place, though maybe under another name."""
        here = Path(self.path)
        return here == path or (here.exists() and path.exists() and here.samefile(path))
