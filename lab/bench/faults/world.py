"""The folder of one round: the app is started there, disturbed, started again, and compared at the end."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.bench.faults.app import SINKS, AppStart
from lab.bench.faults.inputs import FORMATS, write_inputs
from lab.bench.faults.outputs import Difference, Rows, differences
from lab.bench.faults.run import AppRun, Ending, Role
from lab.bench.faults.table import Outcome

_TRIES = 3
_BATCH_EVENTS = (45, 60, 110)


class StuckError(Exception):
    """Start after start ends with an error."""


@dataclass
class Fault:
    """Something that was done to a run, and what it led to."""

    name: str
    outcome: Outcome = Outcome.RECOVERED
    is_settled: bool = False  # whatever comes later in the round is not of its doing

    def settle(self, outcome: Outcome) -> None:
        self.outcome, self.is_settled = outcome, True


@dataclass
class World:
    """One round. Everything random is drawn from ``choose``."""

    folder: Path
    choose: random.Random
    expected: Mapping[str, Rows]
    start_s: float  # about how long it takes from a start to the first batch
    faults: list[Fault] = field(default_factory=list)
    kills: int = 0
    starts: int = 0
    wrong_rows: int = 0
    goes_back: bool = False  # whether the folder is set back, so that batches count again
    left_behind: int = 0  # processes that outlived their driver
    second_starts_admitted: int = 0
    problems: list[str] = field(default_factory=list)
    interruptions: list[str] = field(default_factory=list)  # what ended a run that could have gone on
    refusals: list[str] = field(default_factory=list)
    in_others_words: list[str] = field(default_factory=list)
    cleanups: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.environment: dict[str, str] = dict(os.environ)
        self.plan = AppStart(
            str(self.folder / "run"),
            batch_events=self.choose.choice(_BATCH_EVENTS),
            cars_as=self.choose.choice(FORMATS),
        )
        self._runs: list[AppRun] = []
        shutil.rmtree(self.folder, ignore_errors=True)
        self.fill()

    def fill(self) -> None:
        """Makes the folder as it is before the first start."""
        self.plan.root.mkdir(parents=True, exist_ok=True)
        write_inputs(self.plan.root / "input", self.plan.cars_as)

    def use(self, **changes: Any) -> None:
        """Changes what all starts from now on have in common."""
        self.plan = replace(self.plan, **changes)

    # -- runs ------------------------------------------------------------------------------------------------

    def start(self, **changes: Any) -> AppRun:
        """Starts the app with other tasks each time, as the keys of a checkpoint may be shared anew."""
        self.starts += 1
        changes = {"tasks": self.choose.choice((None, None, 1, 2, 3)), **changes}
        run = AppRun(replace(self.plan, **changes), self.folder / f"start-{self.starts:03}", self.environment)
        self._runs.append(run)
        return run

    def to_the_end(self) -> None:
        """Starts the app until it is complete. Raises ``StuckError``."""
        for _ in range(_TRIES):
            run = self.start()
            if self.ended(run) is Ending.COMPLETE:
                return
        raise StuckError(run.last_error)

    def ended(self, run: AppRun) -> Ending:
        """Waits for the end of a run."""
        ending = run.until_ended()
        if ending is Ending.BROKEN and run.last_error not in self.in_others_words:
            self.in_others_words.append(run.last_error)
        return ending

    def kill(self, run: AppRun, role: Role, fault: str) -> Fault | None:
        """Kills processes of a run; None if there were none any more."""
        if not run.lives or not run.kill(role, self.choose.randrange(100)):
            return None
        self.kills += 1
        return self.fault(fault)

    def fault(self, name: str) -> Fault:
        self.faults.append(Fault(name))
        return self.faults[-1]

    def sum_up(self, run: AppRun, of: list[Fault]) -> None:
        """What faults in one run have led to: the last of them has ended it, if it is not complete."""
        ending = self.ended(run)
        for fault in of:
            fault.outcome = Outcome.HARMLESS
        if ending is not Ending.COMPLETE:
            if of:
                of[-1].outcome = Outcome.RECOVERED
                self.interruptions.append(f"{of[-1].name}: {run.last_error}")
            self.to_the_end()

    # -- outcomes --------------------------------------------------------------------------------------------

    def differences(self) -> list[Difference]:
        """Every query whose output is wrong, of a run that is complete."""
        return differences(self.plan.output, self.expected, SINKS)

    def blame(self, faults: list[Fault], differences: list[Difference]) -> None:
        """Notes wrong output; any of the faults may be its cause."""
        self.wrong_rows += sum(difference.rows for difference in differences)
        self.problems += [str(difference) for difference in differences]
        for fault in faults:
            fault.settle(Outcome.WRONG)

    def compare(self) -> None:
        """What all faults are to blame for that are not settled yet."""
        told = Counter(batch for run in self._runs for batch in run.batches)
        again = sorted(batch for batch, count in told.items() if count > 1)
        if again and not self.goes_back:
            self.problems.append(f"batches {again} counted twice")
        found = self.differences()
        if found or (again and not self.goes_back):
            self.blame([f for f in self.faults if not f.is_settled] or [self.fault("undisturbed")], found)

    def stop(self) -> None:
        """Ends what still runs, and takes away what was put up for the round."""
        while self._runs:
            self.left_behind += self._runs.pop().end()
        while self.cleanups:
            self.cleanups.pop()()
