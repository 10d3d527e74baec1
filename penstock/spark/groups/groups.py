"""Groups of queries as users name them, and the part of a graph that one group runs."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from penstock.cep.selections.detection_graph import for_many_tasks
from penstock.checkpoints.folders import alike
from penstock.connectors.reader import NodeSource
from penstock.operators.by_start import with_instances
from penstock.operators.run.projections import without_plain_projections
from penstock.placement.query_groups import QueryGroups
from penstock.query.errors import PenstockError, RunError
from penstock.query.graph import Graph
from penstock.query.steps import MatchSetSpec, SinkSpec, SourceSpec

AUTO = "auto"
#: None: all queries in one group; "auto": by what was measured; or the names of the queries of each group.
GroupsOption = str | Sequence[Sequence[str]] | None


def check_option(groups: GroupsOption) -> None:
    """Raises unless it is one of the forms that users may write; names are checked against the app later."""
    if groups is None or groups == AUTO:
        return
    if isinstance(groups, str) or not all(_is_names(group) for group in groups):
        raise PenstockError(
            f'groups must be "auto" or lists of queries\' names: got {groups!r}; '
            'write e.g. groups=[["heavy"], ["light_1", "light_2"]]'
        )


def _is_names(group: object) -> bool:
    return isinstance(group, list | tuple) and all(isinstance(query, str) for query in group)


def named_groups(groups: Sequence[Sequence[str]], graph: Graph) -> QueryGroups:
    """The groups as written; queries that no group names are one more group together."""
    queries = queries_of(graph)
    seen: set[str] = set()
    for group in groups:
        for query in group:
            if query not in queries:
                near = difflib.get_close_matches(query, queries, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"queries are {', '.join(queries[:10])}"
                raise PenstockError(f"groups name an unknown query: '{query}'; {hint}")
            if query in seen:
                raise PenstockError(f"groups name query '{query}' twice: a query runs in one group")
            seen.add(query)
    rest = tuple(query for query in queries if query not in seen)
    return tuple(tuple(group) for group in (*groups, rest) if group)


def queries_of(graph: Graph) -> list[str]:
    """The names of an app's queries, in the order of its sinks."""
    return [node.id for node in graph.nodes if isinstance(node.spec, SinkSpec)]


def part_of(graph: Graph, queries: Sequence[str]) -> Graph:
    """The operators that these queries need. They keep their ids, and with them their state."""
    chosen = frozenset(queries)
    counted = alike(with_instances(for_many_tasks(without_plain_projections(graph))))
    return Graph(
        tuple(
            replace(node, queries=node.queries & chosen, alike=counted.get(node.id, 1))
            for node in graph.nodes
            if (node.id in chosen if isinstance(node.spec, SinkSpec) else node.queries & chosen)
        )
    )


def check_sources(graph: Graph, groups: QueryGroups) -> None:
    """Raises if two groups would have to listen to a source that can be heard only once."""
    for node in graph.nodes:
        if not (isinstance(node.spec, SourceSpec) and isinstance(node.spec.source, NodeSource)):
            continue
        readers = [group for group in groups if not node.queries.isdisjoint(group)]
        if node.spec.source.heard_once and len(readers) > 1:
            raise RunError(
                f"source '{node.id}' cannot be read by {len(readers)} groups: what a connection sends is "
                f"heard by one reader only; put queries {', '.join(sorted(node.queries)[:5])} into one group"
            )


def check_pattern_sets(graph: Graph, groups: QueryGroups) -> None:
    """Raises if a pattern set would be in two groups: they come to an event time at different moments, and a
    change must be made by both at the same."""
    for node in graph.nodes:
        if isinstance(node.spec, MatchSetSpec):
            users = [group for group in groups if not node.queries.isdisjoint(group)]
            if len(users) > 1:
                raise RunError(
                    f"pattern set '{node.id}' cannot be in {len(users)} groups: its changes are made in one "
                    f"place; put queries {', '.join(sorted(node.queries)[:5])} into one group"
                )
