"""What a run on Spark shows: on a terminal, on a pipe, and at its end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from penstock.memory.edges import END_OF_TIME
from penstock.metrics.batches import RunProgress
from penstock.view import SparkView, parts_table, spark_summary_table, waiting_table, watermark_text
from tests.batch_progress import progress


def text_of(thing: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(thing)
    return out.getvalue()


def test_on_a_pipe_a_line_every_few_seconds() -> None:
    out = io.StringIO()
    with SparkView("traffic", every_s=1.0, console=Console(file=out, width=80)) as view:
        view.starting("starting Spark")
        for number in range(12):
            view.update(progress(number, batch_ms=50.0))
    lines = out.getvalue().splitlines()
    assert lines[0] == "traffic: starting Spark"
    assert [line.split("  ")[1] for line in lines[1:]] == ["batch 0", "batch 10"]
    assert "in 1,000 (20,000/s)" in lines[1]
    assert "in 11,000 (10,000/s)" in lines[2]  # since the line before
    assert "out 33" in lines[2]
    assert "50 ms, 2 tasks" in lines[2]
    assert "state 40 rows, 4.0 KiB" in lines[2]
    assert "pending 7  late 11  bad records 22" in lines[2]
    assert "watermark none yet" in lines[2]  # as one of the sources has not begun
    assert view.run.batches == 12


def test_standard_error_is_where_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    with SparkView("traffic") as view:
        view.update(progress(0))
    out, err = capsys.readouterr()
    assert out == ""
    assert "batch 0" in err


def test_on_a_terminal_the_newest_batch() -> None:
    out = io.StringIO()
    with SparkView("traffic", console=Console(file=out, width=200, force_terminal=True)) as view:
        view.starting("starting Spark")
        view.update(progress(0))
        view.update(progress(41))
    shown = out.getvalue()
    assert "batch 41" in shown
    assert "engine" in shown
    assert "pending in per_lane" in shown


def test_the_time_of_a_batch_by_part() -> None:
    shown = text_of(parts_table(progress(0, parts_ms={"state_write": 25.0, "engine": 12.5}, batch_ms=50.0)))
    assert "batch 0: 50 ms" in shown
    assert "state write" in shown
    assert shown.count("█") == 15 + 8


def test_parts_that_overlap_do_not_run_over_the_edge() -> None:
    shown = text_of(parts_table(progress(0, parts_ms={"read": 80.0, "engine": 80.0}, batch_ms=50.0)))
    assert shown.count("█") == 30


def test_watermarks_and_the_queries_with_most_pending() -> None:
    pending = {f"q{number}": number for number in range(20)}
    lines = text_of(waiting_table(progress(0, pending=pending))).splitlines()
    assert "2023-11-14 22:13:19.000 (1.0 s behind)" in lines[1]
    assert "none yet" in lines[2]
    assert [line.split()[3] for line in lines[3:-1]] == ["q19", "q18", "q17", "q16", "q15"]


@pytest.mark.parametrize(
    ("watermark_us", "text"),
    [
        (None, "none yet"),
        (END_OF_TIME, "at the end"),
        (0, "1970-01-01 00:00:00.000"),
        (1_700_000_000_000_000, "2023-11-14 22:13:20.000 (2.0 s behind)"),
        (1_700_000_003_000_000, "2023-11-14 22:13:23.000"),
        (-1, "1969-12-31 23:59:59.999"),
        (END_OF_TIME - 1, "9,223,372,036,854,775,806 µs"),
    ],
)
def test_a_watermark_in_words(watermark_us: int | None, text: str) -> None:
    assert watermark_text(watermark_us, 1_700_000_002_000.0) == text


def test_the_summary_of_a_run() -> None:
    shown = text_of(spark_summary_table(RunProgress.of(progress(number) for number in range(101))))
    assert [word for word in shown.split() if word.replace(".", "").isdigit()][:6] == [
        *("60.0", "109.0"),
        *("30.0", "30.0"),
        *("100.0", "149.0"),
    ]
    caption = " ".join(shown.split())
    assert "101 batches in 10.2 s, in 101,000 (9,951/s), out 303, late 101, bad records 202" in caption


def test_the_summary_of_a_run_without_batches() -> None:
    assert "0 batches" in text_of(spark_summary_table(RunProgress()))
