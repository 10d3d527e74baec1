"""What an app and a checkpoint have in common, told before anything runs: ``penstock checkpoint diff``."""

from __future__ import annotations

import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from penstock.app import Runtime, launched
from penstock.checkpoints.parts import parts_of
from penstock.metrics.watch import Watch
from penstock.query.errors import PenstockError
from penstock.query.extras import Extra, needed
from penstock.query.graph import Graph
from penstock.service.run import app_in
from penstock.service.service import Service
from penstock.state.inspection import state_sizes


@dataclass(frozen=True)
class StepChange:
    """One step with state, on both sides or on one."""

    name: str
    rows: int  # of state in the checkpoint
    why: str = ""  # its state is not taken; empty: it goes on
    place: str = ""  # the line of the app that wrote it; empty: it is no longer there

    def text(self) -> str:
        """As people read it."""
        at = f" (written at {self.place})" if self.place else ""
        if not self.why:
            return f"goes on: '{self.name}' with {self.rows:,} rows of state{at}"
        return (
            f"starts without state: '{self.name}': {self.why}{at}"
            if self.place
            else (f"is dropped: the state of '{self.name}', {self.rows:,} rows: {self.why}")
        )


@dataclass(frozen=True)
class Upgrade:
    """What becomes of a checkpoint's state if an app goes on from it."""

    steps: tuple[StepChange, ...]
    functions: tuple[str, ...] = ()  # which steps go on with a changed function, in words

    @property
    def drops_state(self) -> bool:
        """Whether some state of the checkpoint would be lost."""
        return any(step.why and step.rows for step in self.steps)

    def text(self) -> str:
        """As people read it."""
        lines = [step.text() for step in self.steps] + list(self.functions)
        return "\n".join(lines) or "neither the app nor the checkpoint has a step with state"


def upgrade_of(file: Path, checkpoint: str, arguments: Sequence[str] = ()) -> Upgrade:
    """Asks what would happen if the app of a file went on from a checkpoint. Nothing runs or is changed.

    Raises where it could not go on at all, as the run would.
    """
    graph = graph_of(file, arguments)
    parts = parts_of(checkpoint)
    if parts[0].group is not None:
        raise PenstockError(
            f"'{checkpoint}' has groups of queries: which of them a step would be in is known when it runs; "
            "'penstock checkpoint show' lists the steps of each"
        )
    store = parts[0].store
    latest = store.latest()
    assert latest is not None
    with needed(Extra.SPARK, "a checkpoint's difference"):
        from penstock.checkpoints.folders import resume
        from penstock.spark.batches.preparation import prepare
    with tempfile.TemporaryDirectory(prefix="penstock-diff-") as folder:
        prepared = prepare(graph, folder, None)
        routing = (0,) * latest.virtual_partitions
        _, changes, _ = resume(store, prepared.stages, prepared.finals(), routing, "")
    planned = prepared.stages.graph
    places = {node.id: str(node.origin) for node in planned.nodes if node.spec.is_routed}
    rows = {name: size.rows for name, size in state_sizes(store, latest).items()}
    steps = [
        StepChange(name, rows.get(name, 0), changes.fresh.get(name, ""), place)
        for name, place in places.items()
    ]
    gone = "no step of the app says the same"
    steps += [StepChange(name, rows.get(name, 0), gone) for name in changes.left_behind]
    return Upgrade(tuple(steps), changes.functions)


def graph_of(file: Path, arguments: Sequence[str] = ()) -> Graph:
    """The graph of a file's app, which is not run."""
    if not file.is_file():
        raise PenstockError(f"there is no file '{file}'; write penstock checkpoint diff app.py FOLDER")
    sys.argv[:] = [str(file), *arguments]
    sys.path.insert(0, str(file.parent.absolute()))
    try:
        with launched(_Instead()):
            names: Mapping[str, Any] = runpy.run_path(str(file), run_name="__main__")
    except _NotRun as taken:
        return taken.graph
    return app_in(names, file).graph()


class _NotRun(BaseException):
    """Ends a file at the place where it would run its app; no ``except Exception`` is to hold it up."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


class _Instead:
    """Puts a runtime that runs nothing in place of the app's own."""

    service = Service(log=None)

    def runtime(self, own: Runtime[Any] | None) -> Runtime[Any] | None:
        return self

    def run(self, graph: Graph, *, name: str, watch: Watch) -> NoReturn:
        raise _NotRun(graph)
