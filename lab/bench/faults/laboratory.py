"""The laboratory: rounds one after the other until the time is over, and what they have led to."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.bench.faults.app import SINKS, on_node
from lab.bench.faults.inputs import FORMATS, write_inputs
from lab.bench.faults.outputs import Rows, counted
from lab.bench.faults.run import HungError
from lab.bench.faults.table import Outcome, Table
from lab.bench.faults.unprotected import Protection
from lab.bench.faults.world import StuckError, World
from lab.bench.measuring.report import progress

_START_S = 15.0  # until the first run has shown it


@dataclass(frozen=True)
class RoundKind:
    """A kind of round."""

    name: str
    play: Callable[[World], None]
    weight: int = 1  # how often it is drawn


@dataclass
class Laboratory:
    """Plays rounds in a folder, each by a seed of its own, so that one can be played again alone."""

    folder: Path
    seed: str
    table: Table = field(default_factory=Table)
    rounds: list[World] = field(default_factory=list)
    lost: dict[Protection, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._start_s = _START_S
        self._lasted: dict[str, float] = {}
        self.expected = expected_rows(self.folder / "node")

    def play_all(self, first: Sequence[RoundKind], then: Sequence[RoundKind], until_s: float) -> None:
        """The first rounds in order, however long they take; then drawn ones that end by that moment."""
        choose = random.Random(self.seed)
        weights = [kind.weight for kind in then]
        for number in range(1_000_000):
            kind = first[number] if number < len(first) else choose.choices(then, weights)[0]
            left_s = until_s - time.monotonic()
            longest_s = max(self._lasted.values(), default=0.0)  # for a kind that was not played yet
            if number >= len(first) and left_s < self._lasted.get(kind.name, longest_s):
                return
            self.play(kind, f"{self.seed}/{kind.name}/{number}")

    def play_until(self, kind: RoundKind, is_enough: Callable[[], bool]) -> None:
        """More rounds of one kind, however long they take."""
        while not is_enough():
            self.play(kind, f"{self.seed}/{kind.name}/{len(self.rounds)}")

    @property
    def kills(self) -> int:
        """How often something was killed in all rounds."""
        return self.total(lambda world: world.kills)

    def play(self, kind: RoundKind, seed: str) -> World:
        """One round."""
        began = time.monotonic()
        folder = self.folder / f"round-{len(self.rounds):03}"
        world = World(folder, random.Random(seed), self.expected, self._start_s)
        try:
            kind.play(world)
            world.compare()
        except (HungError, StuckError) as error:
            outcome = Outcome.HUNG if isinstance(error, HungError) else Outcome.STUCK
            (world.faults[-1] if world.faults else world.fault(kind.name)).settle(outcome)
            world.problems.append(f"{outcome}: {error}")
        finally:
            world.stop()
        for fault in world.faults:
            self.table.add(fault.name, fault.outcome)
        self.rounds.append(world)
        self._start_s = world.start_s
        self._lasted[kind.name] = time.monotonic() - began
        told = ", ".join(f"{fault.name}: {fault.outcome}" for fault in world.faults) or "right"
        progress(f"faults: {kind.name} '{seed}', {self._lasted[kind.name]:.0f} s: {told}")
        for problem in world.problems:
            progress(f"faults: {problem}; see '{folder}'")
        if not world.problems:
            shutil.rmtree(folder, ignore_errors=True)
        world.problems = [f"{kind.name} '{seed}': {problem}" for problem in world.problems]
        return world

    def lose(self, protection: Protection, play: Callable[[World], int]) -> None:
        """A round without a protection; what it loses is noted, and is no problem."""
        world = World(self.folder / "unprotected", random.Random(self.seed), self.expected, self._start_s)
        try:
            self.lost[protection] = play(world)
        except HungError:
            self.lost[protection] = 0
        finally:
            world.stop()
        progress(f"faults: without {protection} {self.lost[protection]} are lost")

    def total(self, count: Callable[[World], int]) -> int:
        """The sum over all rounds."""
        return sum(count(world) for world in self.rounds)

    def all_of(self, texts: Callable[[World], list[str]]) -> list[str]:
        """What all rounds have told."""
        return [text for world in self.rounds for text in texts(world)]


def expected_rows(folder: Path) -> Mapping[str, Rows]:
    """Every query's rows, of an undisturbed run in one process."""
    write_inputs(folder / "input", FORMATS[0])
    rows = on_node(folder / "input", FORMATS[0])
    shutil.rmtree(folder)
    return {query: counted(rows[query], kind) for query, kind in SINKS.items()}
