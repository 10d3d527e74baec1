"""Graphs as people read them: an indented tree from the sources to the sinks, and a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.query.aggregates import Aggregate
from penstock.query.durations import duration_text
from penstock.query.expr import Column, Expr
from penstock.query.graph import (
    BatchSpec,
    CoGroupSpec,
    DeduplicateSpec,
    DetectSpec,
    ExplodeSpec,
    FilterSpec,
    FlatMapSpec,
    Graph,
    GroupJoinSpec,
    IntervalJoinSpec,
    LookupSpec,
    MatchSetSpec,
    MatchSpec,
    MatchSplitSpec,
    NamedExprs,
    NestedAggregateSpec,
    Node,
    Port,
    ProcessSpec,
    SelectSpec,
    SinkSpec,
    SourceSpec,
    Spec,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowTopSpec,
)
from penstock.query.identity import function_name, kind_of
from penstock.query.patterns.matching import coupling
from penstock.query.patterns.modes import AfterMatch

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


def is_shared(node: Node) -> bool:
    """Whether several queries read the operator."""
    return len(node.queries) > 1


def describe(spec: Spec) -> str:
    """What an operator does, in a line.

    >>> from penstock.query.expr import col
    >>> describe(FilterSpec(col("speed") > 30))
    'filter (speed > 30)'
    """
    text = f"{kind_of(spec)} {_details(spec)}".rstrip()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _details(spec: Spec) -> str:
    match spec:
        case SourceSpec(source, event_time, lateness_us, _):
            return f"{type(source).__name__}, event time {event_time}, lateness {duration_text(lateness_us)}"
        case SinkSpec(sink):
            return type(sink).__name__
        case FilterSpec(predicate):
            return repr(predicate)
        case SelectSpec(columns):
            return _columns(columns)
        case ExplodeSpec(rows, conditions):
            told = []
            for row, condition in zip(rows, conditions, strict=True):
                told.append(f"({_columns(row)})" + ("" if condition is None else f" where {condition!r}"))
            return ", ".join(told)
        case FlatMapSpec(function):
            return function_name(function)
        case BatchSpec(function, arrow):
            return function_name(function) + (" on Arrow" if arrow else "")
        case LookupSpec(table, on, _, left):
            return f"in {table.num_rows} rows on {_pairs(on)}" + (", left" if left else "")
        case WindowAggregateSpec(keys, window, aggregates):
            return f"{_by(keys)}{window}: {_aggregates(aggregates)}"
        case NestedAggregateSpec(keys, window, per, inner, aggregates, where, having, keep):
            nested = f"per {', '.join(per)}" + (f" {_aggregates(inner)}" if inner else "")
            nested += _where(where) + _where(having, "having")
            return f"{_by(keys)}{window}: {_aggregates(aggregates)} of ({nested}){_where(keep, 'having')}"
        case WindowTopSpec(keys, window, k):
            ranked = [f"{'largest' if descending else 'smallest'} {by!r}" for by, descending in spec.order]
            return f"{k}{' with ties' if spec.ties else ''}, {_by(keys)}{window}: {', then '.join(ranked)}"
        case WindowJoinSpec(on, window, _):
            return f"on {_pairs(on)}, {window}"
        case IntervalJoinSpec(on, lower_us, upper_us, _):
            return f"on {_pairs(on)}, from {duration_text(lower_us)} to {duration_text(upper_us)}"
        case CoGroupSpec(on, window, function):
            return f"on {_pairs(on)}, {window}: {function_name(function)}"
        case GroupJoinSpec(on, window, _, where, aggregates, columns):
            return (
                f"on {_pairs(on)}, {window}{_where(where)}: {_aggregates(aggregates)} → {_columns(columns)}"
            )
        case DeduplicateSpec(keys, within_us):
            return _by(keys) + ("for ever" if within_us is None else f"within {duration_text(within_us)}")
        case ProcessSpec(keys, function, _, ttl_us):
            kept = "" if ttl_us is None else f", kept for {duration_text(ttl_us)}"
            return f"{_by(keys)}{function_name(function)}{kept}"
        case MatchSpec(_, pattern):
            return f"{_parallel(spec)}: {pattern!r}, {_matching(spec)}"
        case MatchSplitSpec(match):
            return f"by start: {match.pattern!r}, {_matching(match)}"
        case MatchSetSpec(keys, patterns):
            return f"{_by(keys)}{', '.join(patterns.names) or 'no patterns yet'}, parallel by key only"
        case DetectSpec(selections, detector, _, degree):
            made = f"{function_name(detector)} in selections of {function_name(selections)}"
            return f"{made}, parallel by selection, {degree}"
    return ""


def _matching(spec: MatchSpec) -> str:
    """How it matches."""
    told = [f"contiguity {spec.contiguity.value}"]
    told += [] if spec.within_us is None else [f"within {duration_text(spec.within_us)}"]
    told += [] if spec.within_events is None else [f"within {spec.within_events} events"]
    told += [] if spec.after is AfterMatch.NO_SKIP else [f"after match {spec.after.value}"]
    told += ["consumed"] if spec.consumed else []
    return ", ".join(told)


def _parallel(spec: MatchSpec) -> str:
    """What runs in parallel. It comes first: a long pattern may be cut off."""
    if spec.keys:
        return f"by {', '.join(spec.keys)}"
    if spec.degree is not None:
        return f"by start at {spec.degree}"
    why = coupling(spec.after, spec.consumed)
    return f"at degree 1 because {why or 'it has neither key nor degree'}"


def _tree(graph: Graph, root: Node, told: set[str], places: Mapping[str, str]) -> Iterator[str]:
    """Depth first, without recursion: (node, port it is read from, indents so far, is it the last child)."""
    stack: list[tuple[Node, Port, str, str]] = [(root, Port.MAIN, "", "")]
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


def _mark(node: Node) -> str:
    return f"(shared by {len(node.queries)} queries)" if is_shared(node) else ""


def _columns(columns: NamedExprs) -> str:
    told = []
    for name, expr in columns:
        told.append(name if isinstance(expr, Column) and expr.name == name else f"{name} = {expr!r}")
    return ", ".join(told)


def _aggregates(aggregates: tuple[tuple[str, Aggregate], ...]) -> str:
    return ", ".join(f"{name} = {aggregate!r}" for name, aggregate in aggregates)


def _where(condition: Expr | None, word: str = "where") -> str:
    return "" if condition is None else f" {word} {condition!r}"


def _pairs(on: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(ours if ours == theirs else f"{ours} = {theirs}" for ours, theirs in on)


def _by(keys: tuple[str, ...]) -> str:
    return f"by {', '.join(keys)}, " if keys else ""


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _escaped(text: str) -> str:
    """As Mermaid's entity codes, so that no character of a name or constant can end the label."""
    return "".join(
        f"#{ord(char)};" if char in '#"<>&`\\' or not char.isprintable() else char for char in text
    )
