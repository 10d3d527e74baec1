"""A dispatcher that is held against the model while anybody drives it."""

from __future__ import annotations

from typing import Any

from penstock.scheduling.consumption import Consumption
from penstock.scheduling.dispatch.board import MOST_TURNS, Board
from penstock.scheduling.dispatch.dispatcher import Dispatcher
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.observation import Observation
from penstock.scheduling.policy import Plan
from tests.scheduling.dispatch.model import Model


def read_plan(model: Model, board: Board, now_ns: int) -> None:
    """The model takes over the plan on the board."""
    head = board.head
    model.order, model.idle, model.overdue = head.order, head.idle_ns, head.overdue_ns
    model.deadline, model.patience, model.slack = head.deadline_ns, head.patience_ns, head.slack_ns
    for op, row in zip(model.ops, board.operators, strict=True):
        op.potential, op.limit, op.cost, op.least = row.potential, row.limit, row.cost_ns, row.least_turn
        op.least_events, op.known_cost, op.rate = row.least_events, row.known_cost_ns, row.per_ns
    model.load(now_ns)


class Checked(Dispatcher):
    """Whatever it gives out, the model would have given out too."""

    exchanges = 0  # by all of them

    def __init__(self, topology: Any, policy: Any, turn_limit: int, epoch_ns: int, workers: int, *more: Any):
        super().__init__(topology, policy, turn_limit, epoch_ns, workers, *more)
        rules, consumption = (*more, None, None)[:2]
        self.model = Model(topology, rules or Rules(), workers, epoch_ns)
        consumption = consumption or Consumption()
        self.model.share, self.model.at_most = consumption.share, consumption.most
        self.model.turn_limit = turn_limit

    def exchange(self, returned: int, now_ns: int, most: int = MOST_TURNS) -> int:
        board, model = self.board, self.model
        model.sleeping = board.head.sleeping
        back = [model.ops[board.returned[place]] for place in range(returned)]
        left = {number: row.seen for number, row in enumerate(board.operators) if row.seen}
        for op, row in zip(model.ops, board.operators, strict=True):
            op.blocked, op.finished, op.due = bool(row.blocked), bool(row.finished), row.due_ns
        count = super().exchange(returned, now_ns, most)
        turns = [(turn.operator, turn.limit, bool(turn.leads)) for turn in board.given[:count]]
        assert turns == model.exchange(back, left, most, now_ns)
        Checked.exchanges += 1
        return count

    def tell(self, operator: int, pending: int, now_ns: int) -> None:
        super().tell(operator, pending, now_ns)
        if not (op := self.model.ops[operator]).running:
            self.model.wait(op, pending, now_ns)

    def release(self, operator: int, pending: int, now_ns: int) -> None:
        super().release(operator, pending, now_ns)
        if not (op := self.model.ops[operator]).running:
            op.blocked = op.finished = False
            self.model.wait(op, pending, now_ns)

    def hold(self, operator: int) -> None:
        super().hold(operator)
        self.model.ops[operator].blocked, self.model.ops[operator].priority = True, 0.0

    def expect(self, source: int, due_ns: int, now_ns: int) -> None:
        super().expect(source, due_ns, now_ns)
        op = self.model.ops[source]
        op.due = due_ns
        if not (op.running or op.blocked or op.finished or op.pending):
            op.look = max(due_ns, now_ns)

    def plan(self, now_ns: int, seen: Observation) -> Plan:
        plan = super().plan(now_ns, seen)
        read_plan(self.model, self.board, now_ns)
        return plan
