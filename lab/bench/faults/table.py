"""The table of faults and their outcomes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """What a fault led to, the best first."""

    HARMLESS = "harmless"  # the run went on, and its rows are right
    RECOVERED = "recovered"  # a later start went on, and its rows are right
    REFUSED = "refused"  # with an error in our words; without the fault it goes on, and its rows are right
    TOLD = "told by verify"  # a run does not read its output again; whoever verifies it hears of the fault
    OTHERS_WORDS = "refused in others' words"
    STUCK = "stuck"  # no start goes on
    HUNG = "hung"
    WRONG = "wrong"


@dataclass
class Table:
    """How often each fault led to what."""

    counts: dict[str, Counter[Outcome]] = field(default_factory=dict)

    def add(self, fault: str, outcome: Outcome) -> None:
        self.counts.setdefault(fault, Counter())[outcome] += 1

    def total(self, outcome: Outcome, of: str = "") -> int:
        """How many faults had the outcome, of those whose names begin so."""
        return sum(counts[outcome] for fault, counts in self.counts.items() if fault.startswith(of))

    def plain(self) -> dict[str, dict[str, int]]:
        return {
            fault: {outcome.value: count for outcome, count in sorted(self.counts[fault].items())}
            for fault in sorted(self.counts)
        }

    def text(self) -> str:
        """For people: a line a fault, a column an outcome."""
        columns = [outcome for outcome in Outcome if self.total(outcome)]
        width = max((len(fault) for fault in self.counts), default=0)
        lines = [" | ".join([" " * width, *columns])]
        for fault in sorted(self.counts):
            cells = [f"{self.counts[fault][column] or '':>{len(column)}}" for column in columns]
            lines.append(" | ".join([f"{fault:<{width}}", *cells]))
        return "\n".join(lines)
