"""The graph that queries become: operators as vertices, streams as edges. It is a value; it runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from penstock.query.aggregates import Aggregate
from penstock.query.connectors import BAD_RECORD_SCHEMA, Sink, Source
from penstock.query.errors import UNKNOWN_ORIGIN, Origin
from penstock.query.expr import Expr
from penstock.query.failures import OnError, failed_schema
from penstock.query.patterns.degree import Degree
from penstock.query.patterns.modes import AfterMatch, Contiguity
from penstock.query.patterns.patterns import Pattern
from penstock.query.types import Schema
from penstock.query.windows import Sliding, Window
from penstock.query.word import LATER

Version = int | str | None
NamedExprs = tuple[tuple[str, Expr], ...]


class Port(Enum):
    """Which of an operator's outputs an edge starts from."""

    MAIN = "main"
    LATE = "late"  # events that came after the lateness their source declared
    LATE_RIGHT = "late_right"  # the same, of the second input of a join or co-group
    BAD = "bad"  # records that could not be read
    FAILED = "failed"  # events for which the step's function failed


@dataclass(frozen=True)
class Input:
    """One input of an operator: the operator and the output it reads."""

    node: str
    port: Port = Port.MAIN


# -- what an operator does: one description per kind ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SourceSpec:
    source: Source
    event_time: str
    lateness_us: int
    number: int = 0  # in the order of registration, used or not: settles ties between sources


@dataclass(frozen=True, eq=False)
class FilterSpec:
    predicate: Expr


@dataclass(frozen=True, eq=False)
class SelectSpec:
    """One event in, one out, with these columns."""

    columns: NamedExprs


@dataclass(frozen=True, eq=False)
class ExplodeSpec:
    """One event in; out, one event per row whose condition holds (None: always)."""

    rows: tuple[NamedExprs, ...]
    conditions: tuple[Expr | None, ...]


@dataclass(frozen=True, eq=False)
class FlatMapSpec:
    """``function(event: dict) -> iterable of dict``: any Python, at the price of Python."""

    function: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]
    on_error: OnError = OnError.STOP
    version: Version = field(default=None, metadata=LATER)  # of the function, as its user counts


@dataclass(frozen=True, eq=False)
class BatchSpec:
    """``function(columns) -> columns`` over many events at once, each treated by itself.

    With ``arrow`` the function takes and returns a ``pyarrow.RecordBatch``, else a dict of numpy arrays.
    Fewer or more rows than came in: the result's ``_row`` column says from which input row each output row
    is made.
    """

    function: Callable[[Any], Any]
    arrow: bool
    on_error: OnError = OnError.STOP
    version: Version = field(default=None, metadata=LATER)  # of the function, as its user counts


@dataclass(frozen=True, eq=False)
class UnionSpec:
    pass


@dataclass(frozen=True, eq=False)
class LookupSpec:
    """Join with a static table on equal keys. ``left`` keeps events without a match, with nulls."""

    table: Any  # pyarrow.Table; its keys are unique
    on: tuple[tuple[str, str], ...]  # (column of the stream, column of the table)
    columns: tuple[tuple[str, str], ...]  # (name in the result, column of the table)
    left: bool


@dataclass(frozen=True, eq=False)
class WindowAggregateSpec:
    """Emits once per key and window: the keys, ``window_start``, ``window_end``, the aggregates."""

    keys: tuple[str, ...]
    window: Window
    aggregates: tuple[tuple[str, Aggregate], ...]


@dataclass(frozen=True, eq=False)
class NestedAggregateSpec:
    """Aggregates of aggregates: per key and window, first one row per ``per``, then one of those rows.

    Of the events for which ``where`` is true, ``inner`` are the aggregates per (keys, per) and window;
    ``aggregates`` are those over the inner rows for which ``having`` is true, if there are any. A row of
    results for which ``keep`` is not true is left out.
    """

    keys: tuple[str, ...]
    window: Sliding
    per: tuple[str, ...]
    inner: tuple[tuple[str, Aggregate], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    where: Expr | None
    having: Expr | None
    keep: Expr | None


@dataclass(frozen=True, eq=False)
class WindowTopSpec:
    """The k events with the largest (or smallest) ``by`` per key and window, with their ``rank`` from 1.

    ``then`` decides among equal ones: expressions, and whether the largest comes first. Nulls rank after
    everything; what is still equal goes by (event time, source, offset), or with ``ties`` has the same rank,
    and comes out as a whole.
    """

    keys: tuple[str, ...]
    window: Sliding
    k: int
    by: Expr
    descending: bool
    then: tuple[tuple[Expr, bool], ...] = field(default=(), metadata=LATER)
    ties: bool = field(default=False, metadata=LATER)

    @property
    def order(self) -> tuple[tuple[Expr, bool], ...]:
        """All that it ranks by, the first first."""
        return ((self.by, self.descending), *self.then)


@dataclass(frozen=True, eq=False)
class WindowJoinSpec:
    """Pairs of events of two streams with equal keys in the same window."""

    on: tuple[tuple[str, str], ...]
    window: Sliding
    columns: tuple[tuple[str, int, str], ...]  # (name in the result, input 0 or 1, its name there)


@dataclass(frozen=True, eq=False)
class IntervalJoinSpec:
    """Pairs with equal keys and ``lower <= right time - left time <= upper`` (microseconds)."""

    on: tuple[tuple[str, str], ...]
    lower_us: int
    upper_us: int
    columns: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, eq=False)
