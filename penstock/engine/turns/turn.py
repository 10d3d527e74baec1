"""One turn of an operator: take events and marks from its edges until the limit, the end of the input, or a
full outlet."""

from __future__ import annotations

import time

from penstock.engine.turns.alignment import align, go_on, leave_alone
from penstock.engine.turns.vertex import Vertex
from penstock.memory.edges import END_OF_TIME, Control, Edge, End, Epoch, LatencyMarker, Mark, Watermark
from penstock.query.errors import PenstockError, RunError


def take_turn(vertex: Vertex, limit: int) -> int:
    """Runs the operator on at most ``limit`` events; returns how many it took.

    Batch = min(pending in the input block, free slots in the output block) (enjima 3.1.2): it never waits
    for either.
    """
    taken = _take(vertex, limit)
    for queue in vertex.queues:
        queue.hand_over()
    return taken


def guarded_turn(vertex: Vertex, limit: int) -> int:
    """A turn whose error names the step."""
    vertex.in_turn = True
    try:
        return take_turn(vertex, limit)
    except BaseException as error:
        raise located(vertex, error) from error
    finally:
        vertex.in_turn = False


def located(vertex: Vertex, error: BaseException) -> BaseException:
    """The error with the step's name; those that already carry it, or are not ours to wrap, stay as they
    are."""
    if isinstance(error, PenstockError) or not isinstance(error, Exception):
        return error
    node = vertex.operator.node
    return RunError(f"step '{node.id}' failed: {type(error).__name__}: {error} (written at {node.origin})")


def _take(vertex: Vertex, limit: int) -> int:
    if not _send_ready(vertex) or (vertex.held and not _release(vertex)):
        return 0
    if vertex.source is not None:
        return _read(vertex, limit)
    operator, taken = vertex.operator, 0
    moved = True
    while moved:
        moved = False
        for index, edge in vertex.taking:
            while taken < limit and (readable := edge.readable()) is not None:
                columns, start, stop = readable
                stop = min(stop, start + limit - taken)
                count = operator.consume(index, columns, start, stop)
                edge.advance(count)
                taken += count
                moved = moved or count > 0
                if count < stop - start:
                    made_ready = operator.has_ready_rows
                    if not _send_ready(vertex):
                        return taken
                    if not made_ready:  # nothing to send, and still it did not take all: the outlet is full
                        vertex.block()
                        return taken
            while (mark := edge.next_mark()) is not None:
                if isinstance(mark, Control) and not _send_ready(vertex):
                    return taken
                moved = True
                if isinstance(mark, Epoch):
                    leave_alone(vertex, edge)
                    break
                edge.pass_mark()
                if not _handle(vertex, edge, mark):
                    return taken
        if vertex.come and vertex.is_aligned:
            if not _cut(vertex):
                return taken
            moved = True
    _send_ready(vertex)
    return taken


def _read(vertex: Vertex, limit: int) -> int:
    source = vertex.source
    assert source is not None
    count = source.read(limit, vertex.outbox)
    if not _send_ready(vertex):
        return count
    if source.is_full:
        vertex.block()
    if source.finished:
        vertex.finished = True
    return count


def _handle(vertex: Vertex, edge: Edge, mark: Mark) -> bool:
    """Acts on a mark; False if what it sets free does not fit into the outlets."""
    if edge in vertex.holding and isinstance(mark, Watermark | End):
        if vertex.held or vertex.operator.holds:
            vertex.held.append((edge, mark))
            return True
        vertex.holding.clear()
    return _act(vertex, edge, mark)


def _cut(vertex: Vertex) -> bool:
    """The epoch mark has come on all edges: all that belongs to the epoch is sent and told, and the mark
    follows; False if an outlet is full before that."""
    if not _send_ready(vertex):
        return False
    number = align(vertex)
    _advance_watermark(vertex)
    if not _send_ready(vertex):
        return False
    assert vertex.epochs is not None
    vertex.epochs.cut(number)
    go_on(vertex)
    vertex.outbox.append(Epoch(number, vertex.watermark))
    return _send_ready(vertex)


def _release(vertex: Vertex) -> bool:
    """Acts on the marks that waited, unless they must wait longer; False if an outlet is full meanwhile."""
    while vertex.held and not vertex.operator.holds:
        edge, mark = vertex.held.popleft()
        if not _act(vertex, edge, mark):
            return False
    return True


def _act(vertex: Vertex, edge: Edge, mark: Mark) -> bool:
    match mark:
        case Control(content):
            if vertex.operator.on_control(content):
                vertex.holding.add(edge)
        case Watermark(time_us):
            edge.watermark = time_us
            _advance_watermark(vertex)
        case LatencyMarker(created_ns, sent_ns):
            now_ns = time.perf_counter_ns()
            vertex.counters.markers += 1
            vertex.counters.marker_wait_ns += now_ns - sent_ns
            if vertex.latency is not None:
                vertex.latency.record(now_ns - created_ns)
            else:
                vertex.outbox.append(LatencyMarker(created_ns, now_ns))
        case End(complete):
            vertex.ended += 1
            if complete:
                edge.watermark = END_OF_TIME
                _advance_watermark(vertex)
            if vertex.ended == len(vertex.edges):
                everything = all(edge.watermark == END_OF_TIME for edge in vertex.edges)
                vertex.operator.on_end(everything)
                vertex.outbox.append(End(everything))
    return _send_ready(vertex)


def _advance_watermark(vertex: Vertex) -> None:
    reached = min(edge.watermark for edge in vertex.edges)
    if reached > vertex.watermark:
        vertex.watermark = reached
        vertex.operator.on_watermark(reached)
        if reached != END_OF_TIME:  # the end itself says so
            vertex.outbox.append(Watermark(reached))


def _send_ready(vertex: Vertex) -> bool:
    """Rows made ready go out first, then the marks that follow them; False, and blocked, if they do not
    fit."""
    operator = vertex.operator
    if operator.has_ready_rows and not operator.flush():
        vertex.block()
        return False
    outbox = vertex.outbox
    while outbox:
        mark = outbox.popleft()
        for outlet in vertex.outlets:
            outlet.mark(mark)
        if isinstance(mark, End):
            vertex.finished = True
            if vertex.epochs is not None:
                vertex.epochs.end(mark.complete)
    return True
