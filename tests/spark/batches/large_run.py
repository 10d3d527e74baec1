"""A run with ``ps.Spark()`` and nothing else, in a process of its own: what is read is written as Parquet.

``python -m tests.spark.batches.large_run generator|FOLDER ROWS OUT`` prints how long it took and the peaks of
memory.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps

COLUMNS = ("a", "b", "c", "d", "e")
SCHEMA = {"ts": "timestamp", **dict.fromkeys(COLUMNS, "int64")}
ROW_BYTES = 8 * len(SCHEMA)
_FILE_ROWS, _GROUP_ROWS = 10_000_000, 1_000_000


def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
    numbers = np.arange(offset, offset + n)
    columns["ts"][start : start + n] = numbers
    for place, column in enumerate(COLUMNS):
        columns[column][start : start + n] = numbers * (2 * place + 1) * 1_000_003 % (1 << 40)


def write_input(folder: Path, rows: int) -> int:
    """Writes the generator's rows as files that do not become smaller; returns their bytes."""
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, rows, _FILE_ROWS)):
        with pq.ParquetWriter(
            folder / f"{number:03}.parquet", _arrow(0, 0).schema, compression="none", use_dictionary=False
        ) as writer:
            for offset in range(first, min(first + _FILE_ROWS, rows), _GROUP_ROWS):
                writer.write_table(_arrow(offset, min(_GROUP_ROWS, rows - offset)))
    return sum(path.stat().st_size for path in folder.iterdir())


def _arrow(offset: int, n: int) -> pa.Table:
    columns = {name: np.zeros(n, np.int64) for name in SCHEMA}
    fill(offset, n, columns, 0)
    arrays = {name: pa.array(values) for name, values in columns.items()}
    return pa.table(arrays | {"ts": arrays["ts"].cast(pa.timestamp("us"))})


def peak_mib(name: str) -> int:
    """The most that one process of this name, started by this one, has had in memory."""
    peaks = [0]
    for child in psutil.Process().children(recursive=True):
        # Workers of Spark's end when they like.
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            if child.name().startswith(name):
                for line in Path(f"/proc/{child.pid}/status").read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        peaks.append(int(line.split()[1]) >> 10)
    return max(peaks)


def main() -> None:
    source, rows, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    app = ps.App("large")
    read = ps.sources.Generator(fill, SCHEMA, limit=rows) if source == "generator" else None
    events = app.source("events", read or ps.sources.Parquet(source), event_time="ts")
    app.sink("all", events, ps.sinks.Parquet(out))
    began = time.monotonic()
    summary = app.run(on=ps.Spark())
    told = {
        "complete": summary.complete,
        "batches": summary.progress.batches,
        "seconds": round(time.monotonic() - began, 1),
        "java_peak_mib": peak_mib("java"),
        "workers_peak_mib": peak_mib("python"),  # of the largest
        "driver_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
