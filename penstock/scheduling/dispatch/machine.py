"""The machine, compiled: events change the board, and an exchange gives out the next turns.

It knows no lock, clock or thread: a driver that has them calls it, tells the time, and runs what it is given.

Invariants: an operator that runs is not given out again. Who waits for a worker (``priority`` above 0) has
work, and does not run, is not blocked and has not finished. Whoever has work and neither runs nor is blocked
waits for a worker, or was put off until it has been idle for long enough, or is a source with a time.
"""

from __future__ import annotations

import numpy as np

from penstock.compiled.fixed import fixed, part
from penstock.scheduling.dispatch.board import NEVER_NS, views
from penstock.scheduling.policy import PriorityOrder

NOBODY = -1
#: Above every priority that a policy gives.
OVERDUE = 1e15
_SHORT_NS = 6_000_000  # an operator and all behind it, for which no other worker is woken
_TOGETHER_NS = 5_000_000  # all sources that a worker takes at once, with all behind them
_MOST_TOGETHER = 6
_DRAW = 48_271.0
_LEAST = 1e-9  # of the priorities of those that wait
#: What it costs when one thread takes the interpreter lock from another, estimated from runs with one and two
#: workers on a virtual machine. Turns shorter than this gain nothing from a second worker.
_HAND_OVER_NS = 50_000


# -- priorities ----------------------------------------------------------------------------------


