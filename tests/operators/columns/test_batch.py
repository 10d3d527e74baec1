"""Batch calls a function with columns of many events and checks the columns it returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.columns.batch import BatchFunction
from penstock.query.errors import RunError
from penstock.query.steps import BatchSpec
from tests.harness import Harness, layout

_IN = layout({"t": "timestamp", "n": "int64?", "s": "string?", "f": "float32"}, "t", [ORDER, SUB, LATE])
_OUT = layout({"n": "int64?", "s": "string?"}, TIME, [TIME, ORDER, SUB, LATE])
_ROWS = [
    {
        "t": t,
        "n": None if t % 5 == 0 else t % 4,
        "s": "xyz"[t % 3] if t % 7 else None,
        "f": 0.5,
        ORDER: -t,
        SUB: t,
    }
    for t in range(50)
]
_SYSTEM = [{TIME: row["t"], ORDER: row[ORDER], SUB: row[SUB], LATE: False} for row in _ROWS]


def run(function: Any, arrow: bool = False, rows: list[dict[str, Any]] = _ROWS) -> list[dict[str, Any]]:
    harness = Harness(BatchFunction, BatchSpec(function, arrow), [_IN], _OUT)
    harness.feed(rows)
    return harness.rows()


def test_numpy_columns_one_row_per_event() -> None:
    def double(columns: dict[str, Any]) -> dict[str, Any]:
        assert columns["t"].dtype == np.int64
        assert columns["f"].dtype == np.float32
        assert isinstance(columns["n"], np.ma.MaskedArray)
        columns["n"] *= 2  # a copy: nobody else sees the change
        texts = [None if text is None else text.upper() for text in columns["s"]]
        return {"n": columns["n"], "s": np.array(texts, object)}

    expected = [
        {"n": None if row["n"] is None else 2 * row["n"], "s": row["s"] and row["s"].upper(), **system}
        for row, system in zip(_ROWS, _SYSTEM, strict=True)
    ]
    assert run(double) == expected


def test_an_arrow_batch_one_row_per_event() -> None:
    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        doubled = pc.multiply(batch["n"], 2)
        return pa.RecordBatch.from_arrays([batch["s"], doubled], ["s", "n"])

    assert run(double, arrow=True) == [
        {"n": None if row["n"] is None else 2 * row["n"], "s": row["s"], **system}
        for row, system in zip(_ROWS, _SYSTEM, strict=True)
    ]


def _repeated_rows(columns: Any) -> np.ndarray[Any, Any]:
    counts = np.asarray(columns["f"]).astype(np.int64) * 0 + np.asarray(columns["t"]).astype(np.int64) % 3
    return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.parametrize("arrow", [False, True])
def test_the_row_column_says_what_each_row_is_made_of(arrow: bool) -> None:
    def repeat(columns: dict[str, Any]) -> dict[str, Any]:
        rows = _repeated_rows(columns)[::-1]  # in any order
        return {"n": columns["n"][rows], "s": columns["s"][rows], "_row": rows}

    def repeat_arrow(batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = pa.array(_repeated_rows({"f": batch["f"], "t": batch["t"].cast(pa.int64())}))
        taken = batch.take(rows)
        return pa.RecordBatch.from_arrays([taken["n"], taken["s"], rows], ["n", "s", "_row"])

    made = run(repeat_arrow if arrow else repeat, arrow)
    assert sorted(made, key=lambda row: (row[TIME], row[SUB])) == [
        {"n": row["n"], "s": row["s"], **system, SUB: row[SUB] * 2**20 + index}
        for row, system in zip(_ROWS, _SYSTEM, strict=True)
        for index in range(row["t"] % 3)
    ]


def test_no_rows_at_all() -> None:
    none = np.zeros(0, np.int64)
    assert run(lambda columns: {"n": none, "s": np.zeros(0, object), "_row": none}) == []


def _with(**changes: Any) -> Any:
    def broken(columns: dict[str, Any]) -> dict[str, Any]:
        made = {"n": np.asarray(columns["t"]), "s": columns["s"]}
        for name, change in changes.items():
            made[name] = change(columns)
        return made

    return broken


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda columns: {"n": columns["n"]}, "returned no column 's'"),
        (_with(x=lambda columns: columns["t"]), "unknown column 'x'"),
        (_with(n=lambda columns: columns["t"][:-1]), "rows are due"),
        (_with(n=lambda columns: columns["f"]), "float32 values for column 'n'"),
        (_with(s=lambda columns: columns["t"]), "int 0 for column 's'"),
        (_with(_row=lambda columns: columns["t"] + 100), "does not number the"),
        (lambda columns: [1, 2], "returned a list"),
    ],
)
def test_a_result_that_does_not_fit_stops_the_run(function: Any, problem: str) -> None:
    with pytest.raises(RunError) as caught:
        run(function)
    assert problem in str(caught.value)
    assert "step 'step'" in str(caught.value)


def test_a_value_that_does_not_fit_names_its_event() -> None:
    def broken(columns: dict[str, Any]) -> dict[str, Any]:
        words = [3 if t == 17 else "a" for t in columns["t"].tolist()]
        return {"n": columns["n"], "s": np.array(words, object)}

    with pytest.raises(RunError, match=r"broken.* returned int 3 for column 's'.*'t': 17,"):
        run(broken)


def test_an_exception_names_the_event_that_causes_it() -> None:
    def broken(columns: dict[str, Any]) -> dict[str, Any]:
        if 17 in columns["t"]:
            raise KeyError("seventeen")
        return {"n": columns["n"], "s": columns["s"]}

    with pytest.raises(
        RunError, match=r"broken.*raised KeyError: 'seventeen'.*step 'step'.*'t': 17,"
    ) as caught:
        run(broken)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_batch_that_nobody_reads_is_not_called() -> None:
    harness = Harness(BatchFunction, BatchSpec(lambda columns: 1 / 0, False), [_IN], None)
    harness.feed(_ROWS)
