"""The dispatcher in plain Python, too simple to be wrong.

What the machine keeps up to date event by event, the model looks for among all operators whenever it is
asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.scheduling.dispatch.passes import operators_behind
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.policy import PriorityOrder
from penstock.scheduling.topology import Topology

Turn = tuple[int, int, bool]  # of this operator, with this limit, and whether it leads

NEVER = 1 << 62
SHORT, TOGETHER, HAND_OVER = 6_000_000, 5_000_000, 50_000


@dataclass
class Op:
    """One operator."""

    number: int
    source: bool
    behind: list[Op] = field(default_factory=list)
    readers: list[Op] = field(default_factory=list)
    pending: int = 0
    since: int = 0
    last: int = 0
    given: int = 0
    span: int = 0
    running: bool = False
    leading: bool = False
    blocked: bool = False
    finished: bool = False
    priority: float = 0.0
    taken: float = 0.0
    ticket: int = 0
    look: int = NEVER
    due: int = NEVER
    potential: float = 1.0
    limit: int = 1
    cost: float = 0.0
    least: int = 0
    least_events: int = 1
    known_cost: float = 0.0
    rate: float = 0.0
    steady: bool = False
    follow: bool = False


class Model:
    """Who runs next. ``ops`` may be told what turns have left."""

    def __init__(self, topology: Topology, rules: Rules, workers: int, epoch: int) -> None:
        self.ops = [Op(number, kind == "source") for number, kind in enumerate(topology.kinds)]
        self.rules, self.workers, self.epoch = rules, workers, epoch
        for op, behind, readers in zip(self.ops, operators_behind(topology), topology.children, strict=True):
            op.behind = [self.ops[number] for number in behind]
            op.readers = [self.ops[number] for number in dict.fromkeys(readers)]
        self.stays = rules.staying and sum(op.source for op in self.ops) < workers
        self.order, self.idle, self.overdue = PriorityOrder.FIXED, 0.0, 0.0
        self.planned = self.deadline = self.beat = self.sleeping = self.tickets = 0
        self.patience, self.slack, self.share, self.at_most, self.turn_limit = epoch, 0, 1, NEVER, NEVER
        self.alone = self.put_off = False

    def worth(self, op: Op, now: int) -> float:
        enough = op.source or op.pending >= min(op.least_events, op.limit)
        if op.pending <= 0 or not (enough or now - op.last > self.idle):
            return 0.0
        beyond = now - op.since - self.idle - self.overdue
        if op.since and beyond > 0:
            return 1e15 + beyond
        if self.order == PriorityOrder.LENGTH:
            return float(min(op.pending, max(1, op.limit // 2)) if op.source else op.pending)
        if self.order == PriorityOrder.AGE:
            return 1.0 + max(0, self.planned - op.since)
        if op.taken and self.order == PriorityOrder.ROUND:
            return max(op.taken - len(self.ops), 1e-9)
        if op.taken and self.order == PriorityOrder.DRAW:
            return (op.taken * 48_271.0) % 1.0 or 0.5
        return op.potential

    def offer(self, op: Op, now: int) -> None:
        if op.running or op.blocked or op.finished or op.pending <= 0:
            return
        if op.priority > 0 and self.order != PriorityOrder.LENGTH:
            return
        op.priority = self.worth(op, now)
        if op.priority > 0:
            self.tickets += 1
            op.ticket = self.tickets
            self.alone = self.alone and op.pending * op.known_cost <= 2 * HAND_OVER
        else:
            self.put_off = True

    def wait(self, op: Op, pending: int, now: int) -> None:
        op.pending = pending
        op.since = (op.since or now) if pending else 0
        if not pending:
            op.priority = 0.0
        elif op.source:
            op.look = NEVER
        self.offer(op, now)

    def next_read(self, given: int, now: int) -> int:
        if self.patience <= self.epoch:
            return now + self.patience
        beat = self.beat + self.patience if self.beat <= now else self.beat
        self.beat = beat if now < beat <= now + self.patience else now + self.patience
        wanted = given + self.patience // 2
        if wanted <= self.beat - self.patience:
            return now
        return self.beat if wanted <= self.beat else self.beat + self.patience

    def give_back(self, op: Op, left: int, now: int) -> None:
        op.running = op.leading = False
        op.since, op.last, op.look = 0, now, NEVER
        left = 0 if op.finished else left
        if op.source and not (left or op.blocked or op.finished) and op.due != NEVER:
            op.due = now if op.steady else op.due
            op.look = max(op.due, self.next_read(op.given, now))
        self.wait(op, left, now)

    def exchange(self, back: list[Op], left: dict[int, int], most: int, now: int) -> list[Turn]:
        """``left``: what waits for those that come back, and for readers of those that come back alone."""
        led = [op.leading for op in back]
        for op, leads in zip(back, led, strict=True):
            if leads or not op.follow:
                took = (now - op.given) // len(back)
                op.span = (7 * op.span + took) // 8 if op.span else took
            for one in [op, *(op.behind if leads else [])]:
                self.give_back(one, left.pop(one.number, 0), now)
        for op, leads in zip(back, led, strict=True):
            for reader in [] if leads else op.readers:
                if (count := left.pop(reader.number, 0)) and not reader.running:
                    self.wait(reader, count, now)
        self.admit(now)
        if self.alone and any(op.running for op in self.ops):
            return []
        kept = [op for op in back if self.stays and op.source]
        return self.pick(kept[-1] if kept and kept[-1].priority > 0 else None, most, now)

    def admit(self, now: int) -> None:
        sources = [op for op in self.ops if op.source]
        near = self.slack if any(op.look <= now for op in sources) else 0
        for op in sources:
            if op.look <= now + near:
                op.look, op.since = NEVER, op.since or now
                op.pending = max(op.pending, 1 + int(max(0, now - op.due) * op.rate))
                self.offer(op, now)
        if self.put_off and not any(op.priority > 0 for op in self.ops):
            self.put_off = False
            for op in self.ops:
                self.offer(op, now)

    def pick(self, first: Op | None, most: int, now: int) -> list[Turn]:
        given: list[Turn] = []
        span = 0
        while len(given) < most:
            waiting = sorted(
                (op for op in self.ops if op.priority > 0), key=lambda op: (-op.priority, op.ticket)
            )
            if not waiting:
                break
            op = first or waiting[0]
            first, span = None, span + op.span
            short = self.rules.together and op.source and op.span > 0 and span <= TOGETHER
            if given and not (self.alone or short):
                break
            op.taken, op.priority = op.priority, 0.0
            self.hold(op, now)
            limit = self.limit_of(op, now)
            given.append((op.number, limit, most > 1 and self.leads(op, len(waiting) - 1, now)))
            if not (self.alone or (short and len(given) < 6)):
                break
        return given

    def hold(self, op: Op, now: int) -> None:
        op.running, op.given = True, now

    def limit_of(self, op: Op, now: int) -> int:
        limit = op.limit
        if op.cost > 0:
            limit = min(limit, max(int((self.deadline - now) / op.cost), op.least))
        return min(limit, -(-op.pending // self.share) if self.share > 1 else limit, self.at_most)

    def leads(self, op: Op, waiting: int, now: int) -> bool:
        if not op.follow or self.share > 1 or self.at_most < self.turn_limit:
            return False
        chain = all(len(one.readers) <= 1 for one in [op, *op.behind])
        stays = self.stays and op.source
        wanted = self.sleeping if chain and not stays else self.workers - 1
        if waiting < wanted and not (0 < op.span <= SHORT and not stays) and not self.alone:
            return False
        if any(one.running or one.blocked or one.priority > 0 for one in op.behind):
            return False
        op.leading = True
        for one in op.behind:
            self.hold(one, now)
        return True

    def load(self, now: int) -> None:
        """A plan has been written into the operators."""
        self.planned, self.put_off, self.alone = now, False, False
        for op in reversed(self.ops):
            op.priority = op.taken = 0.0
            op.steady = op.rate * self.patience >= 1
            op.follow = self.rules.passes and bool(op.behind)
            op.follow = op.follow and all(one.potential >= op.potential for one in op.behind)
        for op in reversed(self.ops):
            self.offer(op, now)
        if self.rules.alone:
            costs = [min(op.pending, op.limit) * op.known_cost for op in self.ops if op.priority > 0]
            short = sum(cost < HAND_OVER for cost in costs)
            self.alone = sum(cost for cost in costs if cost >= HAND_OVER) < short * HAND_OVER
