"""Custom steps: those whose operator is defined in a package above this one, such as the parts of a
parallel detector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from penstock.query.graph import KINDS

if TYPE_CHECKING:
    from penstock.operators.run.base import Build, Operator


class CustomSpec(ABC):
    """What such a step does: it says which columns it reads, and builds its operator."""

    #: The kind of operator in a word, for metrics.
    kind: ClassVar[str]
    #: The columns that its events are brought together by, all of them if there are none; None: it takes
    #: events wherever they are.
    keys: ClassVar[tuple[str, ...] | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        KINDS[cls] = cls.kind

    @abstractmethod
    def needs(self, index: int, visible: frozenset[str]) -> set[str]:
        """The columns that it reads of input ``index``, Penstock's own included."""

    @abstractmethod
    def build(self, build: Build) -> Operator:
        """Its operator, new for every run."""
