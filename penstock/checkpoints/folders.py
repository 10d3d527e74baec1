"""A run's checkpoint: its folders, the version it goes on from, and what has changed since."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.checkpoints.planned import Planned
from penstock.checkpoints.positions import PartitionProgress, Progress
from penstock.query.explain import describe
from penstock.query.function_versions import described, is_changed
from penstock.query.graph import Graph, Port, QueryVertex
from penstock.query.identity import stable_content
from penstock.query.steps import SinkSpec, SourceSpec
from penstock.state.errors import StateError
from penstock.state.files import local_path
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore

#: How the folders of runs without a checkpoint begin.
TEMPORARY = "penstock-run-"


@dataclass(frozen=True)
class Checkpoint:
    """The folders of a run: its state, Spark's own log, and what sources keep."""

    root: str
    temporary: bool = False  # made for this run, and removed with it

    @classmethod
    def at(cls, root: str | Path | None) -> Checkpoint:
        if root is None:
            return cls(tempfile.mkdtemp(prefix=TEMPORARY), temporary=True)
        text = local_path(root)
        return cls(text if "://" in text else str(Path(text).absolute()))

    @property
    def state(self) -> str:
        return f"{self.root}/state"

    @property
    def spark(self) -> str:
        return f"{self.root}/spark"

    def source(self, source_id: str) -> str:
        """What a source keeps between runs."""
        return f"{self.root}/sources/{source_id}"

    def sink(self, query: str) -> str:
        """What a sink keeps between runs."""
        return f"{self.root}/sinks/{query}"

    @property
    def shipped(self) -> str:
        """Data that sources hand to other processes."""
        return f"{self.root}/shipped"

    @property
    def results(self) -> str:
        """Results on their way to the driver."""
        return f"{self.root}/results"

    def remove(self) -> None:
        if self.temporary:
            shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True)
class Changes:
    """How the graph differs from the one that wrote the checkpoint."""

    fresh: Mapping[str, str]  # operators that start without state, and why
    left_behind: tuple[str, ...]  # state that nobody takes
    patterns: tuple[str, ...] = ()  # what has become of the patterns of sets, in words
    functions: tuple[str, ...] = ()  # which steps go on with a changed function, in words

    def __bool__(self) -> bool:
        return bool(self.fresh or self.left_behind or self.patterns or self.functions)

    def __str__(self) -> str:
        lines = [f"'{name}' starts without state: {why}" for name, why in self.fresh.items()]
        lines += [f"'{name}' is no longer there: its state is dropped" for name in self.left_behind]
        lines += self.functions
        lines += self.patterns
        return "\n".join(lines)


def operators_of(plan: Planned) -> dict[str, str]:
    """The operators with state, by id, with a text that changes when what they compute does: it is made
    of what they say to checkpoints, and of nothing that people read."""
    meanings = _meanings(plan.graph)
    counted = Counter(meanings.values())
    alike = {node.id: node.alike or counted[meanings.get(node.id, "")] for node in plan.graph.nodes}
    found: dict[str, str] = {}
    for node in plan.graph.nodes:
        if node.spec.is_routed:
            found[node.id] = f"{_computes(plan, node)} ({meanings[node.id]})"
            # Functions of one name are told apart by their order alone: one more or less, and no state can
            # be trusted to be that of the same function.
            if alike[node.id] > 1:
                found[node.id] += f", one of {alike[node.id]} alike"
    return found


def alike(graph: Graph) -> dict[str, int]:
    """By operator, how many say the same as it does; functions are known by their names."""
    meanings = _meanings(graph)
    counted = Counter(meanings.values())
    return {name: counted[meaning] for name, meaning in meanings.items()}


def _computes(plan: Planned, node: QueryVertex) -> str:
    """What an operator does, with the columns that its state can have."""
    reads = node.spec.state_columns()
    inputs = "; ".join(
        ", ".join(str(field) for field in layout.fields if reads is None or field.name in reads)
        for layout in plan.layouts.inputs(node)
    )
    outputs = plan.layouts.outputs(node)
    made = "; ".join(
        ", ".join(map(str, layout.fields)) for port, layout in outputs.items() if port is not Port.FAILED
    )
    return f"{node.kind} of ({inputs})" + ("" if reads is not None else f" to ({made})")


