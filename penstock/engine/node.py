"""The node runtime as users name it: ``app.run(on=Node(workers=2, scheduling='congestion'))``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.epochs.kept_run import KeptRun
from penstock.engine.seat.assembly import as_run, fused_fronts
from penstock.engine.seat.execution import Execution
from penstock.engine.seat.interrupts import Interrupts
from penstock.engine.seat.settings import Settings
from penstock.engine.seat.summary import NodeSummary
from penstock.metrics.watch import Watch
from penstock.operators.run.fusion import places_of
from penstock.query.durations import Duration, positive_us
from penstock.query.errors import PenstockError
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

    With ``checkpoint``, a folder, a run that was killed goes on where its newest version was: every ``epoch``
    the stream is cut, and where sources stand, what operators keep and what sinks have got becomes a version.
    ``keep_versions`` of the newest are kept, to go back to.
    """

    checkpoint: str | Path | None = None
    epoch: Duration = "5s"
    keep_versions: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.epoch_s
        if self.keep_versions < 1:
            raise PenstockError(f"keep_versions must be at least 1: got {self.keep_versions!r}")
        if self.checkpoint is not None and not self.prune_sources:
            raise PenstockError(
                "a checkpoint has the columns that queries read, no others: got prune_sources=False with "
                "checkpoint=; leave out one"
            )

    @property
    def epoch_s(self) -> float:
        """How long an epoch is."""
        epoch_us = positive_us(self.epoch, "epoch")
        assert epoch_us is not None
        return epoch_us / 1e6

    def start(self, graph: Graph, on_built: Callable[[int, int], None] | None = None) -> Execution:
        """Starts a run and returns at once."""
        kept: KeptRun | None = None
        if self.checkpoint is not None:
            kept = KeptRun(graph, self.checkpoint, self.epoch_s, self.virtual_partitions, self.keep_versions)
        try:
            execution = Execution(graph, self, on_built=on_built, kept=kept)
            execution.start()
        except BaseException:
            if kept is not None:
                kept.finish(counts=False)
            raise
        return execution

    def places(self, graph: Graph) -> dict[str, str]:
        """Which operators run in the kernel of another one, for ``App.explain``."""
        return places_of(fused_fronts(as_run(graph), self))

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
