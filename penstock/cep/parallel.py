"""Parallel detection as steps of a graph: a splitter, instances and a merger in place of one detector.

All three kinds are operators like any other: they take turns under the scheduling policy, their rows
wait in edges and their watermarks keep order. Events stay with the splitter, each once; what goes to the
instances are the bounds of selections.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from penstock.cep.assignment import Assignment
from penstock.cep.instances import Detector, EventBuffer
from penstock.cep.parallel_operators import InstanceOperator, MergerOperator, SplitterOperator
from penstock.cep.selections import Predicates
from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.base import Build, Operator
from penstock.operators.custom import CustomSpec
from penstock.query.errors import PenstockError
from penstock.query.graph import Graph, Input, Node
from penstock.query.types import DataType, Field, Schema

if TYPE_CHECKING:  # it loads statistics that few need
    from penstock.cep.degree_control import DegreeControl

#: The columns of a selection on its way to its instance.
SELECTION = Schema(
    [
        Field("instance", DataType.INT64),
        Field("number", DataType.INT64),
        Field("start", DataType.INT64),
        Field("stop", DataType.INT64),
        Field("closer", DataType.INT64),
        Field("closed_at", DataType.TIMESTAMP),
    ]
)
_FOUND = (
    Field("number", DataType.INT64),
    Field("closer", DataType.INT64),
    Field("rank", DataType.INT64),
    Field("closed_at", DataType.TIMESTAMP),
)


@dataclass(frozen=True)
class Output:
    """One column of a match: ``column`` of the event that its ``step``-th place matched."""

    name: str
    step: int
    column: str


@dataclass
class Detection:
    """What the parts of one parallel detector share while they run.

    ``wanted`` is the degree asked for; the splitter changes to it when it next cuts. ``changes`` asks
    for a degree once the stream has come to a position, which is the same in every run.
    """

    predicates: Callable[[], Predicates]
    detector: Callable[[], Detector]
    most: int  # instances that there are operators for
    degree: int
    outputs: tuple[Output, ...]
    rule: Assignment = Assignment.ROUND_ROBIN
    changes: tuple[tuple[int, int], ...] = ()
    control: Callable[[], DegreeControl] | None = None
    wanted: int = 0
    # metrics: what was calculated last, what the fleet will be, and what gets selections now
    planned: int = 0
    requested: int = 0
    observed: int = 0
    degrees_seen: list[int] = field(default_factory=list)
    buffer: EventBuffer = field(default_factory=EventBuffer)
    done: deque[Any] = field(default_factory=deque)  # numbers of selections that instances are done with

    def request(self, degree: int) -> None:
        """Asks for another degree, from any thread."""
        if not 1 <= degree <= self.most:
            raise PenstockError(f"degree must be from 1 to {self.most}, the instances built: got {degree}")
        self.wanted = degree

    def begin(self) -> None:
        """A new run."""
        self.wanted = self.degree
        self.buffer, self.done = EventBuffer(), deque()
        self.degrees_seen = []


@dataclass(frozen=True, eq=False)
class SplitterSpec(CustomSpec):
    detection: Detection
    kind: ClassVar[str] = "splitter"

    def needs(self, index: int, visible: frozenset[str]) -> set[str]:
        return {TIME, LATE, ORDER, SUB, *visible}

    def build(self, build: Build) -> Operator:
        self.detection.begin()
        return SplitterOperator(build, self.detection)


@dataclass(frozen=True, eq=False)
class InstanceSpec(CustomSpec):
    detection: Detection
    number: int
    kind: ClassVar[str] = "instance"

    def needs(self, index: int, visible: frozenset[str]) -> set[str]:
        return set(visible)

    def build(self, build: Build) -> Operator:
        return InstanceOperator(build, self.detection, self.number)


@dataclass(frozen=True, eq=False)
class MergerSpec(CustomSpec):
    kind: ClassVar[str] = "merger"

    def needs(self, index: int, visible: frozenset[str]) -> set[str]:
        return set(visible)

    def build(self, build: Build) -> Operator:
        return MergerOperator(build)


def with_detection(
    graph: Graph,
    above: str,
    name: str,
    *,
    predicates: Callable[[], Predicates],
    detector: Callable[[], Detector],
    outputs: Sequence[Output],
    degree: int = 1,
    most: int = 1,
    changes: Sequence[tuple[int, int]] = (),
    control: Callable[[], DegreeControl] | None = None,
    rule: Assignment = Assignment.ROUND_ROBIN,
) -> tuple[Graph, Detection]:
    """The graph with a parallel detector behind step ``above``: whoever read that step's events reads
    matches.

    control: what sets the degree while it runs; without it, ``changes`` and :meth:`Detection.request` do.

    A match has ``sequence``, consecutive from 0, ``closed_at``, when its selection was closed, and
    ``outputs``.
    """
    if not 1 <= degree <= most:
        raise PenstockError(
            f"step '{name}': degree must be from 1 to {most}, the instances built; got {degree}"
        )
    detection = Detection(predicates, detector, most, degree, tuple(outputs), rule, tuple(changes), control)
    events = graph[above].schema
    fields = [_renamed(events, output, name) for output in outputs]
    first = _node(f"{name}.splitter", SplitterSpec(detection), [above], SELECTION)
    found = Schema([*_FOUND, *fields])
    instances = [
        _node(f"{name}.instance{number}", InstanceSpec(detection, number), [first.id], found)
        for number in range(most)
    ]
    merged = Schema([Field("sequence", DataType.INT64), Field("closed_at", DataType.TIMESTAMP), *fields])
    last = _node(name, MergerSpec(), [one.id for one in instances], merged)
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = tuple(Input(name) if source == Input(above) else source for source in node.inputs)
        changed = inputs != node.inputs
        schema = merged if changed and not graph.consumers(node.id) else node.schema
        time = "closed_at" if changed else node.time_column
        nodes.append(Node(node.id, node.spec, inputs, schema, time, node.origin, node.queries))
        if node.id == above:
            nodes += [first, *instances, last]
    return Graph(tuple(nodes)), detection


def _node(node_id: str, spec: CustomSpec, inputs: Sequence[str], schema: Schema) -> Node:
    return Node(node_id, cast(Any, spec), tuple(Input(name) for name in inputs), schema, "closed_at")


def _renamed(events: Schema, output: Output, step: str) -> Field:
    known = {field.name: field for field in events}
    if output.column not in known:
        raise PenstockError(f"step '{step}': no column '{output.column}'; there are {', '.join(known)}")
    return Field(output.name, known[output.column].dtype, known[output.column].nullable)
