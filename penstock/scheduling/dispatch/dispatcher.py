"""The dispatcher: the machine with a policy. Events come in, instructions go out; nobody looks at a clock.

A driver has the threads and the operators. It says when turns have ended and what waits (``board``,
``exchange``), what came from elsewhere (``tell``, ``expect``), who may not run (``hold``, ``release``) and
that a plan is due (``plan``); it is told what to run now, and until when it may sleep (``wake_ns``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.scheduling.consumption import Consumption
from penstock.scheduling.dispatch import machine
from penstock.scheduling.dispatch.board import MOST_TURNS, Board
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.observation import Observation
from penstock.scheduling.policy import Floats, Plan, Policy, Snapshot, busy
from penstock.scheduling.topology import Topology

#: A plan of many operators takes some ten microseconds. It is made anew after this many times what the last
#: one took, so that planning takes a percent of a processor, but at least every so many epochs: periods of up
#: to 5 ms cost neither latency nor throughput (enjima 5.3).
_PAUSE = 100
_MOST_EPOCHS = 5
#: How many epochs at the most a source that was read empty waits where workers have no time left; the more
#: they have, the fewer. What it reads at once is what everyone behind it takes in one turn, and a turn costs
#: some ten microseconds, however few its events. So a beat is at most so long that the turns of all operators
#: cost a hundredth of it: a longer one would save nothing, and everybody would wait.
_PATIENCE = 10.0
_TURN_NS = 10_000
_TURNS_SHARE = 0.01
#: The share of a source's wait by which it may come too early, if another one is due: read together, they
#: need one decision.
_SLACK = 0.25


class Dispatcher:
    """Who runs next. Not thread-safe: a driver with threads has a lock."""

    def __init__(
        self,
        topology: Topology,
        policy: Policy,
        turn_limit: int,
        epoch_ns: int,
        workers: int,
        rules: Rules | None = None,
        consumption: Consumption | None = None,
    ) -> None:
        self._topology, self._policy = topology, policy
        self._rules = rules = rules or Rules()
        consumption = consumption or Consumption()
        self._state: Any = policy.initial_state(topology)
        self._period_ns = epoch_ns  # from plan to plan
        self.board = board = Board(topology)
        self.plan_due_ns = 0
        head = board.head
        head.turn_limit, head.epoch_ns, head.workers = turn_limit, epoch_ns, workers
        head.share, head.at_most = consumption.share, consumption.most
        head.passes, head.alone_rule, head.together = rules.passes, rules.alone, rules.together
        head.staying = rules.staying and head.sources < workers
        head.bounded = rules.bounded
        self._set_patience(1.0)

    # -- events ----------------------------------------------------------------------------------

    def exchange(self, returned: int, now_ns: int, most: int = MOST_TURNS) -> int:
        """Turns have ended: those of the operators that ``board.returned`` names, so many, with those behind
        them that came along. The next turns are in ``board.given``; how many."""
        return int(machine.exchange(self.board.address, returned, most, now_ns))

    def tell(self, operator: int, pending: int, now_ns: int) -> None:
        """So much waits for an operator now, that came from elsewhere."""
        machine.tell(self.board.address, operator, pending, now_ns)

    def expect(self, source: int, due_ns: int, now_ns: int) -> None:
        """A source that has nothing has its next event then."""
        machine.expect(self.board.address, source, due_ns, now_ns)

    def hold(self, operator: int) -> None:
        """It may not run: there is no room for what it sends, or its edges are held."""
        machine.hold(self.board.address, operator)

    def release(self, operator: int, pending: int, now_ns: int) -> None:
        """It may run again, and so much waits for it now."""
        machine.release(self.board.address, operator, pending, now_ns)

    def plan(self, now_ns: int, seen: Observation) -> Plan:
        """A plan is due: priorities for all operators, from what is observed of them."""
        columns = self.board.columns
        self._set_patience(seen.utilisation)
        may_run = (columns["blocked"] | columns["finished"]) == 0
        snapshot = Snapshot(
            now_ns,
            self._topology,
            np.where(may_run, columns["pending"], 0),
            columns["since_ns"].copy(),
            columns["last_turn_ns"].copy(),
            seen.cost_ns,
            seen.selectivity,
            seen.latency_ns,
            seen.latency_gradient,
            self.board.head.turn_limit,
            self._period_ns,
            seen.utilisation,
            seen.arriving_per_ns,
            self.board.head.patience_ns,
        )
        plan, self._state = self._policy.plan(snapshot, self._state)
        columns["known_cost_ns"] = seen.known_cost_ns
        columns["per_ns"] = seen.rate_per_ns
        write(plan, self.board)
        machine.load(self.board.address, now_ns)
        return plan

    def await_plan(self, now_ns: int, took_ns: int) -> None:
        """The plan of now took so long to make: when the next one is due."""
        epoch_ns = self.board.head.epoch_ns
        self._period_ns = max(epoch_ns, min(took_ns * _PAUSE, epoch_ns * _MOST_EPOCHS))
        self.plan_due_ns = now_ns + self._period_ns

    # -- instructions ----------------------------------------------------------------------------

    def wake_ns(self, now_ns: int) -> int:
        """When to ask for turns again, if nothing happens before."""
        head = self.board.head
        if head.put_off or head.waiting:
            return int(now_ns + head.epoch_ns)
        wake_ns = head.next_look_ns
        if head.held:  # a source that a worker has may be due again at the next beat
            has_beat = head.beat_ns > now_ns and head.patience_ns > head.epoch_ns
            wake_ns = min(wake_ns, head.beat_ns if has_beat else now_ns + head.patience_ns)
        return int(wake_ns)

    def is_worth(self, operator: int, pending: int, now_ns: int) -> bool:
        """Whether an operator that goes with a pass takes so many events, or leaves them for later."""
        if not self.board.head.bounded:
            return True
        return bool(machine.is_worth(self.board.address, operator, pending, now_ns))

    def stays(self, source: int) -> bool:
        """Whether a source that has more can go on without a decision: nobody else would be given to its
        worker, and those who read from it are at work and will see what has come."""
        operators = self.board.operators
        if not self.board.head.staying or operators[source].leading:
            return False  # its readers are held by this very worker, which is to run them next
        return all(operators[reader].running for reader in self.board.readers[source])

    def _set_patience(self, utilisation: float) -> None:
        head = self.board.head
        longest_ns = min(_PATIENCE * head.epoch_ns, head.operators * _TURN_NS / head.workers / _TURNS_SHARE)
        patience_ns = int(longest_ns * busy(utilisation)) if self._rules.patience else 0
        head.patience_ns = max(head.epoch_ns, patience_ns)
        head.slack_ns = int(_SLACK * head.patience_ns) if self._rules.together else 0


def write(plan: Plan, board: Board) -> None:
    """Puts a plan onto the board."""
    head, columns = board.head, board.columns
    head.order = plan.order
    head.idle_ns, head.overdue_ns, head.deadline_ns = plan.idle_ns, plan.overdue_ns, plan.deadline_ns
    columns["potential"], columns["limit"] = plan.potential, plan.limit
    columns["least_events"] = plan.least_events
    columns["cost_ns"] = 0.0 if plan.cost_ns is None else plan.cost_ns
    columns["least_turn"] = 0 if plan.least_turn is None else plan.least_turn


def priorities(plan: Plan, snapshot: Snapshot) -> Floats:
    """What a plan comes to for these operators: higher first; 0: not eligible."""
    board = Board(snapshot.topology)
    board.head.turn_limit = snapshot.turn_limit
    board.columns["pending"] = snapshot.pending
    board.columns["since_ns"] = snapshot.waiting_since_ns
    board.columns["last_turn_ns"] = snapshot.last_turn_ns
    write(plan, board)
    machine.load(board.address, snapshot.now_ns)
    return np.array(board.columns["priority"])
