"""The compiled machine does what the model does, on any graph, whatever an adversary makes happen."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.scheduling.consumption import All, AtMost, Consumption, Half
from penstock.scheduling.dispatch import machine
from penstock.scheduling.dispatch.board import MOST_TURNS, NEVER_NS
from penstock.scheduling.dispatch.dispatcher import Dispatcher, write
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.policy import Plan, PriorityOrder
from penstock.scheduling.round_robin import RoundRobin
from penstock.scheduling.topology import Topology
from tests.scheduling.dispatch.checked import read_plan
from tests.scheduling.dispatch.model import Model

EPOCH_NS, TURN_LIMIT = 1_000_000, 1_000


def graphs(draw: random.Random) -> Topology:
    """Up to twelve operators, sources first; many have one writer, some several, some several readers."""
    size, sources = draw.randint(1, 12), draw.choice((1, 1, 2, 3))
    children: list[tuple[int, ...]] = [() for _ in range(size)]
    for number in range(min(sources, size), size):
        for writer in draw.sample(range(number), min(number, draw.choice((1, 1, 1, 2)))):
            children[writer] = (*children[writer], number)
    kinds = ["source" if n < sources else "map" if children[n] else "sink" for n in range(size)]
    return Topology(tuple(children), tuple(kinds))


class Adversary:
    """Makes everything happen, in any order, to the machine and to the model alike."""

    def __init__(self, draw: random.Random, rules: Rules, consumption: Consumption) -> None:
        topology = graphs(draw)
        self.draw, self.workers, self.now = draw, draw.randint(1, 3), 10**12
        args = (TURN_LIMIT, EPOCH_NS, self.workers, rules, consumption)
        self.machine = Dispatcher(topology, RoundRobin(), *args)
        self.model = Model(topology, rules, self.workers, EPOCH_NS)
        self.model.share, self.model.at_most = consumption.share, consumption.most
        self.model.turn_limit = TURN_LIMIT
        self.held: list[list[tuple[int, bool]]] = [[] for _ in range(self.workers)]  # by worker
        self.plan()

    def plan(self) -> None:
        draw, model, board = self.draw, self.model, self.machine.board
        size = len(model.ops)
        highest = draw.choice((1, 1, 4))
        potential = np.array([float(draw.randint(1, highest)) for _ in range(size)])
        plan = Plan(
            potential,
            np.array([draw.choice((50, 400, TURN_LIMIT)) for _ in range(size)]),
            draw.choice(list(PriorityOrder)),
            np.array([draw.choice((1, 1, 100, 500)) for _ in range(size)]),
            draw.choice((0.0, 2e6)),
            draw.choice((5e6, float("inf"))),
            draw.choice((None, np.full(size, 3_000.0))),
            np.full(size, 7),
            self.now + EPOCH_NS,
        )
        write(plan, board)
        rate = draw.choice((0.0, 1e-8, 1e-5))
        cost_ns = np.array([draw.choice((0.0, 10.0, 900.0)) for _ in range(size)])
        board.columns["per_ns"] = [rate * op.source for op in model.ops]
        board.columns["known_cost_ns"] = cost_ns
        self.machine._set_patience(draw.random())
        machine.load(board.address, self.now)
        for op, mine in zip(model.ops, board.operators, strict=True):
            op.span = mine.span_ns = draw.choice((0, op.span, 2_000_000, 7_000_000))
        read_plan(model, board, self.now)

    def exchange(self, worker: int) -> None:
        """A worker comes by: turns have left something, some ended because of a full outlet or for good."""
        draw, model, board = self.draw, self.model, self.machine.board
        left: dict[int, int] = {}
        back = [model.ops[number] for number, _ in self.held[worker]]
        for place, (leader, leads) in enumerate(self.held[worker]):
            board.returned[place] = leader
            whole = [model.ops[leader], *(model.ops[leader].behind if leads else [])]
            for op in whole:
                row = board.operators[op.number]
                left[op.number] = draw.choice((0, 0, 3, 450))
                if op is whole[0] or left[op.number]:  # of those that came along, only what they have left
                    row.seen = left[op.number]
                op.blocked = row.blocked = draw.random() < 0.1
                op.finished = row.finished = draw.random() < 0.02
                if op.source:
                    op.due = row.due_ns = draw.choice((self.now, self.now + 3_000_000, NEVER_NS))
            for reader in [] if leads else whole[0].readers:
                left[reader.number] = board.operators[reader.number].seen = draw.choice((0, 2, 300))
        self.machine.board.head.sleeping = model.sleeping = draw.randint(0, self.workers - 1)
        most = draw.choice((0, 1, MOST_TURNS, MOST_TURNS))
        count = self.machine.exchange(len(back), self.now, most)
        turns = [(turn.operator, turn.limit, bool(turn.leads)) for turn in board.given[:count]]
        assert turns == model.exchange(back, left, most, self.now)
        self.held[worker] = [(number, leads) for number, _, leads in turns]

    def happens(self) -> None:
        """Something happens to an operator from elsewhere."""
        draw, model = self.draw, self.model
        op = draw.choice(model.ops)
        match draw.choice(("tell", "hold", "release", "release", "expect")):
            case "tell":
                pending = draw.choice((0, 1, 200))
                self.machine.tell(op.number, pending, self.now)
                if not op.running:
                    model.wait(op, pending, self.now)
            case "hold":
                self.machine.hold(op.number)
                op.blocked, op.priority = True, 0.0
            case "release":
                self.machine.release(op.number, op.pending, self.now)
                if not op.running:
                    op.blocked = op.finished = False
                    model.wait(op, op.pending, self.now)
            case "expect" if op.source:
                due_ns = self.now + draw.randint(-1_000_000, 20_000_000)
                self.machine.expect(op.number, due_ns, self.now)
                op.due = due_ns
                if not (op.running or op.blocked or op.finished or op.pending):
                    op.look = max(due_ns, self.now)

    def check(self) -> None:
        """Both know the same, and what must always hold does."""
        head, rows = self.machine.board.head, self.machine.board.operators
        for op, row in zip(self.model.ops, rows, strict=True):
            mine = (row.running, row.leading, row.blocked, row.pending, row.since_ns, row.priority)
            assert mine == (op.running, op.leading, op.blocked, op.pending, op.since, op.priority)
            assert (row.look_ns, row.span_ns) == (op.look, op.span)
            may_run = row.pending > 0 and not (row.running or row.blocked or row.finished)
            assert may_run or row.priority == 0
            assert not may_run or row.priority > 0 or head.put_off
        held = [number for turns in self.held for number, _ in turns]
        for number, leads in (turn for turns in self.held for turn in turns):
            held += [op.number for op in self.model.ops[number].behind] if leads else []
        assert sorted(held) == [number for number, row in enumerate(rows) if row.running]  # nobody twice
        assert (head.held, head.waiting) == (len(held), sum(row.priority > 0 for row in rows))
        assert (bool(head.alone), bool(head.put_off)) == (self.model.alone, self.model.put_off)


def play(seed: int, rules: Rules, consumption: Consumption, steps: int) -> None:
    adversary = Adversary(random.Random(seed), rules, consumption)
    for _ in range(steps):
        draw = adversary.draw
        adversary.now += draw.choice((0, 1, 40_000, 900_000, 6_500_000))
        step = draw.random()
        if step < 0.6:
            adversary.exchange(draw.randrange(adversary.workers))
        elif step < 0.9:
            adversary.happens()
        else:
            adversary.plan()
        adversary.check()


switches = st.builds(Rules, *[st.booleans()] * 5)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), switches, st.sampled_from([All(), All(), Half(), AtMost(40)]))
def test_the_machine_does_what_the_model_does(seed: int, rules: Rules, consumption: Consumption) -> None:
    play(seed, rules, consumption, 60)


@pytest.mark.slow
@settings(max_examples=3_000, deadline=None)
@given(st.integers(0, 2**32), switches, st.sampled_from([All(), All(), Half(), AtMost(40)]))
def test_the_machine_does_what_the_model_does_for_long(
    seed: int, rules: Rules, consumption: Consumption
) -> None:
    play(seed, rules, consumption, 200)


@pytest.mark.parametrize("rule", ["passes", "alone", "together", "patience", "staying"])
def test_each_rule_by_itself_is_the_model_s(rule: str) -> None:
    for seed in range(20):
        play(seed, replace(Rules.none(), **{rule: True}), All(), 60)
