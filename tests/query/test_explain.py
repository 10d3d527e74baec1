"""Graphs as text and as Mermaid."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from penstock.engine.node import Node
from penstock.query.aggregates import avg, count
from penstock.query.expr import col, lit
from penstock.query.user_functions import Context, ProcessFunction
from penstock.query.windows import session, sliding, tumbling
from tests.query.stream.streams import CARS, Traffic


class Echo(ProcessFunction):
    def on_event(self, event: dict[str, Any], context: Context) -> Iterable[dict[str, Any]]:
        return [event]


def echo(event: Any) -> list[Any]:
    return [event]


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


def test_the_tree_goes_from_sources_to_sinks(traffic: Traffic) -> None:
    fast = traffic.cars.filter(col("speed") > 30, name="fast")
    traffic.sink("lanes", fast.select("lane", kmh=col("speed") * 3.6, name="kmh"))
    per_lane = (
        fast.key_by("lane").window(tumbling("1s")).agg({"n": count(), "v": avg("speed")}, name="per-lane")
    )
    traffic.sink("counts", per_lane)
    traffic.sink("late", per_lane.late())
    assert traffic.app.explain().splitlines() == [
        "app 'traffic': 3 queries, 7 operators, 3 shared",
        "",
        "cars: source DeclaredSource, event time ts, lateness 2s → "
        "ts: timestamp, id: int64, lane: int32, speed: float64?  (shared by 3 queries)"
        "  @ in the reading task",
        "└─ fast: filter (speed > 30) → ts, id, lane, speed  (shared by 3 queries)  @ in the reading task",
        "   ├─ kmh: select lane, kmh = (speed * 3.6) → lane, kmh  @ in the reading task",
        "   │  └─ lanes: sink NoSink  @ on the driver",
        "   └─ per-lane: agg by lane, tumbling 1s: n = count(), v = avg(speed) → "
        "lane, window_start, window_end, n, v  (shared by 2 queries)"
        "  @ stage 1, routed by lane, partial in the reading task",
        "      ├─ counts: sink NoSink  @ on the driver",
        "      └─ [late] late: sink NoSink  @ on the driver",
    ]


def test_a_runtime_says_where_operators_run(traffic: Traffic) -> None:
    traffic.sink("out", traffic.cars.filter(col("speed") > 30))
    assert "@" not in traffic.app.explain(on=Node())


def test_an_operator_with_two_inputs_is_told_once(traffic: Traffic) -> None:
    join = traffic.cars.join(traffic.tolls, on={"id": "car"}, window=tumbling("1m"), name="paid")
    traffic.sink("out", join)
    text = traffic.app.explain()
    assert "└─ paid: join on id = car, tumbling 1m →" in text
    assert "└─ paid (see above)" in text
    assert text.count("out: sink") == 1


def test_every_operator_can_be_told(traffic: Traffic) -> None:
    cars, tolls = traffic.cars, traffic.tolls
    streams = [
        (
            cars.explode([dict(x=1), dict(x=2)], where=[None, col("lane") == 1]),
            "explode (x = 1), (x = 2) where (lane == 1)",
        ),
        (cars.flat_map(echo, output=CARS), "flat_map tests.query.test_explain.echo"),
        (cars.batch(echo, output=CARS, arrow=True), "batch tests.query.test_explain.echo on Arrow"),
        (cars.union(cars), "union →"),
        (cars.lookup({"lane": [1], "x": [1]}, on="lane", how="left"), "lookup in 1 rows on lane, left"),
        (cars.window(session("5s")).agg(n=count()), "agg session 5s: n = count()"),
        (
            cars.key_by("lane").window(sliding("4s", every="1s")).top(3, by="speed", descending=False),
            "top 3, by lane, sliding 4s every 1s: smallest speed",
        ),
        (
            cars.interval_join(tolls, on={"id": "car"}, lower="-5s", upper="1m30s"),
            "interval_join on id = car, from -5s to 1m30s",
        ),
        (
            cars.cogroup(cars, on="id", window=tumbling("1s"), function=echo, output=CARS),
            "cogroup on id, tumbling 1s: tests.query.test_explain.echo",
        ),
        (cars.deduplicate("id"), "deduplicate by id, for ever"),
        (cars.deduplicate("id", within="10m"), "deduplicate by id, within 10m"),
        (
            cars.key_by("lane").process(Echo(), output=CARS),
            "process by lane, tests.query.test_explain.Echo",
        ),
        (cars.bad_records(), "[bad]"),
    ]
    for index, (stream, _) in enumerate(streams):
        traffic.sink(f"q{index}", stream)
    text = traffic.app.explain()
    for _, told in streams:
        assert told in text
    assert traffic.app.explain("mermaid").startswith("flowchart LR\n")


def test_long_descriptions_are_cut(traffic: Traffic) -> None:
    condition = col("lane") == 0
    for lane in range(1, 100):
        condition = condition | (col("lane") == lane)
    traffic.sink("out", traffic.cars.filter(condition))
    assert max(len(line) for line in traffic.app.explain().splitlines()) < 300
    assert "…" in traffic.app.explain()


def test_mermaid_labels_cannot_break_out(traffic: Traffic) -> None:
    nasty = 'a"]; n0 --> n1 <script>#quot;&`\\'
    traffic.sink('s"ink]', traffic.cars.with_columns(x=lit(nasty)).filter(col("x") == nasty))
    lines = traffic.app.explain("mermaid").splitlines()
    assert lines[0] == "flowchart LR"
    vertex = re.compile(r'    n\d+(\[|\(\[)"[^"`\\]*"(\]|\]\))')
    edge = re.compile(r'    n\d+ (-->|-\. "\w+" \.->) n\d+')
    kinds = {"v": 0, "e": 0}
    for line in lines[1:]:
        assert vertex.fullmatch(line) or edge.fullmatch(line), line
        kinds["v" if vertex.fullmatch(line) else "e"] += 1
        for entity in re.findall(r"#(.{0,6})", line):
            assert re.match(r"\d+;", entity), line
        assert not re.search(r"<(?!br/>)", line)
    assert kinds == {"v": 4, "e": 3}


def test_mermaid_marks_what_is_shared(traffic: Traffic) -> None:
    for name in ("a", "b"):
        traffic.sink(name, traffic.cars.filter(col("speed") > 30))
    text = traffic.app.explain("mermaid")
    assert "(shared by 2 queries)" in text
    assert text.endswith("    classDef shared stroke-width:3px\n    class n0,n1 shared")
    assert "shared by" not in traffic.app.explain("mermaid", share=False).split("n1", 1)[1]


def test_an_app_without_sinks(traffic: Traffic) -> None:
    assert traffic.app.explain() == "app 'traffic': 0 queries, 0 operators, 0 shared"
    assert traffic.app.explain("mermaid") == "flowchart LR"
