"""The Spark runtime as users name it: ``app.run(on=Spark("spark://host:7077", checkpoint="state/"))``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.checkpoints.groups import check_no_groups
from penstock.connectors.sizes import parsed_bytes
from penstock.engine.seat.interrupts import Interrupts
from penstock.engine.seat.settings import STOP_GRACE, Settings
from penstock.metrics.batches import BatchProgress
from penstock.metrics.watch import Watch
from penstock.placement.query_groups import GroupPlanner
from penstock.query.durations import Duration, positive_us
from penstock.query.errors import PenstockError
from penstock.query.graph import Graph
from penstock.routing.control import RoutingControl, control_of
from penstock.routing.rebalancer import DEFAULT_CHI
from penstock.scheduling.catalogue import policy_named
from penstock.spark.batches.restarts import DEFAULT_RESTARTS, Restarts
from penstock.spark.batches.run import SparkRun
from penstock.spark.batches.summary import SparkSummary
from penstock.spark.groups.groups import GroupsOption, check_option
from penstock.spark.groups.run import GroupedRun
from penstock.spark.places import places
from penstock.spark.task_settings import check_task_settings

_POLL_S = 0.1
_LEAST_BATCH_BYTES = 1 << 10


def _task_settings() -> Settings:
    """A task has no one to wait for, so from the sources to the sinks is the fastest order of its turns."""
    return Settings(scheduling="min_cost")


@dataclass(frozen=True)
class Spark:
    """Runs an app on Spark: embedded in this process by default, or on any Spark master.

    ``checkpoint`` is a folder, local or on a file system that both Spark and pyarrow can write, from which a
    later run goes on; without one a run leaves nothing behind. ``tasks`` is how many tasks share the keys;
    without it one does as long as batches are short, and as many as there are cores otherwise. It may differ
    from run to run. ``rebalance`` is the load imbalance (LIT) between tasks above which virtual partitions of
    keys move to other tasks; None: never. ``batch_events`` limits how many events of each source a batch
    reads, ``batch_bytes`` how much memory about the events of a batch take, in bytes or as ``"64m"``; None:
    no limit. ``progress`` is a file to which every batch adds a line of JSON. ``restarts`` is how often in a
    row, with no batch that counts in between, a run goes on by itself when Spark lost processes or data.

    ``groups`` divides the queries: each group is a streaming query of its own, so that a heavy query delays
    only its own group. None is one group; ``"auto"`` begins with one, measures what the queries cost and
    divides them if that pays; or lists of the queries' names. The checkpoint remembers the groups.
    ``keep_versions`` is how many of the checkpoint's newest versions are kept, to go back to.
    ``concurrent_batches`` is how many groups have a batch at a time, as many as there are cores unless given;
    ``group_scheduling`` is the policy by which the others wait.

    ``unfenced`` allows a checkpoint where two runs cannot be kept apart, such as an object store: it is then
    up to you that there is one run at a time.

    Ctrl-C or SIGTERM ends the run after the batch at hand, or without it if it takes longer than
    ``stop_grace`` (None: any time): the error then names the step or the sink that hangs. A second one ends
    the process at once; nothing is lost either way.
    """

    master: str = "local[*]"
    checkpoint: str | Path | None = None
    tasks: int | None = None
    virtual_partitions: int = 64
    rebalance: float | RoutingControl | None = DEFAULT_CHI
    batch_events: int | None = None
    batch_bytes: int | str | None = "64m"
    keep_versions: int = 10
    progress: str | Path | None = None
    restarts: int = DEFAULT_RESTARTS
    stop_grace: Duration | None = STOP_GRACE
    groups: GroupsOption = None
    concurrent_batches: int | None = None
    group_scheduling: str = "highest_rate"
    unfenced: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)  # further settings of Spark's
    #: Of the engine inside each task: its policy, passes, and the sizes of blocks, chunks and turns.
    node: Settings = field(default_factory=_task_settings)

    def __post_init__(self) -> None:
        check_option(self.groups)
        Restarts(self.restarts)
        _ = self.stop_grace_s
        policy_named(self.group_scheduling)
        for name in (
            "tasks",
            "batch_events",
            "virtual_partitions",
            "keep_versions",
            "concurrent_batches",
        ):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise PenstockError(f"{name} must be at least 1: got {value!r}")
        if self.tasks is not None and self.tasks > self.virtual_partitions:
            raise PenstockError(
                f"more tasks than virtual partitions: {self.tasks} and {self.virtual_partitions}; "
                f"write virtual_partitions={1 << (self.tasks - 1).bit_length()} or more"
            )
        self.source_bytes(1)
        _ = self.control
        check_task_settings(self.node)

    @property
    def stop_grace_s(self) -> float | None:
        """How long the batch at hand may take when the run is stopped; None: as long as it likes."""
        grace_us = positive_us(self.stop_grace, "stop_grace")
        return None if grace_us is None else grace_us / 1e6

    @property
    def control(self) -> RoutingControl | None:
        """How the route follows the load; None: not at all."""
        return control_of(self.rebalance)

    def source_bytes(self, sources: int) -> int | None:
        """How much memory about a batch's events of each of so many sources may take; None: any."""
        if self.batch_bytes is None:
            return None
        size = parsed_bytes(self.batch_bytes)
        if size is None or size < _LEAST_BATCH_BYTES:
            raise PenstockError(
                f"batch_bytes must be a size of at least {_LEAST_BATCH_BYTES:,} bytes: got "
                f"{self.batch_bytes!r}; write e.g. '64m' or 64 << 20, or None for no limit"
            )
        return max(1, size // sources)

    def places(self, graph: Graph) -> dict[str, str]:
        """Where each operator runs, in a few words."""
        return places(graph)

    def start(
        self,
        graph: Graph,
        name: str = "app",
        *,
        on_built: Callable[[int, int], None] | None = None,
        last_batch: int | None = None,
    ) -> SparkRun:
        """Starts a run and returns when its first batch can begin; it ends by itself after ``last_batch``.

        Queries in several groups have no batches in common: ``start_groups`` is theirs.
        """
        if self.groups is not None:
            raise PenstockError("a run with groups has several drivers: start it with start_groups")
        check_no_groups(self.checkpoint)
        run = SparkRun(graph, self, name, on_built=on_built, last_batch=last_batch)
        run.start()
        return run

    def start_groups(
        self,
        graph: Graph,
        name: str = "app",
        *,
        on_built: Callable[[int, int], None] | None = None,
        planner: GroupPlanner | None = None,
    ) -> GroupedRun:
        """Starts a run of groups; ``planner`` decides how ``groups="auto"`` divides."""
        run = GroupedRun(graph, self, name, on_built=on_built, planner=planner)
        run.start()
        return run

    def run(
        self,
        graph: Graph,
        name: str = "app",
        *,
        on_built: Callable[[int, int], None] | None = None,
        on_progress: Callable[[BatchProgress], None] | None = None,
        watch: Watch | None = None,
    ) -> SparkSummary:
        """Runs until the input ends, or Ctrl-C or SIGTERM, which let the batch at hand end; a second one ends
        the process at once.

        ``on_progress`` is called after every batch; ``watch`` hears how the run goes.
        """
        watch = watch or Watch(name, type(self).__name__)
        with Interrupts() as interrupts:
            run: SparkRun | GroupedRun
            if self.groups is None:
                run = self.start(graph, name, on_built=on_built)
            else:
                run = self.start_groups(graph, name, on_built=on_built)
            run.on_progress = on_progress
            watch.ready()
            asked = False
            while not run.wait(_POLL_S):
                watch.progress(run.totals)
                if interrupts.noted:
                    if not asked:
                        watch.stopping()
                        asked = True
                    run.stop()
            watch.progress(run.totals)
            return run.finish()
