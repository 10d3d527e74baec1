"""The four topologies: their operators and instances, and results that depend on the input only."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from lab.workloads import riot
from lab.workloads.riot.data import FIELDS
from penstock.query.errors import QueryError
from tests.connectors.drain import rows_of
from tests.connectors.mqtt.mosquitto import broker, needs_mosquitto
from tests.engine.test_equivalence import difference
from tests.reference import interpret

Row = dict[str, Any]

# Few sensors, so that windows of ten readings fill up.
SETTINGS = riot.RiotSettings(
    sensors=6, known_share=0.7, trace=90, events_per_second=3, table_rows=300, range_rows=60
)
MESSAGES = {"pred": 150, "stats": 100, "etl": 150, "train": 8}

NODES = [
    ps.Node(workers=1),
    ps.Node(workers=2, block_events=7, chunk_blocks=2, turn_blocks=1, source_batch=5),
    ps.Node(workers=3, block_events=64, source_batch=1, scheduling="state"),
    ps.Node(threads="per_operator", block_events=16, consumption=5),
    ps.Node(workers=2, memory="queues", scheduling="congestion", consumption="half"),
    ps.Node(workers=2, binding="greedy", source_batch=9),
]


class Built:
    """One topology in an app, with memory behind every instance of the publisher."""

    def __init__(self, name: str, folder: Path) -> None:
        self.app = ps.App("riot")
        self.sinks: list[ps.sinks.Memory] = []
        source = riot.input_of(name, SETTINGS, limit=MESSAGES[name])
        self.inputs = {name: [rows_of(source)]}
        riot.topology(self.app, name, source, self._publish, settings=SETTINGS, folder=folder)

    def _publish(self, instance: int) -> ps.sinks.Memory:
        assert instance == len(self.sinks)
        self.sinks.append(ps.sinks.Memory())
        return self.sinks[-1]

    def published(self) -> list[Row]:
        return [row for sink in self.sinks for row in sink.rows()]


def operators(name: str, folder: Path) -> dict[str, list[str]]:
    """Each operator with those it reads from."""
    graph = Built(name, folder).app.graph()
    return {node.id: [source.node for source in node.inputs] for node in graph}


@pytest.mark.parametrize("name", riot.TOPOLOGIES)
def test_a_topology_gives_the_rows_of_the_reference(name: str, tmp_path: Path) -> None:
    built = Built(name, tmp_path)
    expected = interpret(built.app.graph(), built.inputs).sinks
    rows = [row for sink in expected if sink.startswith("publish") for row in expected[sink]]
    assert rows
    for node in NODES:
        again = Built(name, tmp_path)
        again.app.run(on=node)
        assert difference(rows, again.published()) == ([], [])
        if name == "etl":
            with closing(sqlite3.connect(tmp_path / "messages.sqlite")) as connection:
                table = connection.execute("SELECT message, temperature, location FROM messages").fetchall()
            assert len(table) == len(expected["table_insert"])
            found = [{"message": m, "temperature": t, "location": place} for m, t, place in table]
            kept = [{key: row[key] for key in found[0]} for row in expected["table_insert"]]
            assert difference(kept, found) == ([], [])


def test_pred_publishes_a_class_and_an_error_per_message(tmp_path: Path) -> None:
    built = Built("pred", tmp_path)
    built.app.run(on=ps.Node(workers=2))
    counts = Counter(row["analysis"] for row in built.published())
    assert counts["DTC"] == 150
    # Errors begin with the message that completes the first block of five of some sensor.
    first = min(row["message"] for row in built.published() if row["analysis"] == "ERR")
    assert counts["ERR"] == 150 - first
    assert 4 <= first <= 24
    for instance, sink in enumerate(built.sinks):
        assert {row["message"] % 3 for row in sink.rows()} == {instance}


def test_stats_summarises_known_sensors_only(tmp_path: Path) -> None:
    built = Built("stats", tmp_path)
    built.app.run(on=ps.Node(workers=2))
    counts = Counter(row["analysis"] for row in built.published())
    assert counts["SOM"] == counts["DAC"] > counts["SLR"] > 0
    assert counts["SOM"] % 5 == 0
    assert counts["SOM"] < 500
    assert {row["next"] is None for row in built.published() if row["analysis"] == "SLR"} == {False}


def test_pred_has_the_operators_and_instances_of_the_paper(tmp_path: Path) -> None:
    assert operators("pred", tmp_path) == {
        "pred": [],
        "parse.0.share": ["pred"],
        "parse.0": ["parse.0.share"],
        "parse.1.share": ["pred"],
        "parse.1": ["parse.1.share"],
        "messages": ["parse.0", "parse.1"],
        "decision_tree": ["messages"],
        "linear_regression": ["messages"],
        "block_average": ["messages"],
        "estimates": ["block_average", "linear_regression"],
        "error_estimate": ["estimates"],
        "results": ["decision_tree", "error_estimate"],
        "publish.0.share": ["results"],
        "publish.1.share": ["results"],
        "publish.2.share": ["results"],
        "publish.0": ["publish.0.share"],
        "publish.1": ["publish.1.share"],
        "publish.2": ["publish.2.share"],
    }


def test_etl_is_a_chain_that_ends_in_a_table_and_a_publisher(tmp_path: Path) -> None:
    assert operators("etl", tmp_path) == {
        "etl": [],
        "parse": ["etl"],
        "range_filter": ["parse"],
        "bloom_filter": ["range_filter"],
        "interpolation": ["bloom_filter"],
        "join": ["interpolation"],
        "annotate": ["join"],
        "to_senml": ["annotate"],
        "table_insert": ["annotate"],
        "publish": ["to_senml"],
    }


@pytest.mark.parametrize("name", riot.TOPOLOGIES)
def test_operators_have_as_many_instances_as_the_paper_tuned(name: str, tmp_path: Path) -> None:
    names = operators(name, tmp_path)
    for operator, instances in riot.INSTANCES[name].items():
        assert [f"{operator}.{i}" in names for i in range(instances + 1)] == [True] * instances + [False]


def test_an_unknown_topology_and_a_missing_folder_are_refused() -> None:
    source = riot.input_of("etl", SETTINGS, limit=1)
    with pytest.raises(QueryError, match="no topology 'extract'; topologies are pred, stats, etl, train"):
        riot.topology(ps.App("riot"), "extract", source, lambda instance: ps.sinks.Discard())
    with pytest.raises(QueryError, match="topology 'etl' needs a folder for its table"):
        riot.topology(ps.App("riot"), "etl", source, lambda instance: ps.sinks.Discard())


@pytest.mark.parametrize("name", ["pred", "stats", "etl"])
def test_a_line_that_is_no_senml_does_not_stop_a_topology(name: str, tmp_path: Path) -> None:
    clean = Built(name, tmp_path)
    clean.app.run(on=ps.Node(workers=2))
    messages = {row["message"] for row in clean.published()}
    broken = min(messages)
    lines = [
        row | {"line": row["line"][:-9]} if row["message"] == broken else row for row in clean.inputs[name][0]
    ]
    app, aside = ps.App("riot"), ps.sinks.Memory()
    sinks = [ps.sinks.Memory() for _ in range(riot.INSTANCES[name].get("publish", 1))]
    source = ps.sources.Rows(lines, ps.Schema.of(dict(FIELDS)))
    riot.topology(
        app,
        name,
        source,
        sinks.__getitem__,
        settings=SETTINGS,
        folder=tmp_path,
        unreadable=aside,
    )
    app.run(on=ps.Node(workers=2))
    assert [(row["message"], row["record"]) for row in aside.rows()] == [(broken, lines[broken]["line"])]
    assert aside.rows()[0]["reason"].startswith("no JSON: ")
    assert {row["message"] for sink in sinks for row in sink.rows()} == messages - {broken}


@needs_mosquitto
def test_results_reach_subscribers_of_a_broker(tmp_path: Path) -> None:
    expected = Built("pred", tmp_path)
    expected.app.run(on=ps.Node(workers=1))
    with broker(tmp_path) as (port, _):
        listening, heard = ps.App("listening"), ps.sinks.Memory()
        texts = ps.sources.Mqtt("riot/#", port=port, limit=len(expected.published()))
        listening.sink("heard", listening.source("texts", texts, event_time="received"), heard)
        execution = ps.Node(workers=1).start(listening.graph())
        app = ps.App("riot")
        riot.topology(
            app,
            "pred",
            riot.input_of("pred", SETTINGS, limit=MESSAGES["pred"]),
            lambda instance: ps.sinks.Mqtt(f"riot/{instance}", port=port),
        )
        app.run(on=ps.Node(workers=2))
        assert execution.wait(60)
        execution.finish()
    assert {row["topic"] for row in heard.rows()} == {"riot/0", "riot/1", "riot/2"}
    assert difference(expected.published(), [json.loads(row["payload"]) for row in heard.rows()]) == ([], [])
