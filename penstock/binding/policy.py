"""What a binding policy is: a pure function from what was observed to the next operator → thread map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

#: Operator → thread.
Binding = tuple[int, ...]


@dataclass(frozen=True)
class Load:
    """What was observed since the last rebinding."""

    binding: Binding  # as last requested
    work: tuple[float, ...]  # operator → op_comp · tuple_count, in ns
    threads: int

    def __post_init__(self) -> None:
        if len(self.work) != len(self.binding):
            raise ValueError(
                f"{len(self.binding)} operators are bound, but work is given of {len(self.work)}"
            )


class BindingPolicy(Protocol):
    """Decides the binding. ``state`` is what it remembers: ``None`` at first, then what it gave back."""

    @property
    def name(self) -> str: ...

    @property
    def adapts(self) -> bool:
        """Whether ``plan`` is ever worth a call."""
        ...

    def initial(self, kinds: Sequence[str], threads: int) -> Binding:
        """M_0: the binding before anything was observed, from the kinds of the operators alone."""
        ...

    def plan(self, load: Load, state: Any) -> tuple[Binding, Any]:
        """The next binding, and what to remember."""
        ...
