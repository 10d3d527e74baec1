"""When a stream that broke off is started again: after a pause, a stated number of times without progress."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.query.errors import PenstockError

#: Spark waits 10 s for a Python process and tries each task four times before one of these counts.
DEFAULT_RESTARTS = 5
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True)
class Restarts:
    """The restarts of one run. No clock decides: a batch that counts is progress, and all is forgiven."""

    most: int  # in a row, with no batch that counts in between
    total: int = 0
    in_a_row: int = 0

    def __post_init__(self) -> None:
        if type(self.most) is not int or self.most < 0:
            raise PenstockError(
                f"restarts must be a whole number, 0 or more: got {self.most!r}; write e.g. restarts=3, or "
                "restarts=0 for none"
            )

    @property
    def are_used_up(self) -> bool:
        return self.in_a_row >= self.most

    @property
    def pause_s(self) -> float:
        """How long to wait before the restart that was just counted: twice as long each time.

        >>> [Restarts(9, in_a_row=number).pause_s for number in (1, 2, 3, 9)]
        [0.5, 1.0, 2.0, 30.0]
        """
        return min(_FIRST_PAUSE_S * 2.0 ** (self.in_a_row - 1), _LONGEST_PAUSE_S)

    def __str__(self) -> str:
        return (
            f"the run goes on from its last batch in {self.pause_s:g} s, restart {self.in_a_row} of "
            f"{self.most} until a batch counts"
        )

    def one_more(self) -> Restarts:
        return replace(self, total=self.total + 1, in_a_row=self.in_a_row + 1)

    def after_a_batch(self) -> Restarts:
        """A batch has counted."""
        return replace(self, in_a_row=0) if self.in_a_row else self
