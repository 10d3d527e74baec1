"""A world in which an adversary decides everything that threads and time decide in a real run.

Operators, feeders, a requester and threads act one event at a time. Whatever is put into a queue is first on
its way, for as long as the adversary likes, and may be overtaken by anything: that is at least as bad as
any delay of a real thread between two of its instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from penstock.binding.installation import Installation
from penstock.binding.tasks import Action, BlockTask, Rebind, TaskQueue

Make = Callable[..., Installation]
FEEDER = -1  # the writer of an edge that comes from outside


class ProtocolError(AssertionError):
    """Something happened that must not, whatever the interleaving."""


@dataclass(frozen=True)
class Scenario:
    """What happens, but not in which order."""

    threads: int
    binding: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]  # (writer or FEEDER, reader); a writer's number is the smaller
    blocks: int  # that each feeder sends
    requests: tuple[tuple[int, ...], ...] = ()
    burst: int = 1  # requests that come at once
    choices: tuple[int, ...] = ()  # what the adversary picks at first
    seed: int = 0  # of what it picks then
    priorities: tuple[int, ...] = (0,)


Event = tuple[str, int]  # what happens next, and to whom

#: Turns are long, so that others come in between, and rebinds come all along and not at the start only.
_PACE = {"land": 1.0, "step": 1.0, "feed": 0.3, "finish": 0.1, "request": 0.1}


@dataclass
class World:
    """One run of a scenario. ``events`` are what can happen now; ``fire`` lets one happen."""

    scenario: Scenario
    make: Make
    way: list[tuple[int, BlockTask | Rebind]] = field(default_factory=list)  # (queue, what is on its way)
    trace: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        one = self.scenario
        numbers: Iterator[int] = iter(range(one.threads))
        self.machine = self.make(
            [reader for _, reader in one.edges],
            one.binding,
            one.threads,
            lambda: DelayedQueue(self, next(numbers)),
        )
        self.inside: dict[int, int] = {}  # operator → the thread that runs it
        self.running: dict[int, BlockTask] = {}  # thread → its task
        self.waiting: set[int] = set()  # threads that were told to wait
        self.processed: list[list[int]] = [[] for _ in one.edges]
        self.sent = [0] * len(one.edges)
        self.fed = {edge: 0 for edge, (writer, _) in enumerate(one.edges) if writer == FEEDER}
        self.requests = list(one.requests)
        self.waits = 0

    def events(self) -> list[Event]:
        """All that can happen now. A thread with nothing in its queue only looks once at a barrier."""
        found: list[Event] = [("land", position) for position in range(len(self.way))]
        found += [("feed", edge) for edge, count in self.fed.items() if count < self.scenario.blocks]
        if self.requests:
            found.append(("request", 0))
        for thread in range(self.scenario.threads):
            if thread in self.running:
                found.append(("finish", thread))
            elif self.can_step(thread):
                found.append(("step", thread))
        return found

    def can_step(self, thread: int) -> bool:
        is_called = getattr(self.machine, "phase", None) is not None and self.machine.phase.name != "RUNNING"  # type: ignore[attr-defined]
        return thread not in self.waiting and (is_called or len(self.machine.queues[thread]) > 0)

    def fire(self, event: Event) -> None:
        what, number = event
        self.trace.append(f"{what} {number}")
        getattr(self, f"_{what}")(number)

    def run(self) -> None:
        """Follows the adversary's choices, then its moods, then everyone in turn until nothing can happen."""
        for choice in self.scenario.choices:
            events = self.events()
            if not events:
                break
            self.fire(events[choice % len(events)])
        self._run_moody(Random(self.scenario.seed))
        for count in range(100_000):
            events = self.events()
            if not events:
                self.check_end()
                return
            self.fire(events[count % len(events)])
        raise ProtocolError("it does not come to an end")

    def _run_moody(self, random: Random, steps: int = 200) -> None:
        """Some actors are a hundred times slower than others, and who is changes now and then."""
        moods: dict[Event, float] = {}
        for count in range(steps):
            if count % 50 == 0:
                moods.clear()
            if not (events := self.events()):
                return
            for event in events:
                moods.setdefault(event, _PACE[event[0]] * 10 ** random.uniform(-2, 0))
            weights = [moods[event] for event in events]
            self.fire(random.choices(events, weights)[0])

    def check_end(self) -> None:
        """Nothing can happen any more: is everything done?"""
        for edge, processed in enumerate(self.processed):
            if processed != list(range(self.sent[edge])):
                raise ProtocolError(f"edge {edge}: {self.sent[edge]} sent, {processed} processed")
        if self.machine.parked or any(len(queue) for queue in self.machine.queues):
            raise ProtocolError("something is left in a queue or parked")
        if self.waiting or self.running:
            raise ProtocolError(f"threads {sorted(self.waiting)} wait for ever")
        if self.machine.owners != self.machine.requested:
            raise ProtocolError(f"owners {self.machine.owners}, requested {self.machine.requested}")

    def fingerprint(self) -> Any:
        """Worlds that are equal in this go on alike."""
        machine = self.machine
        return (
            tuple(sorted(self.way)),
            tuple(self.running.items()),
            tuple(sorted(self.fed.items())),
            len(self.requests),
            tuple(tuple(machine.owners)),
            tuple(machine.requested),
            tuple(tuple(entry[3] for entry in sorted(queue._heap)) for queue in machine.queues),
            tuple((line.sent, line.done, tuple(sorted(line.parked))) for line in machine._lines),
            tuple(getattr(machine, "_stored", ())),
            getattr(machine, "phase", None),
            tuple(sorted(getattr(machine, "_there", ()))),
            getattr(machine, "_is_outdated", None),
            tuple(sorted(self.waiting)),
        )

    # -- the events ------------------------------------------------------------------------------

    def _land(self, position: int) -> None:
        queue, task = self.way.pop(position)
        TaskQueue.put(self.machine.queues[queue], task)

    def _feed(self, edge: int) -> None:
        self.fed[edge] += 1
        self._send(edge)

    def _request(self, _: int) -> None:
        for _ in range(min(self.scenario.burst, len(self.requests))):
            self.machine.request(self.requests.pop(0), 0)

    def _step(self, thread: int) -> None:
        step = self.machine.step(thread, 0)
        if step.action is Action.WAIT:
            self.waits += 1
            self.waiting.add(thread)
        if step.action is not Action.PROCESS:
            return
        assert isinstance(step.task, BlockTask)
        operator, edge, sequence = step.task[:3]
        if operator in self.inside:
            raise ProtocolError(f"threads {self.inside[operator]} and {thread} are both inside {operator}")
        if sequence != len(self.processed[edge]):
            raise ProtocolError(f"edge {edge}: {sequence} comes after {self.processed[edge]}")
        self.inside[operator] = thread
        self.running[thread] = step.task
        self.processed[edge].append(sequence)

    def _finish(self, thread: int) -> None:
        task = self.running.pop(thread)
        for edge, (writer, _) in enumerate(self.scenario.edges):
            if writer == task.operator:
                self._send(edge)
        self.machine.finish(thread, task, 0)
        del self.inside[task.operator]

    def _send(self, edge: int) -> None:
        priorities = self.scenario.priorities
        self.machine.send(edge, None, priorities[self.sent[edge] % len(priorities)])
        self.sent[edge] += 1


