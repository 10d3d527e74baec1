"""An app in whose tasks something goes wrong once, and a script that runs it in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
from pyspark import TaskContext

import penstock as ps
from penstock.metrics.batches import BatchProgress
from penstock.query.user_functions import Context
from penstock.spark.batches.summary import SparkSummary
from penstock.state.store import StateStore

ROOT = Path(__file__).parents[2]
EVENTS, BATCH_EVENTS = 600, 100
FATAL = 350  # the event at which it goes wrong
LONG_S = 300.0  # nothing that is waited for takes so long

Rows = dict[str, list[dict[str, Any]]]
CARS = ps.Schema(ts="timestamp", number="int64", car="int64", lane="int32", speed="float64")
TRAIL = ps.Schema(car="int64", number="int64", seen="int64", before="int64")


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """What the condition gives as soon as it is something."""
    deadline = time.monotonic() + LONG_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {LONG_S:.0f} s for {what}")
        time.sleep(0.01)
    return found


@dataclass(frozen=True)
class Mishap:
    """What happens to the first task that comes to a certain event, in front of the routing or behind it."""

    kind: str
    side: str  # "map": in front of the routing; "stage": behind it
    folder: Path

    def __call__(self, side: str, number: int) -> None:
        if side != self.side or number != FATAL or (self.folder / "mended").exists():
            return
        if self.kind == "always":
            raise ValueError("no such car")
        if self._is_first():
            getattr(self, self.kind)()

    @property
    def note(self) -> Path:
        """Where the task writes that it has happened."""
        return self.folder / f"{self.kind}.json"

    @property
    def happened(self) -> bool:
        return (self.folder / "first").exists()

    def fail(self) -> None:
        raise ValueError("the first attempt fails")

    def leave(self) -> None:
        os._exit(3)

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def linger(self) -> None:
        """The task goes on only when its batch has been committed without it."""
        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty("streaming.sql.batchId") or "-1")
        version = StateStore(self.folder / "checkpoint" / "state").before(batch).version + 1
        self._write(version=version, attempt=context.taskAttemptId())
        manifest = self.folder / "checkpoint" / "state" / "manifests" / f"{version}.json"
        wait_for(manifest.exists, "the batch to be committed by the other attempt")

    def lose_shuffle(self) -> None:
        """All that the map stage wrote is gone."""
        lost = list((self.folder / "cluster").rglob("shuffle_*"))
        for file in lost:
            file.unlink()
        self._write(lost=[file.name for file in lost])

    def freeze(self) -> None:
        """The executor above the task stands still, as on a machine that swaps or sleeps."""
        executor = next(process for process in psutil.Process().parents() if process.name() == "java")
        self._write(pid=executor.pid, since_s=time.time())
        executor.suspend()

    def await_death(self) -> None:
        self._write(pid=os.getpid())
        parent = os.getppid()
        wait_for(lambda: os.getppid() != parent, "somebody to kill the executor")

    def _is_first(self) -> bool:
        try:
            os.close(os.open(self.folder / "first", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _write(self, **what: Any) -> None:
        temporary = self.note.with_suffix(".new")
        temporary.write_text(json.dumps(what))
        temporary.replace(self.note)


@dataclass(frozen=True)
class Checked:
    """A function per event, which runs in front of the routing."""

    mishap: Mishap | None = None

    def __call__(self, event: dict[str, Any]) -> Iterable[dict[str, Any]]:
        if self.mishap is not None:
            self.mishap("map", event["number"])
        return [event]


@dataclass(frozen=True)
class Trail(ps.ProcessFunction):
    """Counts a car's events in its state: one that counts twice, or not at all, shows in all that follow."""

    mishap: Mishap | None = None

    def on_event(self, event: dict[str, Any], context: Context) -> Iterator[dict[str, Any]]:
        if self.mishap is not None:
            self.mishap("stage", event["number"])
        state = context.state
        state["seen"] += 1
        yield {"car": event["car"], "number": event["number"], "seen": state["seen"], "before": state["last"]}
        state["last"] = event["number"]


