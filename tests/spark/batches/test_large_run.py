"""Much input with default settings: whatever the size, it passes with the memory that a batch takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.spark.batches.large_run import COLUMNS, ROW_BYTES, fill, write_input

#: How much Parquet is read.
_PARQUET_BYTES = int(os.environ.get("PENSTOCK_LARGE_MB", "300")) * 1_000_000
#: What Python may take: the libraries, and a few times what the events of a batch take.
_PYTHON_MIB = 1_500


def run(source: str | Path, rows: int, out: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.spark.batches.large_run", str(source), str(rows), str(out)]
    told: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    print(told)
    return told


def check(out: Path, rows: int) -> None:
    """Looks whether all rows are there, once and in order."""
    position = 0
    for path in sorted(out.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches():
            expected = {name: np.zeros(len(batch), np.int64) for name in ("ts", *COLUMNS)}
            fill(position, len(batch), expected, 0)
            for name in COLUMNS:
                assert np.array_equal(batch.column(name).to_numpy(), expected[name]), (path, name)
            position += len(batch)
    assert position == rows


@pytest.mark.slow
def test_ten_million_rows_of_five_integers_pass(tmp_path: Path) -> None:
    told = run("generator", 10_000_000, tmp_path / "out")
    assert told["complete"]
    assert max(told["driver_peak_mib"], told["workers_peak_mib"]) < _PYTHON_MIB
    check(tmp_path / "out", 10_000_000)


@pytest.mark.slow
def test_parquet_of_any_size_passes(tmp_path: Path) -> None:
    rows = _PARQUET_BYTES // ROW_BYTES
    assert write_input(tmp_path / "in", rows) > 0.95 * _PARQUET_BYTES
    told = run(tmp_path / "in", rows, tmp_path / "out")
    assert told["complete"]
    assert max(told["driver_peak_mib"], told["workers_peak_mib"]) < _PYTHON_MIB
    check(tmp_path / "out", rows)


def test_a_few_rows_pass(tmp_path: Path) -> None:
    write_input(tmp_path / "in", 1_000)
    told = run(tmp_path / "in", 1_000, tmp_path / "out")
    assert told["complete"]
    check(tmp_path / "out", 1_000)
