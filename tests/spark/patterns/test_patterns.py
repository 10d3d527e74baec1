"""Patterns on real Spark: the matches of the reference, whatever the tasks and batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock as ps
from tests.graphs.graph_strategies import Drawn, few
from tests.spark.test_equivalence import check_run

_NAMES = ("match", "match, all rows", "match after window", "process after match")


LETTERS = ps.Schema(ts="timestamp", k="int64", letter="string", n="int64")


def test_an_alarm_that_an_optional_part_begins_and_the_end_of_the_input_decides(spark: SparkSession) -> None:
    a, b, c, d = (ps.event(letter, ps.col("letter") == letter) for letter in "abcd")
    rows = [
        {"ts": second * 1_000_000, "k": key, "letter": letter, "n": -second}
        for second, letter in enumerate("abd")
        for key in (1, 2)
    ]
    app = ps.App("letters")
    letters = app.source("letters", ps.sources.Rows(rows, LETTERS), event_time="ts").key_by("k")
    falling = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(B.*) AS n
                 PATTERN (A B+) DEFINE B AS n < PREV(n))"""
    queries = {
        "optional": letters.match(a >> (b >> c).optional() >> d, {"n": d["n"]}, within="1m"),
        "or": letters.match(a >> ((b >> c) | d), {"n": d["n"]}, within="1m"),
        "quiet": letters.match(d >> ~c, {"n": d["n"]}, within_events=9),
        "falling": letters.match_recognize(falling),
    }
    sinks = {name: ps.sinks.Memory() for name in queries}
    for name, stream in queries.items():
        app.sink(name, stream, sinks[name])
    app.run(on=ps.Spark(tasks=2, batch_events=2))
    found = {name: sorted((row["k"], row["n"]) for row in sink.rows()) for name, sink in sinks.items()}
    alarms = [(1, -2), (2, -2)]
    assert found == {"optional": alarms, "or": alarms, "quiet": alarms, "falling": [(1, 2), (2, 2)]}


@pytest.mark.slow  # the default run has them among all operators
def test_patterns_give_the_rows_of_the_reference(spark: SparkSession) -> None:
    runtimes = st.builds(ps.Spark, tasks=st.sampled_from((1, 2, 3)), batch_events=st.integers(20, 120))

    @settings(max_examples=2)
    @given(few(*_NAMES), runtimes)
    def check(one: Drawn, runtime: ps.Spark) -> None:
        check_run(one, runtime)

    check()