def build(mishap: Mishap | None = None) -> tuple[ps.App, dict[str, ps.sinks.Memory]]:
    """The app, with every kind of state that matters here, and its sinks."""
    number = range(EVENTS)
    data = {
        "ts": [n * 10_000 - (n * 7919 % 13) * 3_000 + 1_000_000 for n in number],
        "number": list(number),
        "car": [n * 31 % 37 for n in number],
        "lane": [n * 17 % 5 for n in number],
        "speed": [float(n * 13 % 41) for n in number],
    }
    app = ps.App("disturbed")
    source = ps.sources.Columns(data, CARS, partitions=2)
    cars = app.source("cars", source, event_time="ts", lateness="50ms")
    checked = cars.flat_map(Checked(mishap), {**dict(_types())}, name="checked")
    queries = {
        "lanes": checked.key_by("lane")
        .window(ps.tumbling("700ms"))
        .agg(cars=ps.count(), speed=ps.sum("speed")),
        "trails": checked.key_by("car").process(
            Trail(mishap), TRAIL, {"seen": "int64", "last": "int64"}, name="trail"
        ),
        "visits": checked.key_by("car").window(ps.session("300ms")).agg(events=ps.count()),
    }
    sinks = {name: ps.sinks.Memory() for name in queries}
    for name, stream in queries.items():
        app.sink(name, stream, sinks[name])
    return app, sinks


def _types() -> Iterator[tuple[str, str]]:
    for column in CARS:
        yield column.name, str(column.dtype)


def rows_of(sinks: dict[str, ps.sinks.Memory]) -> Rows:
    """The rows of every query; their order means nothing."""
    return {
        name: sorted(({**row} for row in sink.rows()), key=lambda row: json.dumps(row, default=str))
        for name, sink in sinks.items()
    }


def expected() -> Rows:
    """The rows of an undisturbed run in one process."""
    app, sinks = build()
    app.run(on=ps.Node(workers=1))
    rows = rows_of(sinks)
    assert all(len(found) > 30 for found in rows.values())
    return rows


@dataclass(frozen=True)
class Script:
    """A run of the app in a process of its own, with a Spark of its own. Its results are in ``folder``."""

    folder: Path
    master: str
    tasks: int | None
    kind: str
    side: str
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def mishap(self) -> Mishap:
        return Mishap(self.kind, self.side, self.folder)

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", __name__, json.dumps({**asdict(self), "folder": str(self.folder)})]
        log = (self.folder / "log.txt").open("w")
        with log:
            return subprocess.Popen(command, stderr=log, stdout=log, cwd=ROOT, text=True)

    def finish(self, process: subprocess.Popen[str]) -> Rows:
        """The rows of the run, once it has ended."""
        try:
            code = process.wait(LONG_S * 2)
        finally:
            process.kill()
        assert code == 0, (self.folder / "log.txt").read_text()
        rows: Rows = json.loads((self.folder / "rows.json").read_text())
        return rows

    def run(self) -> SparkSummary:
        """What the process does."""
        app, sinks = build(self.mishap)
        runtime = ps.Spark(
            self.master,
            checkpoint=self.folder / "checkpoint",
            tasks=self.tasks,
            batch_events=BATCH_EVENTS,
            settings=self.settings,
        )
        summary = runtime.run(app.graph(), app.name, on_progress=self._after_batch)
        (self.folder / "rows.json").write_text(json.dumps(rows_of(sinks)))
        return summary

    def _after_batch(self, batch: BatchProgress) -> None:
        """No batch follows that which a task still works on until the task has written its state."""
        if self.kind == "linger" and self.mishap.note.exists():
            wait_for(self.late_files, "the attempt that lost to write its state")

    def late_files(self) -> list[str]:
        """State files of the attempt that lost."""
        told = json.loads(self.mishap.note.read_text())
        written = (self.folder / "checkpoint" / "state" / "data").glob("*.state")
        begin = f"v{told['version']:012d}-"
        return [
            file.name
            for file in written
            if file.name.startswith(begin) and f"-a{told['attempt']}-" in file.name
        ]


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    Script(**{**told, "folder": Path(told["folder"])}).run()
