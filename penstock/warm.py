"""Compiles beforehand what an app needs, without running it: for a container image, or before a release."""

from __future__ import annotations

import logging
import runpy
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.app import App, Runtime, launched
from penstock.compiled import ahead, cache, fixed
from penstock.engine.seat.assembly import assemble
from penstock.engine.seat.settings import Settings
from penstock.memory.coordinator import MemoryCoordinator
from penstock.query.errors import PenstockError
from penstock.query.graph import Graph

logger = logging.getLogger(__name__)


class Warming:
    """What apps are run on inside ``launched``: their operators are built, and nothing is read or written."""

    service = None

    def __init__(self) -> None:
        self.apps: list[str] = []
        self._own: Any = None

    def runtime(self, own: Runtime[Any] | None) -> Warming:
        """Itself, whatever the app says."""
        self._own = own
        return self

    def run(self, graph: Graph, *, name: str, **_: Any) -> None:
        """Builds the operators of a graph as its own runtime would."""
        self.apps.append(name)
        if isinstance(self._own, Settings):
            _build_on_node(graph, self._own)
        else:
            _build_on_spark(graph, self._own)
        for function in fixed.ALL:  # some are called only when a table grows, or something is late
            function.kernel()


def warm(file: Path | None, arguments: Sequence[str] = ()) -> str:
    """Fills the cache with what the apps of a file need; without one, the package with what every app needs.

    Says what was done.
    """
    if file is None:
        return f"{ahead.make()} functions that every app may need are compiled"
    if not file.is_file():
        raise PenstockError(f"there is no file '{file}'; write penstock warm app.py")
    warming = Warming()
    sys.argv[:] = [str(file), *arguments]
    sys.path.insert(0, str(file.parent.absolute()))
    with launched(warming):
        try:
            names = runpy.run_path(str(file), run_name="__main__")
        except Exception as error:
            if not warming.apps:
                raise
            logger.warning("'%s' ended after its app, which gave no results: %s", file, error)
            names = {}
        if not warming.apps:
            for app in names.values():
                if isinstance(app, App):
                    app.run()
    if not warming.apps:
        raise PenstockError(f"'{file}' has no app; write app = ps.App('name') or app.run()")
    counts = cache.counts
    return (
        f"{', '.join(warming.apps)}: {counts.compiled} kernels compiled, {counts.loaded} were there, "
        f"in '{cache.kernel_folder().path}'"
    )


def _build_on_node(graph: Graph, settings: Settings) -> None:
    memory = MemoryCoordinator()
    try:
        assemble(graph, settings, memory)
    finally:
        memory.close()


def _build_on_spark(graph: Graph, runtime: Any) -> None:
    from penstock.spark.batches.preparation import prepare
    from penstock.spark.batches.stage_engine import StageEngine
    from penstock.spark.runtime import Spark

    spark = runtime if isinstance(runtime, Spark) else Spark()
    with tempfile.TemporaryDirectory(prefix="penstock-warm-") as folder:
        prepared = prepare(graph, folder, spark.tasks)
        for stage in range(prepared.stages.count + 1):
            StageEngine(prepared.stages, stage, spark.node)
        if prepared.whole is not None:
            StageEngine(prepared.whole, 0, spark.node)