def _meanings(graph: Graph) -> dict[str, str]:
    """By operator, a digest of all that it and the operators above it say: a state is right only as long as
    what comes in means the same."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        if isinstance(node.spec, SinkSpec):
            continue
        if isinstance(node.spec, SourceSpec):
            said: object = (*node.spec.said(), node.id)
        else:
            said = stable_content(node.spec, node.schema)
        above = [(found[source.node], source.port.value) for source in node.inputs]
        found[node.id] = hashlib.sha256(repr((said, above)).encode()).hexdigest()[:12]
    return found


def resume(
    store: StateStore,
    plan: Planned,
    finals: Mapping[str, list[int] | None],
    routing: tuple[int, ...],
    run_id: str,
) -> tuple[Manifest, Changes, bool]:
    """The version to go on from, made if there is none; what has changed; whether the checkpoint is new.

    ``finals`` has, per source, where each of its partitions ends, if it does. Of a new checkpoint there is no
    version yet: what it starts from has the number before the first. A partition that stands at its end has
    finished, whether or not the run before could know that.
    """
    operators = operators_of(plan)
    sources = {n.id: n.spec for n in plan.graph.nodes if isinstance(n.spec, SourceSpec)}
    latest = store.latest()
    if latest is None:
        progress = Progress(
            {
                name: {
                    partition: PartitionProgress(finished=_ends_at(finals.get(name), partition) == 0)
                    for partition in range(spec.source.partitions)
                }
                for name, spec in sources.items()
            },
            routing,
            columns=_columns(plan),
            functions=_functions(plan),
            texts=_texts(plan),
        )
        first = Manifest(-1, run_id, len(routing), operators, progress.to_json())
        return first, Changes({}, ()), True
    known = Progress.from_json(latest.progress)
    _check_sources(known, sources, store.root)
    known = known.grown({name: spec.source.partitions for name, spec in sources.items()})
    known = _at_ends(known, sources, finals)
    columns = _columns(plan)
    _check_columns(known.columns, columns)
    if latest.virtual_partitions != len(routing):
        raise StateError(
            "the checkpoint has another number of virtual partitions",
            f"'{store.root}' has {latest.virtual_partitions}, the run was given {len(routing)}",
            f"write virtual_partitions={latest.virtual_partitions}",
        )
    functions = _functions(plan)
    fresh = _with_versions(latest.missing(operators), plan, known.functions, functions)
    changed = tuple(_changed_functions(plan, fresh, known.functions, functions))
    changes = Changes(fresh, tuple(latest.left_behind(operators)), functions=changed)
    progress = replace(known, columns=columns, functions=functions, texts=_texts(plan))
    return replace(latest, progress=progress.to_json()), changes, False


def _columns(plan: Planned) -> dict[str, dict[str, str]]:
    """The columns that are read of each source, with their types."""
    found: dict[str, dict[str, str]] = {}
    for node in plan.graph.nodes:
        if isinstance(node.spec, SourceSpec):
            layout = plan.layouts.outputs(node).get(Port.MAIN)
            fields = () if layout is None else layout.visible
            found[node.id] = {field.name: f"{field.dtype}{'?' if field.nullable else ''}" for field in fields}
    return found


def _texts(plan: Planned) -> dict[str, str]:
    """What the steps with state do, as people read it."""
    return {node.id: describe(node.spec) for node in plan.graph.nodes if node.spec.is_routed}


def _functions(plan: Planned) -> dict[str, dict[str, str]]:
    """By step, by what its functions are known again."""
    told = ((node.step or node.id, described(node.spec)) for node in plan.graph.nodes)
    return {step: dict(one) for step, one in told if one is not None}


def _with_versions(
    fresh: Mapping[str, str],
    plan: Planned,
    before: Mapping[str, Mapping[str, str]],
    now: Mapping[str, Mapping[str, str]],
) -> dict[str, str]:
    """The operators that start without state; where the user gave their function another version, that is
    why."""
    steps = {node.id: node.step or node.id for node in plan.graph.nodes}
    told = dict(fresh)
    for name, step in steps.items():
        had, has = (functions.get(step, {}).get("version") for functions in (before, now))
        if name in told and step in before and had != has:
            told[name] = f"its function has version {has}, the checkpoint's had {had or 'none'}"
    return told


def _changed_functions(
    plan: Planned,
    fresh: Mapping[str, str],
    before: Mapping[str, Mapping[str, str]],
    now: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """What is said of steps that go on with a changed function."""
    routed = {node.step or node.id: node.id for node in plan.graph.nodes if node.spec.is_routed}
    for step, function in now.items():
        if step not in before or routed.get(step) in fresh or not is_changed(before[step], function):
            continue
        whose = "its old state" if step in routed else "the old state of the steps behind it"
        yield (
            f"the function of step '{step}' has changed and goes on with {whose}; give the step another "
            "version= to start without"
        )


def _check_columns(known: Mapping[str, Mapping[str, str]], columns: Mapping[str, Mapping[str, str]]) -> None:
    for source, types in columns.items():
        for name, now in types.items():
            had = known.get(source, {}).get(name, now)
            if had != now:
                raise StateError(
                    f"the columns of source '{source}' have changed",
                    f"'{name}' was {had} when the checkpoint was made, now it is {now}",
                    f"give the source schema= with '{name}' as {had}, or start from an empty checkpoint",
                )


def _check_sources(known: Progress, sources: Mapping[str, SourceSpec], where: str) -> None:
    if set(known.sources) != set(sources):
        raise StateError(
            "the app's sources have changed",
            f"checkpoint '{where}' was made with {', '.join(sorted(known.sources))}, "
            f"the app reads {', '.join(sorted(sources))}",
            "start from an empty checkpoint",
        )
    for name, spec in sources.items():
        had = len(known.sources[name])
        more = getattr(spec.source, "grows", False) and had < spec.source.partitions
        if had != spec.source.partitions and not more:
            raise StateError(
                f"source '{name}' has changed",
                f"it had {had} partitions, now it has {spec.source.partitions}",
                "read it as before, or start from an empty checkpoint",
            )


def _at_ends(
    known: Progress, sources: Mapping[str, SourceSpec], finals: Mapping[str, list[int] | None]
) -> Progress:
    """The progress with the ends of today's sources: what was watched before may have an end now."""
    if known.complete:
        return known
    moved: dict[str, dict[int, PartitionProgress]] = {}
    for name, spec in sources.items():
        for number, partition in known.sources[name].items():
            end = _ends_at(finals.get(name), number)
            # A connection is unbounded and may have been closed all the same.
            may_end = spec.source.bounded or getattr(spec.source, "heard_once", False)
            if partition.finished and (not may_end if end is None else partition.position < end):
                raise StateError(
                    f"source '{name}' goes on behind its end",
                    f"partition {number} had come to its end at {partition.position} and everything behind "
                    f"it was closed, now it {'has none' if end is None else f'ends at {end}'}",
                    "read it as before, or start from an empty checkpoint",
                )
            if end == partition.position:
                moved.setdefault(name, {})[number] = replace(partition, finished=True)
    return known.advanced([moved])


def _ends_at(final: list[int] | None, partition: int) -> int | None:
    return None if final is None else final[partition]
