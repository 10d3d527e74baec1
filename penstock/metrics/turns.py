"""Every turn of a run, one by one: it tells what means cannot, such as what the closing of a window costs."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from penstock.metrics.operators import OperatorCounters


class TurnRecord(NamedTuple):
    """One turn of an operator."""

    began_ns: int
    took_ns: int
    taken: int  # events
    emitted: int  # events, on its main output


class OutputCount(Protocol):
    """An output, which counts what it was given."""

    @property
    def written(self) -> int: ...


class Logged(Protocol):
    """An operator, as far as the log looks at it."""

    @property
    def id(self) -> str: ...

    @property
    def out(self) -> OutputCount | None: ...


class TurnLog:
    """Keeps the turns of each operator, in order; of several instances of one step, all together.

    An entry takes some hundred bytes and some hundred nanoseconds: for runs of seconds.
    """

    def __init__(self) -> None:
        self.turns: dict[str, list[TurnRecord]] = {}

    def counters(self, operator: Logged) -> OperatorCounters:
        """Counters for an operator that also tell the log of its turns."""
        return _TellingCounters(operator, self.turns.setdefault(operator.id, []))


class _TellingCounters(OperatorCounters):
    __slots__ = ("_emitted", "_operator", "_turns")

    def __init__(self, operator: Logged, turns: list[TurnRecord]) -> None:
        super().__init__()
        self._operator, self._turns, self._emitted = operator, turns, 0

    def record_turn(self, began_ns: int, ended_ns: int, taken: int, ready_since_ns: int = 0) -> None:
        super().record_turn(began_ns, ended_ns, taken, ready_since_ns)
        out = self._operator.out
        written = out.written if out is not None else 0
        self._turns.append(TurnRecord(began_ns, ended_ns - began_ns, taken, written - self._emitted))
        self._emitted = written
