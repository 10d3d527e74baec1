"""The examples of the user guide, and of its pages, run, in order, as one program."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import connectors
from penstock.connectors.deliveries import delivery_of
from penstock.connectors.writer import Resumed
from penstock.query.types import Schema
from penstock.sinks import Files
from tests.connectors.batches import begun
from tests.connectors.drain import RangeDrain

DOCS = Path(__file__).parent.parent / "docs"


def run(page: str) -> dict[str, Any]:
    """Runs a page's code; returns the names that it has given."""
    path = DOCS / page
    text = path.read_text()
    names: dict[str, Any] = {"__name__": path.stem}
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert len(blocks) > 5
    for block in blocks:
        # as many empty lines as stand before it, so that errors name the page's own lines
        lines_before = text.count("\n", 0, block.start(1))
        exec(compile("\n" * lines_before + block.group(1), str(path), "exec"), names)
    return names


def test_the_guides_examples_run() -> None:
    run("guide.md")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the page on connectors of one's own defines, after it has run, where it has left its files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("own"))
        yield run("own-connectors.md")


def test_the_pages_source_can_be_read_in_any_ranges(own: dict[str, Any]) -> None:
    whole = RangeDrain(own["Reports"]("cars.db")).to_end()
    assert [row["speed"] for row in whole] == [20.0 + i for i in range(6)]
    assert RangeDrain(own["Reports"]("cars.db")).to_end(2, (1, 3)) == whole


def test_the_pages_sink_has_every_batch_once(own: dict[str, Any]) -> None:
    schema = Schema(name="string", speed="float64")
    sink = own["Table"]("batches.db")
    table = pa.table({"name": ["a", "b"], "speed": [1.0, 2.0]})
    first = begun(sink, schema)
    for batch, rows in ((0, table), (1, table), (1, table.slice(1))):
        first.write_batch(batch, rows)
    first.close(False)
    again = begun(sink, schema, Resumed(1, first.delivered()))  # batch 1 did not count
    again.write_batch(1, table.slice(0, 1))
    again.close(True)
    with sqlite3.connect("batches.db") as connection:
        results = connection.execute("SELECT * FROM results ORDER BY batch, name").fetchall()
    assert results == [(0, "a", 1.0), (0, "b", 2.0), (1, "a", 1.0)]


def test_the_pages_format_is_delivered_once_and_verified_without_the_app(own: dict[str, Any]) -> None:
    schema, path = Schema(lane="string"), Path("delivered.logfmt")
    sink = Files(path, own["LogFormat"]())
    table = pa.table({"lane": ["left"]})
    first = begun(sink, schema)
    new = first.delivered()
    first.write_batch(0, table)
    first.close(False)
    again = begun(sink, schema, Resumed(0, new))  # batch 0 did not count
    assert path.read_text() == ""
    again.write_batch(0, table)
    again.close(True)
    assert path.read_text() == "lane=left\n"
    delivery = delivery_of(again.delivered())
    assert delivery is not None
    assert (delivery.kind, delivery.verify(1)) == ("log", None)


def test_every_public_name_of_connectors_is_there() -> None:
    assert sorted(connectors._HOMES) == connectors.__all__
    for name in connectors.__all__:
        assert getattr(connectors, name).__doc__, name