@part()
def _priority(head, op, now_ns):  # type: ignore[no-untyped-def]
    """What an operator has by what waits for it now; 0: it is not worth a turn (enjima algorithm 1).

    As printed, the comparison with the event threshold is strict, which would leave out C and D of the
    paper's own example. What fills a turn is enough as well: it could not be longer. A source is let in by
    its time.
    """
    if op.pending <= 0:
        return 0.0
    is_enough = op.source or op.pending >= op.least_events or op.pending >= op.limit
    if not is_enough and now_ns - op.last_turn_ns <= head.idle_ns:
        return 0.0
    beyond_ns = now_ns - op.since_ns - head.idle_ns - head.overdue_ns
    if op.since_ns > 0 and beyond_ns > 0.0:
        return OVERDUE + beyond_ns
    if head.order == PriorityOrder.LENGTH:
        # What a source could read does not wait in a queue and may have no end: half a turn at the most. Else
        # sources would run until memory is full, and every event would wait behind full queues.
        return float(min(op.pending, max(1, op.limit // 2)) if op.source else op.pending)
    if head.order == PriorityOrder.AGE:
        return 1.0 + max(0, head.planned_ns - op.since_ns)
    if op.taken > 0.0 and head.order == PriorityOrder.ROUND:
        return max(op.taken - head.operators, _LEAST)  # it has had its turn: behind all others
    if op.taken > 0.0 and head.order == PriorityOrder.DRAW:
        drawn = (op.taken * _DRAW) % 1.0
        return drawn if drawn > 0.0 else 0.5
    return op.potential


@part()
def _put(board, operator, priority):  # type: ignore[no-untyped-def]
    head, op = board.heads[0], board.operators[operator]
    if op.priority <= 0.0:
        op.place = head.waiting
        board.ready[head.waiting] = operator
        head.waiting += 1
    op.priority = priority
    head.tickets += 1
    op.ticket = head.tickets


@part()
def _take_out(board, operator):  # type: ignore[no-untyped-def]
    head, op = board.heads[0], board.operators[operator]
    if op.priority > 0.0:
        op.priority = 0.0
        head.waiting -= 1
        last = board.ready[head.waiting]
        board.ready[op.place] = last
        board.operators[last].place = op.place


@part()
def _offer(board, operator, now_ns):  # type: ignore[no-untyped-def]
    """Lets an operator wait for a worker if it is worth a turn."""
    head, op = board.heads[0], board.operators[operator]
    if op.running or op.blocked or op.finished or op.pending <= 0:
        return
    if op.priority > 0.0 and head.order != PriorityOrder.LENGTH:
        return
    priority = _priority(head, op, now_ns)
    if priority > 0.0:
        _put(board, operator, priority)
        if op.pending * op.known_cost_ns > 2 * _HAND_OVER_NS:
            head.alone = 0
    else:
        _take_out(board, operator)
        head.put_off = 1


@part()
def _best(board):  # type: ignore[no-untyped-def]
    """Who comes first of those that wait: of equal ones, by a plan the one downstream, later the first."""
    best, highest, ticket = NOBODY, 0.0, 0
    for place in range(board.heads[0].waiting):
        op = board.operators[board.ready[place]]
        if op.priority > highest or (op.priority == highest and op.ticket < ticket):
            best, highest, ticket = board.ready[place], op.priority, op.ticket
    return best


# -- sources -------------------------------------------------------------------------------------


@part()
def _next_read_ns(head, given_ns, now_ns):  # type: ignore[no-untyped-def]
    """When to read a source again that was given out then and is empty now.

    Sources that each wait for a time of their own come one by one, and so many decisions are made. So they
    wait for the same beat: the first that is half their patience or more after they were given out; if that
    is over, they go on at once. Without patience a source waits for an epoch.
    """
    patience_ns = head.patience_ns
    if patience_ns <= head.epoch_ns:
        return now_ns + patience_ns
    beat_ns = head.beat_ns
    if beat_ns <= now_ns:
        beat_ns += patience_ns
    if beat_ns <= now_ns or beat_ns > now_ns + patience_ns:  # nothing came for long, or patience is less now
        beat_ns = now_ns + patience_ns
    head.beat_ns = beat_ns
    wanted_ns = given_ns + patience_ns // 2
    if wanted_ns <= beat_ns - patience_ns:
        return now_ns
    return beat_ns if wanted_ns <= beat_ns else beat_ns + patience_ns


@part()
def _look_at(head, op, when_ns):  # type: ignore[no-untyped-def]
    op.look_ns = when_ns
    head.next_look_ns = min(head.next_look_ns, when_ns)


@part()
def _admit_sources(board, now_ns):  # type: ignore[no-untyped-def]
    """Lets in the sources whose time has come and, if there is one, those whose time is near."""
    head = board.heads[0]
    if now_ns < head.next_look_ns:
        return
    least_ns = NEVER_NS
    for place in range(len(board.sources)):
        least_ns = min(least_ns, board.operators[board.sources[place]].look_ns)
    until_ns = now_ns + head.slack_ns if least_ns <= now_ns else now_ns
    head.next_look_ns = NEVER_NS
    for place in range(len(board.sources)):
        source = board.sources[place]
        op = board.operators[source]
        if op.look_ns <= until_ns:
            op.look_ns = NEVER_NS
            expected = 1 + np.int64(max(0, now_ns - op.due_ns) * op.per_ns)
            op.pending = max(op.pending, expected)
            op.since_ns = op.since_ns or now_ns
            _offer(board, source, now_ns)
        head.next_look_ns = min(head.next_look_ns, op.look_ns)


# -- events --------------------------------------------------------------------------------------


@part()
def _wait(board, operator, pending, now_ns):  # type: ignore[no-untyped-def]
    """So much waits for an operator by now."""
    op = board.operators[operator]
    op.pending = pending
    if pending <= 0:
        op.since_ns = 0
        _take_out(board, operator)
        return
    op.since_ns = op.since_ns or now_ns
    if op.source:
        op.look_ns = NEVER_NS
    _offer(board, operator, now_ns)


@part()
def _give_back(board, operator, now_ns):  # type: ignore[no-untyped-def]
    """A turn has ended, and ``seen`` is what it has left."""
    head, op = board.heads[0], board.operators[operator]
    head.held -= 1
    op.running = op.leading = op.since_ns = 0
    if op.allowed >= 0:
        op.last_turn_ns = now_ns
    left = op.seen if not op.finished else 0
    op.seen = 0
    if op.source:
        op.look_ns = NEVER_NS
        if not (left or op.blocked or op.finished or op.due_ns == NEVER_NS):
            due_ns = now_ns if op.steady else op.due_ns
            op.due_ns = due_ns
            _look_at(head, op, max(due_ns, _next_read_ns(head, op.given_ns, now_ns)))
    _wait(board, operator, left, now_ns)


@part()
def _take_back(board, returned, now_ns):  # type: ignore[no-untyped-def]
    """Operators come back, each with those behind it if it leads; else its readers may have got something."""
    for place in range(returned):
        first = board.returned[place]
        op = board.operators[first]
        leads = op.leading
        # Of one that came alone although it could lead, the time says nothing of it with all behind it.
        if leads or not op.follow:
            took_ns = (now_ns - op.given_ns) // returned
            op.span_ns = (7 * op.span_ns + took_ns) // 8 if op.span_ns else took_ns
        _give_back(board, first, now_ns)
        if leads:
            board.returned[place] = NOBODY
            for link in range(op.behind, op.behind_end):
                _give_back(board, board.links[link], now_ns)
    for place in range(returned):
        first = board.returned[place]
        if first != NOBODY:
            op = board.operators[first]
            for link in range(op.readers, op.readers_end):
                reader = board.operators[board.links[link]]
                seen = reader.seen
                reader.seen = 0
                if seen > 0 and not reader.running:
                    _wait(board, board.links[link], seen, now_ns)


@part()
def _admit_put_off(board, now_ns):  # type: ignore[no-untyped-def]
    """Lets in whoever has been idle for long enough by now."""
    board.heads[0].put_off = 0
    for operator in range(len(board.operators)):
        _offer(board, operator, now_ns)


# -- instructions --------------------------------------------------------------------------------


@part()
def _limit(head, op, now_ns):  # type: ignore[no-untyped-def]
    """How many events a turn that begins now may take: until the deadline, but at least some (eq. 4)."""
    limit = op.limit
    if op.cost_ns > 0.0:
        limit = min(limit, max(np.int64((head.deadline_ns - now_ns) / op.cost_ns), op.least_turn))
    if head.share > 1:
        limit = min(limit, (op.pending + head.share - 1) // head.share)
    return min(limit, head.at_most)


@part()
def _hold(head, op, now_ns):  # type: ignore[no-untyped-def]
    op.running = 1
    op.given_ns = now_ns
    head.held += 1


@part()
def _hold_behind(board, first, now_ns):  # type: ignore[no-untyped-def]
    """Whether all operators behind this one go with it; then they are held too.

    They would be next as soon as its turn has sent them something, and find that in the cache. If one of them
    has work already, it is left to other workers; and so is everything while those have nothing else to do,
    and where turns take only a part of what there is.
    """
    head, op = board.heads[0], board.operators[first]
    if not op.follow or head.share > 1 or head.at_most < head.turn_limit:
        return False
    # Behind a fan-out, and behind a source that stays, there is work for workers that will soon be free.
    stays = head.staying and op.source
    wanted = head.sleeping if op.chain and not stays else head.workers - 1
    is_short = not stays and 0 < op.span_ns <= _SHORT_NS
    if head.waiting < wanted and not is_short and not head.alone:
        return False
    for link in range(op.behind, op.behind_end):
        reader = board.operators[board.links[link]]
        if reader.running or reader.blocked or reader.priority > 0.0:
            return False
    for link in range(op.behind, op.behind_end):
        reader = board.operators[board.links[link]]
        _hold(head, reader, now_ns)
        reader.allowed = _limit(head, reader, now_ns) if head.bounded else head.turn_limit
    op.leading = 1
    return True


@part()
def _give_out(board, operator, turn, may_lead, now_ns):  # type: ignore[no-untyped-def]
    head, op = board.heads[0], board.operators[operator]
    op.taken = op.priority
    op.allowed = 0
    _take_out(board, operator)
    _hold(head, op, now_ns)
    turn.operator = operator
    turn.limit = _limit(head, op, now_ns)
    turn.leads = may_lead and _hold_behind(board, operator, now_ns)


@fixed("int64(int64, int64, int64, int64)")
def exchange(address: int, returned: int, most: int, now_ns: int) -> int:
    """Turns have ended: takes back the operators that are ``returned``, so many, each with those behind it if
    it leads, lets in whose time has come, and gives out the next turns, at most ``most``; how many.

    Of those that come back, and of readers of those that come back alone, ``seen`` says what waits for them.
    """
    board = views(address)
    head, stays = board.heads[0], NOBODY
    if head.staying:
        # Else a source as dear as all behind it together would wait for workers that then wait for it.
        for place in range(returned):
            first = board.returned[place]
            stays = first if board.operators[first].source else stays
    _take_back(board, returned, now_ns)
    _admit_sources(board, now_ns)
    if head.put_off and head.waiting == 0:
        _admit_put_off(board, now_ns)
    if head.alone and head.held > 0:
        return 0
    if stays != NOBODY and board.operators[stays].priority <= 0.0:
        stays = NOBODY
    given, span_ns = 0, 0
    while given < most:
        operator = stays if given == 0 and stays != NOBODY else _best(board)
        if operator == NOBODY:
            break
        # Several sources if they are short: to wake another worker, or to decide again, would cost as much.
        op = board.operators[operator]
        span_ns += op.span_ns
        is_short = head.together and op.source and op.span_ns > 0 and span_ns <= _TOGETHER_NS
        goes_on = head.alone or (is_short and given + 1 < _MOST_TOGETHER)
        if given > 0 and not (head.alone or is_short):
            break
        _give_out(board, operator, board.given[given], most > 1, now_ns)
        given += 1
        if not goes_on:
            break
    return given


@fixed("void(int64, int64, int64, int64)")
def tell(address: int, operator: int, pending: int, now_ns: int) -> None:
    """So much waits for an operator by now. If a worker has it, that is told when it comes back."""
    board = views(address)
    if not board.operators[operator].running:
        _wait(board, operator, pending, now_ns)


@fixed("void(int64, int64, int64, int64)")
def release(address: int, operator: int, pending: int, now_ns: int) -> None:
    """An operator may run from now on: there is room for what it sends, or its edges are no longer held."""
    board = views(address)
    op = board.operators[operator]
    if not op.running:
        op.blocked = op.finished = 0
        _wait(board, operator, pending, now_ns)


@fixed("boolean(int64, int64, int64, int64)")
def is_worth(address: int, operator: int, pending: int, now_ns: int) -> bool:
    """Whether so many events would be worth a turn of an operator that goes with a pass."""
    board = views(address)
    op = board.operators[operator]
    op.pending = pending
    worth: bool = _priority(board.heads[0], op, now_ns) > 0.0
    if not worth:
        op.allowed = -1  # it comes back without a turn
    return worth


@fixed("void(int64, int64)")
def hold(address: int, operator: int) -> None:
    """An operator may not run until it is released: an outlet is full, or its edges are held."""
    board = views(address)
    board.operators[operator].blocked = 1
    _take_out(board, operator)


@fixed("void(int64, int64, int64, int64)")
def expect(address: int, source: int, due_ns: int, now_ns: int) -> None:
    """A source that has nothing has its next event then."""
    board = views(address)
    op = board.operators[source]
    op.due_ns = due_ns
    if not (op.running or op.blocked or op.finished or op.pending):
        _look_at(board.heads[0], op, max(due_ns, now_ns))


@fixed("void(int64, int64)")
def load(address: int, now_ns: int) -> None:
    """A plan has been written into the board: everybody's priority anew."""
    board = views(address)
    head = board.heads[0]
    head.planned_ns, head.put_off, head.waiting, head.alone = now_ns, 0, 0, 0
    for operator in range(len(board.operators) - 1, -1, -1):
        op = board.operators[operator]
        op.priority = op.taken = 0.0
        op.steady = op.per_ns * head.patience_ns >= 1.0
        op.follow = head.passes and op.behind < op.behind_end
        for link in range(op.behind, op.behind_end):
            op.follow = op.follow and board.operators[board.links[link]].potential >= op.potential
        _offer(board, operator, now_ns)
    if head.alone_rule:
        long_ns, short = 0.0, 0
        for place in range(head.waiting):
            op = board.operators[board.ready[place]]
            cost_ns = min(op.pending, op.limit) * op.known_cost_ns
            if cost_ns < _HAND_OVER_NS:
                short += 1
            else:
                long_ns += cost_ns
        head.alone = long_ns < short * _HAND_OVER_NS
