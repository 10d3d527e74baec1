"""Adaptation: which instances are deployed, registered, unregistered and reused, as the degree changes
(buffer limits V-D)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum

from penstock.query.errors import PenstockError


class InstancePhase(Enum):
    """Where an instance is in its life."""

    DEPLOYING = "deploying"  # asked for, there at ``due_s``
    REGISTERED = "registered"  # gets selections
    LEAVING = "leaving"  # still gets selections, unregistered at ``due_s``
    DRAINING = "draining"  # gets no more, works on what it has


@dataclass(frozen=True)
class PlannedInstance:
    number: int
    phase: InstancePhase
    due_s: float = 0.0


class Act(Enum):
    """What the runtime has to do with an instance."""

    DEPLOY = "deploy"
    REGISTER = "register"
    UNREGISTER = "unregister"
    SHUT_DOWN = "shut_down"


@dataclass(frozen=True)
class Command:
    act: Act
    instance: int


@dataclass(frozen=True)
class Fleet:
    """All instances of one detector.

    Three degrees are kept apart: *planned* is what was calculated last; *requested* what the fleet will be
    once everything that is under way has happened; *observed* what is registered with the splitter now.
    Invariant: at least one instance is registered, and requested equals planned after every ``request``.
    """

    instances: tuple[PlannedInstance, ...]
    planned: int
    next_number: int

    @classmethod
    def of(cls, degree: int) -> Fleet:
        """A fleet that is there from the start."""
        if degree < 1:
            raise PenstockError(f"a detector needs at least one instance: got degree {degree}")
        return cls(
            tuple(PlannedInstance(number, InstancePhase.REGISTERED) for number in range(degree)),
            degree,
            degree,
        )

    @property
    def requested(self) -> int:
        return len(self._in(InstancePhase.REGISTERED, InstancePhase.DEPLOYING))

    @property
    def observed(self) -> int:
        return len(self.registered)

    @property
    def registered(self) -> tuple[int, ...]:
        """The numbers of those that get selections."""
        return tuple(one.number for one in self._in(InstancePhase.REGISTERED, InstancePhase.LEAVING))

    @property
    def alive(self) -> int:
        """Instances that take up a place: all but those that are still being deployed."""
        return len(self._in(InstancePhase.REGISTERED, InstancePhase.LEAVING, InstancePhase.DRAINING))

    def request(self, degree: int, now_s: float, horizon_s: float) -> tuple[Fleet, tuple[Command, ...]]:
        """A newly calculated degree. Fewer: the difference leaves in ``horizon_s``. More: first those that
        are leaving stay, then those that drain are registered again, and only the rest is deployed."""
        if degree < 1:
            raise PenstockError(f"a detector needs at least one instance: got degree {degree}")
        changed = {one.number: one for one in self.instances}
        commands: list[Command] = []
        missing = degree - self.requested
        next_number = self.next_number
        for one in self._in(InstancePhase.LEAVING)[: max(missing, 0)]:
            changed[one.number] = PlannedInstance(one.number, InstancePhase.REGISTERED)
            missing -= 1
        # the one that was unregistered last has most left to do and will be there longest anyhow
        for one in self._in(InstancePhase.DRAINING)[::-1][: max(missing, 0)]:
            changed[one.number] = PlannedInstance(one.number, InstancePhase.REGISTERED)
            commands.append(Command(Act.REGISTER, one.number))
            missing -= 1
        for _ in range(max(missing, 0)):
            changed[next_number] = PlannedInstance(next_number, InstancePhase.DEPLOYING, now_s + horizon_s)
            commands.append(Command(Act.DEPLOY, next_number))
            next_number += 1
        # those that are not there yet need not come; then the newest leave: they hold the fewest selections
        surplus = max(-missing, 0)
        for one in self._in(InstancePhase.DEPLOYING)[::-1][:surplus]:
            del changed[one.number]
            commands.append(Command(Act.SHUT_DOWN, one.number))
            surplus -= 1
        for one in sorted(self._in(InstancePhase.REGISTERED), key=lambda one: -one.number)[:surplus]:
            changed[one.number] = PlannedInstance(one.number, InstancePhase.LEAVING, now_s + horizon_s)
        fleet = replace(self, instances=tuple(changed.values()), planned=degree, next_number=next_number)
        return fleet, tuple(commands)

    def advance(self, now_s: float, drained: Collection[int] = ()) -> tuple[Fleet, tuple[Command, ...]]:
        """Time has passed: what is due happens, and those of ``drained`` that were draining shut down.

        The runtime carries the commands out; a deployed instance is registered when its time has come.
        """
        kept: list[PlannedInstance] = []
        commands: list[Command] = []
        for one in self.instances:
            if one.phase is InstancePhase.DEPLOYING and one.due_s <= now_s:
                kept.append(PlannedInstance(one.number, InstancePhase.REGISTERED))
                commands.append(Command(Act.REGISTER, one.number))
            elif one.phase is InstancePhase.LEAVING and one.due_s <= now_s:
                kept.append(PlannedInstance(one.number, InstancePhase.DRAINING))
                commands.append(Command(Act.UNREGISTER, one.number))
            elif one.phase is InstancePhase.DRAINING and one.number in drained:
                commands.append(Command(Act.SHUT_DOWN, one.number))
            else:
                kept.append(one)
        return replace(self, instances=tuple(kept)), tuple(commands)

    @property
    def next_due_s(self) -> float | None:
        """When ``advance`` will have something to do by itself."""
        due = [one.due_s for one in self._in(InstancePhase.DEPLOYING, InstancePhase.LEAVING)]
        return min(due) if due else None

    def _in(self, *phases: InstancePhase) -> list[PlannedInstance]:
        return [one for one in self.instances if one.phase in phases]
