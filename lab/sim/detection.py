"""Parallel detection in virtual time: the real splitter deals selections out, instances work on every
event that they hold, and an event leaves the queue when the last of them has acknowledged it.

No queueing formula is in here. An instance takes events in the order of the stream; what an event costs
it is the number of comparisons that its open selections ask for. So one event is in service at many
instances at once, work that was given away stays where it is until its selections close, and a new
instance begins with none: what a formula for c servers does not know.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numba
import numpy as np
from numpy.typing import NDArray

from lab.sim.detection_control import Controller, Frame
from penstock.cep.selections.selections import EventBatch, Ints
from penstock.cep.selections.splitter import SelectionSplitter
from penstock.scaling.adaptation import Act, Command, Fleet

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DetectionLoad:
    """A stream and what it asks of a detector that compares: every ``compared`` event is compared with
    all ``listed`` events before it in each selection that holds it."""

    events: EventBatch
    listed: NDArray[np.bool_]
    compared: NDArray[np.bool_]
    comparison_s: float = 1.0  # what one comparison costs

    @property
    def times_s(self) -> Floats:
        return self.events.times / 1e6


@dataclass(frozen=True)
class DegreeAt:
    """The three degrees from a time on, and how many instances took up a place."""

    at_s: float
    planned: int
    requested: int
    observed: int
    alive: int


@dataclass
class DetectionOutcome:
    """What happened to each event, and what the fleet did."""

    arrived_s: Floats
    acknowledged_s: Floats  # when the last holder was done; the arrival if nobody held it
    work_s: Floats  # over all instances
    most_open: int
    degrees: list[DegreeAt] = field(default_factory=list)
    commands: list[tuple[float, Command]] = field(default_factory=list)


def simulate_detection(
    load: DetectionLoad, splitter: SelectionSplitter, controller: Controller, degree: int
) -> DetectionOutcome:
    """Runs the whole stream, from an empty zone and ``degree`` instances on."""
    return _Run(load, splitter, controller, degree).run()


class _Run:
    def __init__(
        self, load: DetectionLoad, splitter: SelectionSplitter, controller: Controller, degree: int
    ) -> None:
        self._load, self._splitter, self._controller = load, splitter, controller
        self._times = load.times_s
        count = len(self._times)
        self._outcome = DetectionOutcome(self._times, self._times.copy(), np.zeros(count), 0)
        self._fleet = Fleet.of(degree)
        self._ranks: Ints = np.cumsum(load.listed, dtype=np.int64)  # listed events up to and including each
        self._grow(64)
        for number in self._fleet.registered:
            splitter.register(number)
        self._note(0.0)

    def run(self) -> DetectionOutcome:
        done, now_s = 0, 0.0
        end_s = float(self._times[-1])
        while done < len(self._times):
            until_s = min(self._controller.next_s(now_s), end_s)
            if self._fleet.next_due_s is not None:
                until_s = min(until_s, self._fleet.next_due_s)
            until_s = max(until_s, now_s)
            stop = int(np.searchsorted(self._times, until_s, side="right"))
            before_s = np.maximum(self._free_s - now_s, 0.0)
            self._added_s[:] = 0.0
            self._process(done, stop)
            busy_s = before_s + self._added_s - np.maximum(self._free_s - until_s, 0.0)
            self._adapt(done, stop, now_s, until_s, busy_s)
            done, now_s = stop, until_s
        return self._outcome

    def _process(self, first: int, stop: int) -> None:
        if stop == first:
            return
        events = self._load.events
        part = EventBatch(
            events.first + first,
            events.times[first:stop],
            {name: column[first:stop] for name, column in events.columns.items()},
        )
        dealt = self._splitter.split(part)
        cuts = dealt.cuts
        alive = np.array([one.number for one in self._fleet.instances], np.int64)
        most = _work(
            self._times[first:stop],
            self._load.compared[first:stop],
            self._ranks[first:stop],
            self._load.comparison_s,
            alive,
            cuts.starts - part.first,
            dealt.opened_by,
            cuts.stops - part.first,
            dealt.closed_by,
            self._ranks[dealt.closed_starts - events.first],
            self._open,
            self._rank_sums,
            self._free_s,
            self._added_s,
            self._outcome.acknowledged_s[first:stop],
            self._outcome.work_s[first:stop],
        )
        self._outcome.most_open = max(self._outcome.most_open, most)

    def _adapt(self, first: int, stop: int, since_s: float, now_s: float, busy_s: Floats) -> None:
        drained = [
            one.number
            for one in self._fleet.instances
            if self._open[one.number] == 0 and self._free_s[one.number] <= now_s
        ]
        fleet, commands = self._fleet.advance(now_s, drained)
        registered = np.array(self._fleet.registered, np.int64)
        arrived = self._times[first:stop][self._load.compared[first:stop]]
        length_s = max(now_s - since_s, 1e-9)
        frame = Frame(since_s, now_s, arrived, busy_s[registered] / length_s, fleet.planned)
        wanted = self._controller.plan(frame)
        if wanted is not None and wanted != fleet.planned:
            fleet, more = fleet.request(wanted, now_s, self._controller.horizon_s)
            commands += more
        if fleet != self._fleet:
            self._fleet = fleet
            self._obey(commands, now_s)
            self._note(now_s)

    def _obey(self, commands: tuple[Command, ...], now_s: float) -> None:
        for command in commands:
            self._outcome.commands.append((now_s, command))
            if command.instance >= len(self._open):
                self._grow(2 * command.instance)
            if command.act is Act.REGISTER:
                self._splitter.register(command.instance)
            elif command.act is Act.UNREGISTER:
                self._splitter.unregister(command.instance)

    def _note(self, now_s: float) -> None:
        fleet = self._fleet
        self._outcome.degrees.append(
            DegreeAt(now_s, fleet.planned, fleet.requested, fleet.observed, fleet.alive)
        )

    def _grow(self, size: int) -> None:
        """Room for so many instances."""
        for name, kind in (
            ("_open", np.int64),
            ("_rank_sums", np.int64),
            ("_free_s", np.float64),
            ("_added_s", np.float64),
        ):
            kept = getattr(self, name, np.zeros(0, kind))
            setattr(self, name, np.concatenate((kept, np.zeros(size - len(kept), kind))))

    _open: Ints  # selections by instance
    _rank_sums: Ints  # of the ranks at which those began
    _free_s: Floats  # when the instance will have done all it has been given
    _added_s: Floats  # work given to it in this frame


@numba.njit(
    "int64(float64[::1], boolean[::1], int64[::1], float64" + 8 * ", int64[::1]" + 4 * ", float64[::1]" + ")",
    cache=True,
    nogil=True,
)
def _work(
    times: Floats,
    compared: NDArray[np.bool_],
    ranks: Ints,
    comparison_s: float,
    alive: Ints,
    starts: Ints,
    opened_by: Ints,
    stops: Ints,
    closed_by: Ints,
    closed_ranks: Ints,
    is_open: Ints,
    rank_sums: Ints,
    free_s: Floats,
    added_s: Floats,
    acknowledged_s: Floats,
    work_s: Floats,
) -> int:
    """Event after event: what closes is closed, what opens is opened, and whoever holds the event works
    on it.

    Comparisons of one event in one selection are its rank less that of the selection's first event, so
    an instance needs its number of open selections and the sum of those ranks only.
    """
    opened, closed, most = 0, 0, 0
    for k in range(len(times)):
        while closed < len(stops) and stops[closed] <= k:
            is_open[closed_by[closed]] -= 1
            rank_sums[closed_by[closed]] -= closed_ranks[closed]
            closed += 1
        while opened < len(starts) and starts[opened] <= k:
            is_open[opened_by[opened]] += 1
            rank_sums[opened_by[opened]] += ranks[starts[opened]]
            opened += 1
        total = 0
        for i in alive:
            if is_open[i] == 0:
                continue
            total += is_open[i]
            begins = max(times[k], free_s[i])
            if compared[k]:
                cost = comparison_s * (is_open[i] * ranks[k] - rank_sums[i])
                free_s[i] = begins + cost
                added_s[i] += cost
                work_s[k] += cost
                begins += cost
            acknowledged_s[k] = max(acknowledged_s[k], begins)
        most = max(most, total)
    # what closes behind the last event
    while closed < len(stops):
        is_open[closed_by[closed]] -= 1
        rank_sums[closed_by[closed]] -= closed_ranks[closed]
        closed += 1
    return most