class CoGroupSpec:
    """``function(group) -> iterable of dict``, once per key and window with the events of both sides.

    ``group`` is a :class:`penstock.query.user_functions.Group`; both sides are in (event time, source,
    offset) order.
    """

    on: tuple[tuple[str, str], ...]
    window: Sliding
    function: Callable[[Any], Iterable[dict[str, Any]]]


@dataclass(frozen=True, eq=False)
class GroupJoinSpec:
    """Every event of the left stream once per window, with aggregates over the events that match it.

    Those are the right stream's events in the same window with equal keys for which ``where`` is true of the
    pair. ``pair`` names the columns of a pair, which ``where`` and the aggregates read; ``columns`` are
    computed from the window's bounds, the left columns and the aggregates.
    """

    on: tuple[tuple[str, str], ...]
    window: Sliding
    pair: tuple[tuple[str, int, str], ...]  # (name in the pair, input 0 or 1, its name there)
    where: Expr | None
    aggregates: tuple[tuple[str, Aggregate], ...]
    columns: NamedExprs


@dataclass(frozen=True, eq=False)
class DeduplicateSpec:
    """The first event per key by (event time, source, offset); with ``within_us``, again after that long."""

    keys: tuple[str, ...]
    within_us: int | None


@dataclass(frozen=True, eq=False)
class ProcessSpec:
    """A function per key with state and timers; events come in (event time, source, offset) order.

    With ``ttl_us``, a key without an event for that long is forgotten, its timers with it.
    """

    keys: tuple[str, ...]
    function: Any  # penstock.query.user_functions.ProcessFunction
    state: Schema
    ttl_us: int | None = None
    on_error: OnError = OnError.STOP
    version: Version = field(default=None, metadata=LATER)  # of the function, as its user counts


@dataclass(frozen=True, eq=False)
class MatchSpec:
    """Reports the matches of a pattern per key; events come in (event time, source, offset) order.

    ``columns`` are computed from the events that a match has bound; with ``all_rows`` there is a row per
    bound event, as of that event. See ``docs/design/2026-11-16-patterns.md``.
    """

    keys: tuple[str, ...]
    pattern: Pattern
    within_us: int | None
    within_events: int | None
    contiguity: Contiguity
    after: AfterMatch
    consumed: bool  # events of a reported match are in no other
    columns: NamedExprs
    all_rows: bool
    max_runs: int  # per key; by start, per first event
    degree: Degree | None = None  # by start: how many instances share the first events
    by_start: bool = False  # it is one of the three steps that such a match becomes: keys are instances


@dataclass(frozen=True, eq=False)
class MatchSplitSpec:
    """Deals out the events that could begin a match to the instances of a match by start."""

    match: MatchSpec
    degree: Degree


@dataclass(frozen=True, eq=False)
class MatchMergeSpec:
    """Puts the matches that the instances of a match by start have found into one order."""


@dataclass(frozen=True, eq=False)
class MatchSetSpec:
    """Reports the matches of patterns that change while the app runs."""

    keys: tuple[str, ...]
    patterns: Any  # penstock.query.patterns.sets.PatternSet


@dataclass(frozen=True, eq=False)
class DetectSpec:
    """Cuts the stream into selections, looks at each of them whole, and gives what it finds one order.

    ``selections`` makes a :class:`penstock.detection.Predicates`, ``detector`` a
    :class:`penstock.detection.Detector`. A row has ``sequence``, consecutive from 0, ``closed_at``, the time
    of the event that closed its selection, and ``outputs``.
    """

    selections: Callable[[], Any]
    detector: Callable[[], Any]
    outputs: tuple[tuple[str, int, str], ...]  # (name in the result, which event of the match, its column)
    degree: Degree
    assignment: str  # which instance gets a selection
    version: Version = field(default=None, metadata=LATER)  # of the function, as its user counts


