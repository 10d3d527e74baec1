"""The laboratory's app by itself: its rows are those of the reference interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from lab.bench.faults import inputs as faults_inputs
from lab.bench.faults.app import SINKS, on_node, queries
from lab.bench.faults.inputs import FORMATS, TICK_COUNT, Row, rows, ticks, write_inputs
from lab.bench.faults.outputs import counted
from tests.reference import run_reference


def tick_rows() -> list[Row]:
    columns = {name: np.zeros(TICK_COUNT, np.int64) for name in faults_inputs.TICKS}
    ticks(0, TICK_COUNT, columns, 0)
    return [{name: int(values[number]) for name, values in columns.items()} for number in range(TICK_COUNT)]


@pytest.mark.slow
@pytest.mark.parametrize("cars_as", FORMATS)
def test_every_query_gives_the_rows_of_the_reference_whatever_it_reads(cars_as: str, tmp_path: Path) -> None:
    write_inputs(tmp_path, cars_as)
    cars, ads = rows()
    app = ps.App("reference")
    for name, stream in queries(app, tmp_path, cars_as).items():
        app.sink(name, stream, ps.sinks.Discard())
    expected = run_reference(app.graph(), {"cars": [cars], "ads": [ads], "beats": [tick_rows()]})
    found = on_node(tmp_path, cars_as)
    assert set(found) == set(SINKS)
    for query in SINKS:
        assert counted(found[query], "") == counted(expected[query], ""), query
        assert len(found[query]) == len(counted(found[query], "")) > 20  # no two are equal
