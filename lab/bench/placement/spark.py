"""One heavy query among light ones on Spark: what the light ones wait for, in one group and in several.

The light queries are traffic queries, the heavy one is a process function of plain Python per car. Both runs
read the same files at the same times, and the rows of all are checked.
"""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.bench.measuring.report import median, progress
from lab.bench.plain_traffic import SCHEMA
from lab.bench.queries import Telling, check_rows, expected_rows, query_names
from lab.bench.traffic_feed import (
    WINDOW_US,
    Measured,
    MicroBatch,
    Row,
    SinkArrivals,
    Span,
    TrafficFiles,
    measure,
)
from penstock.app import App
from penstock.connectors.memory.callback import Callback
from penstock.query.connectors import Source
from penstock.query.errors import PenstockError
from penstock.query.user_functions import Context, ProcessFunction
from penstock.workloads.traffic.queries import replicated
from penstock.workloads.traffic.settings import TrafficSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
LIGHT = 30
HEAVY = "heavy"
#: Of one core, what the heavy query's function takes. The first that one group sustains is taken for all
#: systems: the latency of a run that falls behind says only how long it was watched.
HEAVY_SHARES = (0.7, 0.55, 0.4)
#: One task in every system: what is compared is who shares a batch. Two would divide the heavy query, and
#: take both cores for it.
TASKS = 1
SETTINGS = TrafficSettings(cars=500, roads=10, frames_per_second=10, metres_per_car=150.0)
FRAMES_PER_FILE = 2
#: Batches begin small where the feed was waited for; the division must be over before time is taken.
SPANS = {"one_group": Span(12, 12, 20), "groups_auto": Span(35, 12, 20), "groups_named": Span(12, 12, 20)}
FULL_SPANS = {
    "one_group": Span(40, 60, 60),
    "groups_auto": Span(60, 60, 60),
    "groups_named": Span(40, 60, 60),
}
_FILES_PER_BATCH = 40  # 8 s of traffic: who falls behind can still be stopped
_SESSION = {
    "spark.driver.memory": "2g",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
}


