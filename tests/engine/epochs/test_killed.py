"""A node that is killed at any moment and started again gives the rows of a run that nobody disturbed."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.binding.catalogue import BINDINGS
from tests.engine.test_equivalence import difference
from tests.reference import Row, run_reference
from tests.spark.crash_app import build, inputs
from tests.spark.processes import driver, to_the_end

_APP = "tests.engine.epochs.killed_app"


def arguments(choose: random.Random, folder: Path, joined: str) -> list[str]:
    """A run on some node; the next one may have other tasks and workers."""
    tasks, workers = str(choose.randint(1, 3)), str(choose.randint(1, 2))
    binding = choose.choice(["", *sorted(BINDINGS)])
    return [str(folder), joined, str(choose.randrange(1 << 16)), tasks, workers, binding]


def killed(choose: random.Random, folder: Path, joined: str, epochs: int) -> bool:
    """Starts a run and kills it some moments after it has made so many versions; False if it was complete
    before."""
    with driver(_APP, *arguments(choose, folder, joined)) as process:
        assert process.stdout is not None
        for _ in range(epochs):
            line = process.stdout.readline()
            if not line.startswith("epoch"):
                assert line.startswith("complete: True"), (line, process.communicate())
                return False
        until_ns = time.monotonic_ns() + choose.randrange(20_000_000)
        while time.monotonic_ns() < until_ns:
            pass
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode == -signal.SIGKILL


def check(folder: Path, joined: str) -> None:
    """What the sinks have is what the reference gives, neither more nor less."""
    app, _ = build(None, joined == "joined")
    expected = run_reference(app.graph(), inputs(joined == "joined"))
    assert sum(map(len, expected.values())) > 1000
    for query, rows in expected.items():
        missing, unexpected = difference(rows, written(folder / "out" / query))
        assert (missing, unexpected) == ([], []), f"'{query}': missing {missing}, unexpected {unexpected}"


def written(folder: Path) -> list[Row]:
    return pq.read_table(folder).to_pylist() if any(folder.glob("*.parquet")) else []


@pytest.mark.parametrize("joined", ["single", "joined"])
def test_a_node_killed_a_few_times_goes_on(joined: str, tmp_path: Path) -> None:
    choose = random.Random(joined)
    assert sum(killed(choose, tmp_path, joined, choose.randint(1, 6)) for _ in range(3)) == 3
    to_the_end(_APP, *arguments(choose, tmp_path, joined))
    check(tmp_path, joined)


@pytest.mark.slow
def test_a_node_killed_a_hundred_times_goes_on(tmp_path: Path) -> None:
    choose, deaths, number = random.Random("hundred"), 0, 0
    while deaths < 100:
        folder = tmp_path / str(number)
        joined = choose.choice(["single", "joined"])
        while killed(choose, folder, joined, choose.randint(1, 4)):
            deaths += 1
        to_the_end(_APP, *arguments(choose, folder, joined))
        check(folder, joined)
        number += 1
