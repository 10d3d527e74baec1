"""From steps to the graph: collects sources and sinks, merges steps that are the same, and names them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from penstock.query.connectors import Sink, Source
from penstock.query.durations import Duration, duration_us
from penstock.query.errors import Origin, QueryError, Writing
from penstock.query.graph import Graph, Input, QueryVertex
from penstock.query.identity import Identity, identities
from penstock.query.step import Feed, Scope, Step, check_name
from penstock.query.steps import SinkSpec, SourceSpec
from penstock.query.stream.stream import Stream, check_stream
from penstock.query.types import DataType, Schema
from penstock.query.validation import checked_graph, cycle_error


@dataclass(frozen=True)
class _Query:
    """A sink and what it reads."""

    name: str
    feed: Feed
    sink: Sink
    origin: Origin


class GraphBuilder:
    """The sources and sinks of one app, and the graph between them."""

    def __init__(self, name: str) -> None:
        self._scope = Scope(name)
        self._sources: dict[str, Step] = {}
        self._queries: dict[str, _Query] = {}

    @property
    def source_names(self) -> tuple[str, ...]:
        return tuple(self._sources)

    @property
    def sink_names(self) -> tuple[str, ...]:
        return tuple(self._queries)

    def add_source(self, name: str, source: Source, event_time: str, lateness: Duration) -> Stream:
        """Registers a source; its stream is where queries begin."""
        with Writing("source", name) as writing:
            self._check_new(name, "a source's name")
            if not isinstance(source, Source):
                raise QueryError(
                    "not a source", detail=f"got {source!r}", hint="pass e.g. ps.sources.Rows(...)"
                )
            lateness_us = duration_us(lateness, "lateness")
            if lateness_us < 0:
                raise QueryError(
                    "lateness must not be negative", detail=f"got '{lateness}'", hint="write e.g. '2s'"
                )
            schema = source.timed_by(event_time)
            _check_event_time(schema, event_time)
            step = Step(
                scope=self._scope,
                label=name,
                name=name,
                spec=SourceSpec(source, event_time, lateness_us, len(self._sources)),
                inputs=(),
                schema=schema,
                time_column=event_time,
                origin=writing.origin,
            )
            self._sources[name] = step
            return Stream(Feed(step))

    def add_sink(self, name: str, stream: Stream, sink: Sink) -> None:
        """Registers a query: a stream and where its events go."""
        with Writing("sink", name) as writing:
            self._check_new(name, "a sink's name")
            if stream is None:
                raise QueryError(
                    "a sink needs an input", detail="got None", hint=f"app.sink({name!r}, stream, sink)"
                )
            check_stream(stream)
            if not isinstance(sink, Sink):
                raise QueryError("not a sink", detail=f"got {sink!r}", hint="pass e.g. ps.sinks.Memory()")
            scope = stream._feed.step.scope
            if scope is not self._scope:
                raise QueryError(
                    "the stream belongs to another app",
                    detail=f"got one of app '{scope.name}' in app '{self._scope.name}'",
                    hint="make the source in the app that has the sink",
                )
            self._check_target(sink)
            self._queries[name] = _Query(name, stream._feed, sink, writing.origin)

    def _check_target(self, sink: Sink) -> None:
        """Two sinks that write the same files would remove each other's."""
        if sink.target is None:
            return
        unwritable = sink.unwritable()
        if unwritable is not None:
            raise QueryError(
                f"nothing can be written to '{sink.target}'",
                detail=unwritable,
                hint="write a path in a folder that is yours, e.g. 'out/per_lane'",
            )
        for other in self._queries.values():
            if other.sink.target is not None and other.sink.target.absolute() == sink.target.absolute():
                raise QueryError(
                    "two sinks write to the same place",
                    detail=f"sink '{other.name}' writes to '{sink.target}' already",
                    hint="give each sink a path of its own",
                )

    def build(self, share: bool = True) -> Graph:
        """The graph of all queries. With ``share`` the same sub-plan of several queries is one operator."""
        steps = _in_order(query.feed.step for query in self._queries.values())
        known = identities(steps)
        units = list(self._units(steps, known, share))
        ids = self._ids(units, known)
        of = {(unit.query, step): ids[unit] for unit in units for step in unit.steps}

        def inputs(query: str | None, feeds: Iterable[Feed]) -> tuple[Input, ...]:
            """Where a query's own copy of each step went; shared ones belong to no single query."""
            return tuple(
                Input(of.get((query, feed.step)) or of[None, feed.step], feed.port) for feed in feeds
            )

        nodes = []
        for unit in units:
            step = unit.steps[0]
            nodes.append(
                QueryVertex(
                    ids[unit],
                    step.spec,
                    inputs(unit.query, step.inputs),
                    step.schema,
                    step.time_column,
                    step.origin,
                )
            )
        for name, query in self._queries.items():
            owner = None if share else name
            feed = query.feed
            nodes.append(
                QueryVertex(
                    name,
                    SinkSpec(query.sink),
                    inputs(owner, (feed,)),
                    feed.schema,
                    feed.time_column,
                    query.origin,
                )
            )
        return checked_graph(_with_queries(nodes))

    def _units(self, steps: list[Step], known: dict[Step, Identity], share: bool) -> Iterator[_Unit]:
        """What becomes one operator each: first the sources, in the order they were registered."""
        used = set(steps)
        yield from (_Unit(None, (step,)) for step in self._sources.values() if step in used)
        operators = [step for step in steps if not isinstance(step.spec, SourceSpec)]
        if share:
            classes: defaultdict[int, list[Step]] = defaultdict(list)
            for step in operators:
                classes[known[step].same].append(step)
            yield from (_Unit(None, tuple(same)) for same in classes.values())
            return
        for name, query in self._queries.items():
            for step in _in_order((query.feed.step,)):
                if not isinstance(step.spec, SourceSpec):
                    yield _Unit(name, (step,))

    def _ids(self, units: list[_Unit], known: dict[Step, Identity]) -> dict[_Unit, str]:
        taken = {*self._sources, *self._queries}
        named: dict[str, Step] = {}
        ids: dict[_Unit, str] = {}
        for unit in units:
            step = next((step for step in unit.steps if step.name), None)
            if step is None or step.name is None:
                continue
            if isinstance(step.spec, SourceSpec):
                ids[unit] = step.name
                continue
            other = named.setdefault(step.name, step)
            if (
                step.name in self._sources
                or step.name in self._queries
                or known[other].same != known[step].same
            ):
                what = "a sink" if step.name in self._queries else "a source"
                what = (
                    what if known[other].same == known[step].same else f"the step written at {other.origin}"
                )
                raise QueryError(
                    "duplicate name",
                    step=step.name,
                    detail=f"is called like {what}",
                    hint="names are ids in metrics and errors: give it another, or none",
                    origin=step.origin,
                )
            ids[unit] = _free(step.name, taken)
        for unit in units:
            if unit not in ids:
                step = unit.steps[0]
                ids[unit] = _free(f"{step.spec.name}-{known[step].digest[:6]}", taken)
        return ids

    def _check_new(self, name: str, what: str) -> None:
        check_name(name, what)
        for others, kind in ((self._sources, "source"), (self._queries, "sink")):
            if name in others:
                raise QueryError(
                    f"duplicate name '{name}'",
                    detail=f"a {kind} of that name was written at {_origin(others[name])}",
                    hint="sources and sinks need names of their own",
                )