class Smoothed(ProcessFunction):
    """A car's track, smoothed again and again: work that is heavy because of what it does to each event."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds

    def on_event(self, event: Row, context: Context) -> list[dict[str, Any]]:
        state = context.state
        estimate, error = state["estimate"], state["error"]
        for _ in range(self._rounds):
            error += 0.01
            gain = error / (error + 4.0)
            estimate += gain * (event["speed"] - estimate)
            error *= 1.0 - gain
        state["estimate"], state["error"] = estimate, error
        state["events"] += 1
        if state["events"] % SETTINGS.frames_per_second:
            return []
        return [{"id": context.key[0], "at": context.time, "smoothed": estimate}]


def rounds_for(share: float, events_per_s: float, watched_s: float = 3.0) -> int:
    """How many rounds make the function take that share of a core on this machine, as busy as it is."""
    function, context = Smoothed(1_000), Context((1,), {"estimate": 0.0, "error": 1.0, "events": 0}, set())
    calls, began_s = 0, time.perf_counter()
    while (taken_s := time.perf_counter() - began_s) < watched_s:
        function.on_event({"speed": 20.0}, context)
        calls += 1
    return max(1, round(1_000 * share / events_per_s * calls / taken_s))


@dataclass
class HeavyRows:
    """What the heavy query said, by car and time: it must be the same in every run."""

    rows: dict[tuple[int, int], float] = field(default_factory=dict)

    @property
    def latest_us(self) -> int:
        """How far it has come in event time."""
        return max((at for _, at in self.rows), default=0)

    def __call__(self, rows: list[Row]) -> None:
        for row in rows:
            self.rows[row["id"], row["at"]] = row["smoothed"]


class GroupedTraffic:
    """The app on the Spark runtime, with or without groups."""

    def __init__(self, session: SparkSession, name: str, rounds: int, checkpoint: Path) -> None:
        self.name = name
        self.heavy = HeavyRows()
        self._session, self._rounds, self._checkpoint = session, rounds, checkpoint
        self._run: Any = None
        self._watcher = threading.Thread(target=self._watch, name="placement-watcher", daemon=True)
        self._stopping = threading.Event()

    @property
    def groups(self) -> Any:
        """What the runtime is told."""
        return {"one_group": None, "groups_auto": "auto", "groups_named": [[HEAVY]]}[self.name]

    def start(self, folder: Path, queries: Sequence[str], arrivals: SinkArrivals) -> None:
        from penstock.spark.frames.streams import SparkStream
        from penstock.spark.runtime import Spark

        reader = self._session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", _FILES_PER_BATCH)
        frame = reader.parquet(str(folder))
        app = heavy_app(SparkStream(frame), len(queries), self._rounds, arrivals, self.heavy)
        runtime = Spark(
            MASTER, checkpoint=self._checkpoint, tasks=TASKS, settings=_SESSION, groups=self.groups
        )
        start = runtime.start if self.groups is None else runtime.start_groups
        self._run = start(app.graph(), "placement")
        needed = 1 if self.groups in (None, "auto") else len(self._run.groups)
        while len({batch.group for batch in self._run.batches}) < needed:
            if self._run.wait(0.1):
                self._run.finish()
                raise PenstockError("placement: the run on Spark ended before its first batch")
        self._watcher.start()

    def batches(self) -> list[MicroBatch]:
        return [
            MicroBatch(batch.started_unix_ms / 1000, batch.batch_ms, batch.parts_ms)
            for batch in self._run.batches
        ]

    def stop(self) -> None:
        self._stopping.set()
        self._watcher.join()
        self._run.stop()
        self._run.finish()

    def figures(self) -> dict[str, Any]:
        """How the queries were divided, and the batches of each group."""
        groups = getattr(self._run, "groups", None)
        plan = getattr(self._run, "plan", None)
        found: dict[str, Any] = {"groups": None if groups is None else [len(group) for group in groups]}
        if plan is not None:
            found |= {"expected_ms": plan.expected_ms, "before_ms": plan.before_ms, "work_ms": plan.work_ms}
        for group in sorted({batch.group for batch in self._run.batches}, key=str):
            batches = [batch.batch_ms for batch in self._run.batches if batch.group == group]
            found[f"batch_median_ms_{'together' if group is None else group}"] = median(batches)
        slots = getattr(self._run, "slots", None)
        found["most_batches_at_a_time"] = 1 if slots is None else slots.most_running
        return found

    @property
    def parted(self) -> bool:
        """Whether the heavy query is alone."""
        return any(tuple(group) == (HEAVY,) for group in getattr(self._run, "groups", ()))

    def _watch(self) -> None:
        """Lets the run look after itself, as ``app.run`` does: that is when it divides its queries."""
        while not self._stopping.is_set() and not self._run.wait(0.1):
            pass


def heavy_app(source: Source, light: int, rounds: int, arrivals: SinkArrivals, heavy: HeavyRows) -> App:
    """The light queries, each telling ``arrivals`` of its rows, and the heavy one."""
    app = App("placement")
    cars = app.source("cars", source, event_time="ts")
    for name, stream in replicated(cars, light, SETTINGS.roads):
        app.sink(name, stream, Callback(Telling(name, arrivals)))
    smoothed = cars.key_by("id").process(
        Smoothed(rounds),
        output={"id": "int64", "at": "timestamp", "smoothed": "float64"},
        state={"estimate": "float64", "error": "float64", "events": "int64"},
    )
    app.sink(HEAVY, smoothed, Callback(heavy))
    return app


def measure_on_spark(spans: Mapping[str, Span]) -> dict[str, Any]:
    """All systems over the same files, one after the other in one session; figures and the ratios."""
    from penstock.spark.session.start import spark_session

    results: dict[str, Measured] = {}
    systems: dict[str, GroupedTraffic] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-placement-") as name:
        folder = Path(name)
        seconds = max(span.warm_s + span.measured_s + span.drain_s for span in spans.values())
        files = TrafficFiles(folder / "frames", SETTINGS, math.ceil(seconds), FRAMES_PER_FILE)
        expected = expected_rows(files, LIGHT)
        session = spark_session(MASTER, "penstock-bench-placement", _SESSION)
        try:
            for share in HEAVY_SHARES:
                rounds = rounds_for(share, SETTINGS.cars * SETTINGS.frames_per_second)
                one = GroupedTraffic(session, "one_group", rounds, folder / f"one_{share}" / "checkpoint")
                results["one_group"] = _measured(one, files, folder / f"one_{share}", spans, expected)
                systems = {"one_group": one}
                if is_steady(results["one_group"]):
                    break
            for system in list(spans)[1:]:
                systems[system] = GroupedTraffic(session, system, rounds, folder / system / "checkpoint")
                results[system] = _measured(systems[system], files, folder / system, spans, expected)
        finally:
            session.stop()
    check_heavy([running.heavy for running in systems.values()])
    return {
        "settings": {
            "light_queries": LIGHT,
            "heavy_rounds": rounds,
            "heavy_share_of_a_core": share,
            "events_per_s": SETTINGS.cars * SETTINGS.frames_per_second,
            "master": MASTER,
            "tasks": TASKS,
        },
        "figures": {
            name: {
                **results[name].figures(),
                **systems[name].figures(),
                "steady": is_steady(results[name]),
                "heavy_behind_light_s": behind_s(results[name].arrivals, systems[name].heavy),
            }
            for name in results
        },
        "ratios": latency_ratios(results, {name: running.parted for name, running in systems.items()}),
        "latencies_ms": {name: result.latency_ms for name, result in results.items()},
    }


def _measured(
    running: GroupedTraffic,
    files: TrafficFiles,
    folder: Path,
    spans: Mapping[str, Span],
    expected: Mapping[tuple[str, int], Sequence[Row]],
) -> Measured:
    names, span = query_names(LIGHT, files), spans[running.name]
    measured = measure(running, names, files, folder / "live", span, expected)
    check_rows(measured, expected)
    progress(
        f"placement: {running.name}: median latency of the light queries "
        f"{measured.latency_median_ms:,.0f} ms, sustained: {measured.sustained}"
    )
    return measured


def is_steady(measured: Measured) -> bool:
    """Whether a run kept up: every window came, no later than the ones before, and batches were far from the
    most that they may read. A run that works off what it could not do before looks steady otherwise."""
    most_ms = 1000 * _FILES_PER_BATCH * FRAMES_PER_FILE / SETTINGS.frames_per_second
    return measured.sustained and not measured.batch_median_ms > most_ms / 2


def behind_s(arrivals: SinkArrivals, heavy: HeavyRows) -> float:
    """How much of the stream the light queries had told at the end, and the heavy one not yet."""
    latest_us = max((start_us + WINDOW_US for _, start_us in arrivals.rows), default=0)
    return max(0.0, (latest_us - heavy.latest_us) / 1e6)


def latency_ratios(results: Mapping[str, Measured], parted: Mapping[str, bool]) -> dict[str, float]:
    """The light queries' latency in one group over that with groups; NaN where a run did not keep up, or the
    heavy query was not parted from them."""

    def over(system: str) -> float:
        one, other = results.get("one_group"), results.get(system)
        if one is None or other is None or not parted[system]:
            return math.nan
        if not (is_steady(one) and is_steady(other)):
            return math.nan
        return one.latency_median_ms / other.latency_median_ms

    return {
        "light_latency_one_group_over_groups": over("groups_auto"),
        "light_latency_one_group_over_named_groups": over("groups_named"),
    }


def check_heavy(found: Sequence[HeavyRows]) -> None:
    """Raises unless all runs agree on what the heavy query says of every car and moment that several saw."""
    together: dict[tuple[int, int], float] = {}
    for one in found:
        for place, smoothed in one.rows.items():
            known = together.setdefault(place, smoothed)
            if not math.isclose(known, smoothed, rel_tol=1e-9):
                raise PenstockError(
                    f"placement: groups change a result: car {place[0]} at {place[1]} µs is {known} and "
                    f"{smoothed}"
                )
