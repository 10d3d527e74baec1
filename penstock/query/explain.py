"""Graphs as people read them: an indented tree from the sources to the sinks, and a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.query.graph import Graph, Port, QueryVertex
from penstock.query.steps import SinkSpec, SourceSpec
from penstock.query.steps.spec import Spec

_LONGEST = 160  # characters of one description; the rest of a long expression is left out


def explain_text(graph: Graph, title: str, places: Mapping[str, str] | None = None) -> str:
    """The graph as a tree; an operator with several inputs stands under the first, the others point to it.

    ``places`` says where operators run.
    """
    queries = sum(isinstance(node.spec, SinkSpec) for node in graph)
    shared = sum(is_shared(node) for node in graph)
    lines = [
        f"{title}: {_plural(queries, 'query', 'queries')}, {_plural(len(graph), 'operator')}, {shared} shared"
    ]
    told: set[str] = set()
    for node in graph:
        if isinstance(node.spec, SourceSpec):
            lines += ["", *_tree(graph, node, told, places or {})]
    return "\n".join(lines)


def explain_mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart; operators that several queries share are drawn thick."""
    lines = ["flowchart LR"]
    names = {node.id: f"n{index}" for index, node in enumerate(graph)}
    for node in graph:
        label = "<br/>".join(
            _escaped(part)
            for part in (node.id, describe(node.spec), ", ".join(node.schema.names), _mark(node))
            if part
        )
        left, right = ("([", "])") if isinstance(node.spec, SourceSpec | SinkSpec) else ("[", "]")
        lines.append(f'    {names[node.id]}{left}"{label}"{right}')
    for node in graph:
        for source in node.inputs:
            arrow = "-->" if source.port is Port.MAIN else f'-. "{source.port.value}" .->'
            lines.append(f"    {names[source.node]} {arrow} {names[node.id]}")
    shared = [names[node.id] for node in graph if is_shared(node)]
    if shared:
        lines.append("    classDef shared stroke-width:3px")
        lines.append(f"    class {','.join(shared)} shared")
    return "\n".join(lines)


def is_shared(node: QueryVertex) -> bool:
    """Whether several queries read the operator."""
    return len(node.queries) > 1


def describe(spec: Spec) -> str:
    """What an operator does, in a line.

    >>> from penstock.query.expr import col
    >>> from penstock.query.steps import FilterSpec
    >>> describe(FilterSpec(col("speed") > 30))
    'filter (speed > 30)'
    """
    text = spec.text()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _tree(graph: Graph, root: QueryVertex, told: set[str], places: Mapping[str, str]) -> Iterator[str]:
    """Depth first, without recursion: (node, port it is read from, indents so far, is it the last child)."""
    stack: list[tuple[QueryVertex, Port, str, str]] = [(root, Port.MAIN, "", "")]
    while stack:
        node, port, indent, branch = stack.pop()
        via = "" if port is Port.MAIN else f"[{port.value}] "
        if node.id in told:
            yield f"{indent}{branch}{via}{node.id} (see above)"
            continue
        told.add(node.id)
        mark = f"  {_mark(node)}" if is_shared(node) else ""
        mark += f"  @ {places[node.id]}" if node.id in places else ""
        typed = isinstance(node.spec, SourceSpec)
        columns = ", ".join(str(field) if typed else field.name for field in node.schema)
        columns = "" if isinstance(node.spec, SinkSpec) else f" → {columns}"
        yield f"{indent}{branch}{via}{node.id}: {describe(node.spec)}{columns}{mark}"
        below = indent + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        readers = list(
            dict.fromkeys((reader, one) for one in Port for reader, _ in graph.consumers(node.id, one))
        )
        for index in reversed(range(len(readers))):
            reader, source = readers[index]
            stack.append((reader, source, below, "└─ " if index == len(readers) - 1 else "├─ "))


def _mark(node: QueryVertex) -> str:
    return f"(shared by {len(node.queries)} queries)" if is_shared(node) else ""


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _escaped(text: str) -> str:
    """As Mermaid's entity codes, so that no character of a name or constant can end the label."""
    return "".join(
        f"#{ord(char)};" if char in '#"<>&`\\' or not char.isprintable() else char for char in text
    )