@dataclass(frozen=True, eq=False)
class SinkSpec:
    sink: Sink


Spec = (
    SourceSpec
    | FilterSpec
    | SelectSpec
    | ExplodeSpec
    | FlatMapSpec
    | BatchSpec
    | UnionSpec
    | LookupSpec
    | WindowAggregateSpec
    | NestedAggregateSpec
    | WindowTopSpec
    | WindowJoinSpec
    | IntervalJoinSpec
    | CoGroupSpec
    | GroupJoinSpec
    | DeduplicateSpec
    | ProcessSpec
    | MatchSpec
    | MatchSplitSpec
    | MatchMergeSpec
    | MatchSetSpec
    | DetectSpec
    | SinkSpec
)


def sets_aside(spec: Spec) -> bool:
    """Whether the step has a failed output."""
    return isinstance(spec, FlatMapSpec | BatchSpec | ProcessSpec) and spec.on_error is OnError.SET_ASIDE


def failed_columns(spec: Spec, events: Schema) -> Schema:
    """The columns of the failed output of a step over these events."""
    return failed_schema(events, spec.keys if isinstance(spec, ProcessSpec) else None)


KINDS: dict[type, str] = {
    SourceSpec: "source",
    FilterSpec: "filter",
    SelectSpec: "select",
    ExplodeSpec: "explode",
    FlatMapSpec: "flat_map",
    BatchSpec: "batch",
    UnionSpec: "union",
    LookupSpec: "lookup",
    WindowAggregateSpec: "window",
    NestedAggregateSpec: "nested",
    WindowTopSpec: "top",
    WindowJoinSpec: "join",
    IntervalJoinSpec: "interval_join",
    CoGroupSpec: "cogroup",
    GroupJoinSpec: "group_join",
    DeduplicateSpec: "deduplicate",
    ProcessSpec: "process",
    MatchSpec: "match",
    MatchSplitSpec: "match_splitter",
    MatchMergeSpec: "match_merger",
    MatchSetSpec: "match_set",
    DetectSpec: "detect",
    SinkSpec: "sink",
}


@dataclass(frozen=True, eq=False)
class Node:
    """One operator of the graph."""

    id: str
    spec: Spec
    inputs: tuple[Input, ...]
    schema: Schema  # of the MAIN output; a sink's is its input's
    #: The visible column that always equals the event time, where there is one.
    time_column: str | None
    origin: Origin = UNKNOWN_ORIGIN
    #: Names of the sinks that this operator's events can reach.
    queries: frozenset[str] = frozenset()
    #: In a part of a graph: how many steps of the whole say the same as this one, which then are told apart
    #: by their order alone. 0: the graph is whole.
    alike: int = 0
    #: The user's step that it is a part of, where a runtime makes several operators of one step.
    step: str = ""

    @property
    def kind(self) -> str:
        """The kind of operator in a word: ``filter``, ``window_aggregate``."""
        return KINDS[type(self.spec)]


@dataclass(frozen=True, eq=False)
class Graph:
    """All queries of an app. Nodes are in topological order: inputs stand before those who read them."""

    nodes: tuple[Node, ...]
    _by_id: dict[str, Node] = field(default_factory=dict, repr=False)
    _readers: dict[Input, list[tuple[Node, int]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._by_id.update((node.id, node) for node in self.nodes)
        for node in self.nodes:
            for index, source in enumerate(node.inputs):
                self._readers.setdefault(source, []).append((node, index))

    def __getitem__(self, node_id: str) -> Node:
        return self._by_id[node_id]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def input_schema(self, source: Input) -> Schema:
        """The columns that flow along an edge from ``source``."""
        node = self[source.node]
        if source.port is Port.BAD:
            return BAD_RECORD_SCHEMA
        if source.port is Port.LATE:
            return self.input_schema(node.inputs[0])
        if source.port is Port.LATE_RIGHT:
            return self.input_schema(node.inputs[1])
        if source.port is Port.FAILED:
            return failed_columns(node.spec, self.input_schema(node.inputs[0]))
        return node.schema

    def consumers(self, node_id: str, port: Port = Port.MAIN) -> list[tuple[Node, int]]:
        """Who reads this output, and as which of their inputs."""
        return list(self._readers.get(Input(node_id, port), ()))
