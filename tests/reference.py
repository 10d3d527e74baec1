"""The oracle: a row-at-a-time interpreter of a graph, too simple to be wrong.

A result depends on the input only, so every operator is a function from complete lists of events to a
complete list of events. There is no watermark, no batch and no state: whether an event is late is known from
its own partition, and a window is simply the list of its events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock.query.graph import Graph, Port, QueryVertex
from penstock.query.steps import (
    BatchSpec,
    CoGroupSpec,
    DeduplicateSpec,
    ExplodeSpec,
    FilterSpec,
    FlatMapSpec,
    GroupJoinSpec,
    IntervalJoinSpec,
    LookupSpec,
    MatchSpec,
    NestedAggregateSpec,
    ProcessSpec,
    SelectSpec,
    SinkSpec,
    SourceSpec,
    UnionSpec,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowTopSpec,
)
from penstock.query.types import DataType, Field, Schema
from penstock.query.user_functions import Context, Group
from tests.cep.patterns.oracle import Key, simulate
from tests.reference_aggregates import key_of, sorted_by, windows_over, wrapped, xxhash64
from tests.reference_batches import run_batch_function
from tests.reference_events import (
    ZEROS,
    aggregated,
    bounds_schema,
    events_by_key,
    hash_of,
    holds,
    ordered_events,
    paired_event,
    pairs_of,
    projected,
    row_of,
    spec_of,
    table_rows,
    with_row,
)
from tests.reference_events import AmbiguousOrderError as AmbiguousOrderError
from tests.reference_events import Event as Event
from tests.reference_events import Row as Row
from tests.reference_expressions import evaluate

#: For each source, the rows of each of its partitions as they are read; timestamps are int microseconds.
Inputs = Mapping[str, Sequence[Sequence[Row]]]

_LATE_PORTS = (Port.LATE, Port.LATE_RIGHT)
_SUBS = 1 << 20  # rows that one event can become in a user's function
_TIMERS = 100_000  # timers of one key after the end


@dataclass
class Result:
    """What every output of every operator gave."""

    outputs: dict[tuple[str, Port], list[Event]] = field(default_factory=dict)
    sinks: dict[str, list[Row]] = field(default_factory=dict)
    #: Late events that each operator left out.
    late_counts: dict[str, int] = field(default_factory=dict)


def run_reference(graph: Graph, inputs: Inputs) -> dict[str, list[Row]]:
    """The rows that reach each sink."""
    return interpret(graph, inputs).sinks


def interpret(graph: Graph, inputs: Inputs) -> Result:
    """The same, with the events of all outputs in between."""
    result = Result()
    for node in graph:
        streams = [result.outputs[source.node, source.port] for source in node.inputs]
        schemas = [graph.input_schema(source) for source in node.inputs]
        spec = node.spec
        if isinstance(spec, SourceSpec):
            main = read_source(spec, inputs[node.id])
        elif isinstance(spec, SinkSpec):
            result.sinks[node.id] = [event.row for event in streams[0]]
            continue
        elif isinstance(spec, UnionSpec):
            main = union(streams, node.schema)
        elif type(spec) in _STATELESS:
            main = _STATELESS[type(spec)](node, streams[0], schemas[0])
        elif type(spec) in _CALLING:
            failed: list[Event] = []
            events = streams[0]
            if isinstance(spec, ProcessSpec):
                late_events = [event for event in events if event.late]
                events = [event for event in events if not event.late]
                result.late_counts[node.id] = len(late_events)
                result.outputs[node.id, Port.LATE] = late_events
            main = _CALLING[type(spec)](node, events, schemas[0], failed)
            result.outputs[node.id, Port.FAILED] = failed
        else:
            on_time = [[event for event in stream if not event.late] for stream in streams]
            main = _TIMED[type(spec)](node, on_time, schemas)
            late = [[event for event in stream if event.late] for stream in streams]
            result.late_counts[node.id] = sum(map(len, late))
            for port, events in zip(_LATE_PORTS, late, strict=False):
                result.outputs[node.id, port] = events
        result.outputs[node.id, Port.MAIN] = main
        result.outputs[node.id, Port.BAD] = []
    return result


# -- sources ---------------------------------------------------------------------------------------


def read_source(spec: SourceSpec, partitions: Sequence[Sequence[Row]]) -> list[Event]:
    """The events of all partitions; late are those too far behind an earlier one of their own partition."""
    events = []
    for partition, rows in enumerate(partitions):
        latest: int | None = None
        for offset, row in enumerate(rows):
            time = row[spec.event_time]
            late = latest is not None and time < latest - spec.lateness_us
            latest = time if latest is None else max(latest, time)
            order = spec.number << 56 | partition << 44 | offset
            events.append(Event(time, order, 0, late, row_of(row, spec.source.schema)))
    return events


# -- one event at a time ---------------------------------------------------------------------------


def _filter(node: QueryVertex, events: list[Event], schema: Schema) -> list[Event]:
    spec = spec_of(node, FilterSpec)
    return [event for event in events if evaluate(spec.predicate, event.row, schema) is True]


def _select(node: QueryVertex, events: list[Event], schema: Schema) -> list[Event]:
    spec = spec_of(node, SelectSpec)
    return [with_row(event, projected(spec.columns, event.row, schema, node.schema)) for event in events]


def _explode(node: QueryVertex, events: list[Event], schema: Schema) -> list[Event]:
    spec = spec_of(node, ExplodeSpec)
    made = []
    for event in events:
        for index, (columns, condition) in enumerate(zip(spec.rows, spec.conditions, strict=True)):
            if condition is None or evaluate(condition, event.row, schema) is True:
                row = projected(columns, event.row, schema, node.schema)
                made.append(with_row(event, row, wrapped(event.sub * len(spec.rows) + index)))
    return made


def _flat_map(node: QueryVertex, events: list[Event], schema: Schema, failed: list[Event]) -> list[Event]:
    spec = spec_of(node, FlatMapSpec)
    made = []
    for event in events:
        with _set_aside(node, event, failed) as took:
            took += spec.function(dict(event.row))
        made += [
            with_row(event, row_of(row, node.schema), wrapped(event.sub * _SUBS + index))
            for index, row in enumerate(took)
        ]
    return made


def _batch(node: QueryVertex, events: list[Event], schema: Schema, failed: list[Event]) -> list[Event]:
    spec = spec_of(node, BatchSpec)
    made = []
    for event in events:
        with _set_aside(node, event, failed) as took:
            took += run_batch_function(spec, event.row, schema, node.schema)
        rows, has_rows = took or ((), False)
        for index, row in enumerate(rows):
            sub = wrapped(event.sub * _SUBS + index) if has_rows else event.sub
            made.append(with_row(event, row_of(row, node.schema), sub))
    return made


def _lookup(node: QueryVertex, events: list[Event], schema: Schema) -> list[Event]:
    spec = spec_of(node, LookupSpec)
    table = {}
    for row in table_rows(spec.table):
        key = tuple(row[theirs] for _, theirs in spec.on)
        if None not in key:
            table[key_of(key)] = row
    made = []
    for event in events:
        key = tuple(event.row[ours] for ours, _ in spec.on)
        found = None if None in key else table.get(key_of(key))
        if found is not None or spec.left:
            taken = {name: None if found is None else found[theirs] for name, theirs in spec.columns}
            made.append(with_row(event, row_of({**event.row, **taken}, node.schema)))
    return made


def union(streams: list[list[Event]], schema: Schema) -> list[Event]:
    """The events of all streams; of two that stand in the same place, that of the earlier stream first."""
    return [
        with_row(event, row_of(event.row, schema), sub=event.sub * len(streams) + index)
        for index, stream in enumerate(streams)
        for event in stream
    ]


_STATELESS: dict[type, Callable[[QueryVertex, list[Event], Schema], list[Event]]] = {
    FilterSpec: _filter,
    SelectSpec: _select,
    ExplodeSpec: _explode,
    LookupSpec: _lookup,
}


@contextmanager
def _set_aside(node: QueryVertex, event: Event, failed: list[Event], what: str = "") -> Iterator[list[Any]]:
    """A list for what the function returns; it stays empty if the function raises and may."""
    took: list[Any] = []
    try:
        yield took
    except Exception as error:
        if not node.spec.sets_aside:
            raise
        took.clear()
        row = {**event.row, "error": f"{type(error).__name__}: {error}{what}", "step": node.id}
        failed.append(with_row(event, row))


# -- operators that depend on time: they get no late events ----------------------------------------


def _window_aggregate(node: QueryVertex, streams: list[list[Event]], schemas: list[Schema]) -> list[Event]:
    spec, schema = spec_of(node, WindowAggregateSpec), schemas[0]
    needs_order = any(one.function.in_order for _, one in spec.aggregates)
    made = []
    for group in events_by_key(streams[0], spec.keys):
        for start, end in windows_over([event.time for event in group], spec.window):
            members = [event for event in group if start <= event.time < end]
            members = ordered_events(members) if needs_order else members
            keys = {name: members[0].row[name] for name in spec.keys}
            results = {name: aggregated(one, members, schema) for name, one in spec.aggregates}
            row = row_of({**keys, "window_start": start, "window_end": end, **results}, node.schema)
            made.append(Event(end - 1, hash_of(keys, schema), 0, False, row))
    return made


def _nested_aggregate(node: QueryVertex, streams: list[list[Event]], schemas: list[Schema]) -> list[Event]:
    spec, schema = spec_of(node, NestedAggregateSpec), schemas[0]
    names = (*spec.keys, *spec.per)
    typed = {name: one.result_type(schema) for name, one in spec.inner}
    inner = Schema(
        [*(schema[name] for name in names), *(Field(name, t.dtype, t.nullable) for name, t in typed.items())]
    )
    events = [event for event in streams[0] if holds(spec.where, event.row, schema)]
    made = []
    for group in events_by_key(events, spec.keys):
        for start, end in windows_over([event.time for event in group], spec.window):
            rows = []
            for members in events_by_key([event for event in group if start <= event.time < end], spec.per):
                needs_order = any(one.function.in_order for _, one in spec.inner)
                members = ordered_events(members) if needs_order else members
                row = {name: members[0].row[name] for name in names}
                row |= {name: aggregated(one, members, schema) for name, one in spec.inner}
                if holds(spec.having, row, inner):
                    rows.append(Event(0, 0, 0, False, row))
            if not rows:
                continue
            keys = {name: rows[0].row[name] for name in spec.keys}
            results = {name: aggregated(one, rows, inner) for name, one in spec.aggregates}
            row = {**keys, "window_start": start, "window_end": end, **results}
            if holds(spec.keep, row, node.schema):
                made.append(Event(end - 1, hash_of(keys, schema), 0, False, row_of(row, node.schema)))
    return made


def _window_top(node: QueryVertex, streams: list[list[Event]], schemas: list[Schema]) -> list[Event]:
    spec = spec_of(node, WindowTopSpec)
    made = []
    for group in events_by_key(streams[0], spec.keys):
        for start, end in windows_over([event.time for event in group], spec.window):
            members = ordered_events([event for event in group if start <= event.time < end])
            exprs = [by for by, _ in spec.ranking]
            ranked = [([evaluate(by, event.row, schemas[0]) for by in exprs], event) for event in members]
            ranked = sorted_by(ranked, [descending for _, descending in spec.ranking])
            keys = [key_of(values) for values, _ in ranked]
            for place, (_, event) in enumerate(ranked):
                rank = 1 + (keys.index(keys[place]) if spec.ties else place)
                if rank > spec.k:
                    break
                row = {"window_start": start, "window_end": end, "rank": rank, **event.row}
                order = xxhash64((value, DataType.INT64) for value in (event.time, event.order, event.sub))
                made.append(Event(end - 1, order, 0, False, row_of(row, node.schema)))
    return made


def _window_join(node: QueryVertex, streams: list[list[Event]], schemas: list[Schema]) -> list[Event]:
    spec = spec_of(node, WindowJoinSpec)
    made = []
    for left, right in pairs_of(streams, spec.on):
        shared = set(windows_over([left.time], spec.window)) & set(windows_over([right.time], spec.window))
        for start, end in sorted(shared):
            bounds = {"window_start": start, "window_end": end}
            made.append(paired_event(node, spec.columns, left, right, end - 1, bounds))
    return made


def _interval_join(node: QueryVertex, streams: list[list[Event]], schemas: list[Schema]) -> list[Event]:
    spec = spec_of(node, IntervalJoinSpec)
    return [
        paired_event(node, spec.columns, left, right, max(left.time, right.time), {})
        for left, right in pairs_of(streams, spec.on)
        if spec.lower_us <= right.time - left.time <= spec.upper_us
    ]


def _co_group(node: QueryVertex, streams: list[list[Event]], schemas: list[Schema]) -> list[Event]:
    spec = spec_of(node, CoGroupSpec)
    sides: dict[tuple[Any, ...], tuple[list[Event], list[Event]]] = defaultdict(lambda: ([], []))
    for side, stream in enumerate(streams):
        for event in stream:
            sides[key_of(event.row[pair[side]] for pair in spec.on)][side].append(event)
    made = []
    for both in sides.values():
        for start, end in windows_over([event.time for side in both for event in side], spec.window):
            left, right = (
                ordered_events([event for event in side if start <= event.time < end]) for side in both
            )
            one, side = (left[0], 0) if left else (right[0], 1)
            key = tuple(one.row[pair[side]] for pair in spec.on)
            typed = [(value, schemas[0][ours].dtype) for value, (ours, _) in zip(key, spec.on, strict=True)]
            group = Group(key, start, end, [dict(e.row) for e in left], [dict(e.row) for e in right])
            for index, row in enumerate(spec.function(group)):
                made.append(Event(end - 1, xxhash64(typed), index, False, row_of(row, node.schema)))
    return made


def _group_join(node: QueryVertex, streams: list[list[Event]], schemas: list[Schema]) -> list[Event]:
    spec = spec_of(node, GroupJoinSpec)
    fields = [(name, schemas[side][theirs]) for name, side, theirs in spec.pair]
    paired = Schema([Field(name, field.dtype, field.nullable) for name, field in fields])
    matched: dict[int, list[Event]] = defaultdict(list)
    numbers = {id(event): number for number, event in enumerate(streams[0])}
    for left, right in pairs_of(streams, spec.on):
        row = {name: (left, right)[side].row[theirs] for name, side, theirs in spec.pair}
        if holds(spec.where, row, paired):
            matched[numbers[id(left)]].append(Event(right.time, right.order, right.sub, False, row))
    made = []
    for number, left in enumerate(streams[0]):
        for start, end in windows_over([left.time], spec.window):
            members = [event for event in matched[number] if start <= event.time < end]
            if any(one.function.in_order for _, one in spec.aggregates):
                members = ordered_events(members)
            row = {"window_start": start, "window_end": end, **left.row}
            known = {**bounds_schema(schemas[0])}
            for name, one in spec.aggregates:
                typed = one.result_type(paired)
                row[name] = aggregated(one, members, paired) if members else one.function.of_none
                known[name] = Field(name, typed.dtype, one.function.of_none is None)
            order = xxhash64((value, DataType.INT64) for value in left.place)
            result = projected(spec.columns, row, Schema(known.values()), node.schema)
            made.append(Event(end - 1, order, 0, False, result))
    return made


def _deduplicate(node: QueryVertex, streams: list[list[Event]], schemas: list[Schema]) -> list[Event]:
    spec = spec_of(node, DeduplicateSpec)
    kept = []
    for group in events_by_key(streams[0], spec.keys):
        last: int | None = None
        for event in ordered_events(group):
            if last is None or (spec.within_us is not None and event.time - last >= spec.within_us):
                last = event.time
                kept.append(event)
    return kept


def _process(node: QueryVertex, events: list[Event], schema: Schema, failed: list[Event]) -> list[Event]:
    spec = spec_of(node, ProcessSpec)
    made = []
    for group in events_by_key(events, spec.keys):
        keys = {name: group[0].row[name] for name in spec.keys}
        state = {one.name: None if one.nullable else ZEROS[one.dtype] for one in spec.state}
        timers: set[int] = set()
        context = Context(tuple(keys.values()), state, timers)
        first_state = dict(state)
        seen: list[int] = []  # the time of the last event
        handled: list[int] = []  # times of what was handled, ascending
        fired_at: list[int] = []  # times at which timers fired

        def fire_timers(
            until: int | None,
            context: Context = context,
            keys: Row = keys,
            timers: set[int] = timers,
            handled: list[int] = handled,
            fired_at: list[int] = fired_at,
            seen: list[int] = seen,
        ) -> None:
            fired = 0
            while timers and (until is None or min(timers) <= until):
                fired += 1
                assert fired <= _TIMERS, "timers set timers without end"
                time = min(timers)
                timers.remove(time)
                if spec.ttl_us is not None and time >= seen[-1] + spec.ttl_us:
                    continue
                context.time = max([time, *handled[-1:]])
                handled.append(context.time)
                before = fired_at.count(context.time)
                fired_at.append(context.time)
                order, sub = hash_of(keys, schema), wrapped(before * _SUBS + 1)
                timer = Event(context.time, order, sub, False, {**dict.fromkeys(schema.names), **keys})
                state_before, timers_before = dict(context.state), set(timers)
                failures = len(failed)
                with _set_aside(node, timer, failed, f" (timer at {time})") as took:
                    took += spec.function.on_timer(time, context)
                if len(failed) > failures:
                    context.state = state_before
                    timers.clear()
                    timers |= timers_before
                for index, row in enumerate(took):
                    sub = wrapped(before * _SUBS + 2 * index + 1)
                    made.append(Event(context.time, order, sub, False, row_of(row, node.schema)))

        for event in ordered_events(group):
            fire_timers(event.time)
            if spec.ttl_us is not None and seen and event.time >= seen[-1] + spec.ttl_us:
                context.state = dict(first_state)
                timers.clear()
            context.time = event.time
            handled.append(event.time)
            state_before, timers_before = dict(context.state), set(timers)
            failures = len(failed)
            with _set_aside(node, event, failed) as took:
                took += spec.function.on_event(dict(event.row), context)
            if len(failed) > failures:
                context.state = state_before
                timers.clear()
                timers |= timers_before
            else:
                seen[:] = [event.time]
            for index, row in enumerate(took):
                made.append(with_row(event, row_of(row, node.schema), wrapped(event.sub * _SUBS + 2 * index)))
        fire_timers(None)
    return made


#: Of all runs of one key's matches: some seconds.
_MOST_STEPS = 100_000


def _match(node: QueryVertex, streams: list[list[Event]], schemas: list[Schema]) -> list[Event]:
    spec = spec_of(node, MatchSpec)
    made = []
    for group in events_by_key(streams[0], spec.keys):
        events = ordered_events(group)
        key = Key(spec, schemas[0], [event.row for event in events], [event.place for event in events])
        for report in simulate(key, _MOST_STEPS):
            time, order, sub = report.place
            for index, (bound, row) in enumerate(key.output(report)):
                values = {name: events[bound[-1][1]].row[name] for name in spec.keys}
                values |= {"match_start": report.start, "match_end": report.end, "event": bound[-1][0]} | row
                made.append(Event(time, order, wrapped(sub + 2 * index), False, row_of(values, node.schema)))
    return made


_TIMED: dict[type, Callable[[QueryVertex, list[list[Event]], list[Schema]], list[Event]]] = {
    WindowAggregateSpec: _window_aggregate,
    NestedAggregateSpec: _nested_aggregate,
    WindowTopSpec: _window_top,
    WindowJoinSpec: _window_join,
    IntervalJoinSpec: _interval_join,
    CoGroupSpec: _co_group,
    GroupJoinSpec: _group_join,
    DeduplicateSpec: _deduplicate,
    MatchSpec: _match,
}

#: They call a user's function, and may set aside what it fails for.
_CALLING: dict[type, Callable[[QueryVertex, list[Event], Schema, list[Event]], list[Event]]] = {
    FlatMapSpec: _flat_map,
    BatchSpec: _batch,
    ProcessSpec: _process,
}
