"""The node runtime as users name it: ``app.run(on=Node(workers=2, scheduling='congestion'))``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.engine.seat.execution import Execution
from penstock.engine.seat.interrupts import Interrupts
from penstock.engine.seat.settings import Settings
from penstock.engine.seat.summary import NodeSummary
from penstock.metrics.watch import Watch
from penstock.query.graph import Graph
from penstock.query.misuse import told

_POLL_S = 0.2


@told
@dataclass(frozen=True)
class Node(Settings):
    """Runs an app in this process, without Spark.

    Ctrl-C or SIGTERM drains: sources stop, events on their way are processed, and the run ends with a
    summary. A second one ends it without them, a third ends the process. A function or sink that does not
    come back within ``stop_grace`` is left behind, and the error names it.
    """

    def start(self, graph: Graph, on_built: Callable[[int, int], None] | None = None) -> Execution:
        """Starts a run and returns at once."""
        execution = Execution(graph, self, on_built=on_built)
        execution.start()
        return execution

    def run(
        self,
        graph: Graph,
        name: str = "app",
        *,
        on_built: Callable[[int, int], None] | None = None,
        on_progress: Callable[[Execution], None] | None = None,
        watch: Watch | None = None,
    ) -> NodeSummary:
        """Runs until the input ends, Ctrl-C or SIGTERM.

        ``on_progress`` is called a few times a second meanwhile; ``watch`` hears how the run goes.
        """
        watch = watch or Watch(name, type(self).__name__)
        with Interrupts(patience=2) as interrupts:
            execution = self.start(graph, on_built)
            watch.ready()
            asked = 0
            while not execution.wait(_POLL_S):
                if on_progress is not None:
                    on_progress(execution)
                watch.progress(execution.totals)
                if interrupts.count > asked:
                    asked = interrupts.count
                    if asked > 1:
                        execution.abort()
                    else:
                        watch.stopping()
                        execution.stop()
            watch.progress(execution.totals)
            return execution.finish()
