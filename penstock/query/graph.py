"""The graph that queries become: operators as vertices, streams as edges. It is a value; it runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar, assert_never

from penstock.query.connectors import BAD_RECORD_SCHEMA
from penstock.query.errors import UNKNOWN_ORIGIN, Origin
from penstock.query.steps.spec import Spec
from penstock.query.types import Schema

AnySpec = TypeVar("AnySpec", bound=Spec)


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


@dataclass(frozen=True, eq=False)
class QueryVertex:
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
        """The kind of operator in a word: ``filter``, ``agg``."""
        return self.spec.name

    def spec_as(self, kind: type[AnySpec]) -> AnySpec:
        """Its spec, where it is known which kind of step it is."""
        assert isinstance(self.spec, kind), f"'{self.id}' is a {self.kind}"
        return self.spec


@dataclass(frozen=True, eq=False)
class Graph:
    """All queries of an app. Nodes are in topological order: inputs stand before those who read them."""

    nodes: tuple[QueryVertex, ...]
    _by_id: dict[str, QueryVertex] = field(default_factory=dict, repr=False)
    _readers: dict[Input, list[tuple[QueryVertex, int]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._by_id.update((node.id, node) for node in self.nodes)
        for node in self.nodes:
            for index, source in enumerate(node.inputs):
                self._readers.setdefault(source, []).append((node, index))

    def __getitem__(self, node_id: str) -> QueryVertex:
        return self._by_id[node_id]

    def __iter__(self) -> Iterator[QueryVertex]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def input_schema(self, source: Input) -> Schema:
        """The columns that flow along an edge from ``source``."""
        node = self[source.node]
        match source.port:
            case Port.MAIN:
                return node.schema
            case Port.BAD:
                return BAD_RECORD_SCHEMA
            case Port.LATE:
                return self.input_schema(node.inputs[0])
            case Port.LATE_RIGHT:
                return self.input_schema(node.inputs[1])
            case Port.FAILED:
                return node.spec.failed_columns(self.input_schema(node.inputs[0]))
            case _ as port:
                assert_never(port)

    def consumers(self, node_id: str, port: Port = Port.MAIN) -> list[tuple[QueryVertex, int]]:
        """Who reads this output, and as which of their inputs."""
        return list(self._readers.get(Input(node_id, port), ()))

    def sources_above(self, node_id: str) -> frozenset[str]:
        """The sources whose events can reach an operator: its watermark is the least of theirs."""
        found: set[str] = set()
        waiting, seen = [node_id], {node_id}
        while waiting:
            node = self[waiting.pop()]
            if node.spec.name == "source":
                found.add(node.id)
            for source in node.inputs:
                if source.node not in seen:
                    seen.add(source.node)
                    waiting.append(source.node)
        return frozenset(found)