@dataclass(frozen=True, eq=False)
class _Unit:
    """Steps that become one operator, and the query it is for (None: for all that read it)."""

    query: str | None
    steps: tuple[Step, ...]


def _in_order(ends: Iterable[Step]) -> list[Step]:
    """All steps that these depend on, each once, inputs first. Not recursive: pipelines may be long."""
    done: dict[Step, None] = {}
    for end in ends:
        path: dict[Step, Iterator[Feed]] = {}
        if end not in done:
            path[end] = iter(end.inputs)
        while path:
            step, rest = next(reversed(path.items()))
            feed = next(rest, None)
            if feed is None:
                del path[step]
                done[step] = None
            elif feed.step in path:
                steps = list(path)
                around = [*steps[steps.index(feed.step) :], feed.step]
                raise cycle_error([(one.label, one.origin) for one in reversed(around)])
            elif feed.step not in done:
                path[feed.step] = iter(feed.step.inputs)
    return list(done)


def _with_queries(nodes: list[QueryVertex]) -> list[QueryVertex]:
    """Tells every node which sinks its events can reach."""
    reached: defaultdict[Hashable, set[str]] = defaultdict(set)
    for node in reversed(nodes):
        if isinstance(node.spec, SinkSpec):
            reached[node.id].add(node.id)
        for source in node.inputs:
            reached[source.node] |= reached[node.id]
    return [
        QueryVertex(
            node.id,
            node.spec,
            node.inputs,
            node.schema,
            node.time_column,
            node.origin,
            frozenset(reached[node.id]),
        )
        for node in nodes
    ]


def _check_event_time(schema: Schema, event_time: object) -> None:
    stamps = [field.name for field in schema if field.dtype is DataType.TIMESTAMP and not field.nullable]
    fits = (
        f"columns that would fit: {', '.join(stamps)}"
        if stamps
        else "declare a column as 'timestamp' in its schema"
    )
    if not isinstance(event_time, str) or event_time not in schema:
        raise QueryError(
            f"unknown column {event_time!r}",
            detail=f"as event time of {', '.join(map(str, schema))}",
            hint=fits,
        )
    field = schema[event_time]
    if field.dtype is not DataType.TIMESTAMP:
        raise QueryError("the event time must be a timestamp", detail=f"got {field}", hint=fits)
    if field.nullable:
        raise QueryError("the event time must never be null", detail=f"got {field}", hint=fits)


def _free(base: str, taken: set[str]) -> str:
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


def _origin(entry: Step | _Query) -> Origin:
    return entry.origin