class DelayedQueue(TaskQueue):
    """Gives whatever is put to the world, which lets it land when the adversary says so."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__()
        self._world = world
        self._number = number

    def put(self, task: BlockTask | Rebind) -> None:
        self._world.way.append((self._number, task))

    def wake(self) -> None:
        # one queue may be shared, then nobody ever waits
        self._world.waiting.discard(self._number)


def run(scenario: Scenario, make: Make) -> World:
    """Runs a scenario to its end; raises a violation with what led to it."""
    world = World(scenario, make)
    try:
        world.run()
    except ProtocolError as violation:
        raise ProtocolError(f"{violation}\n{scenario}\n{' · '.join(world.trace)}") from None
    return world


def breaks(scenario: Scenario, make: Make) -> bool:
    """Whether the scenario catches the machine at something wrong."""
    try:
        World(scenario, make).run()
    except ProtocolError:
        return True
    return False


def chain(threads: int, operators: int, blocks: int, **rest: Any) -> Scenario:
    """A feeder and operators one behind the other, dealt out to the threads in turn."""
    edges: Sequence[tuple[int, int]] = [(reader - 1, reader) for reader in range(operators)]
    binding = tuple(operator % threads for operator in range(operators))
    return Scenario(threads, binding, tuple(edges), blocks, **rest)
