"""The live terminal view of a run: what flows, what waits, how late results are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.memory.edges import END_OF_TIME
from penstock.metrics.batches import BatchProgress, RunProgress
from penstock.metrics.degree import DegreeMetrics
from penstock.metrics.run import RunMetrics

_BUSIEST = 8
_FULLEST = 5
_BAR = 30  # characters
_FAR_S = 86_400.0  # a watermark further from now is one of recorded or made-up times


class LiveView:
    """Shows a run on standard error while it goes on; on a pipe, a line every few seconds instead.

    Use as a context manager and pass ``update`` as ``on_progress``.
    """

    def __init__(self, title: str, *, every_s: float = 5.0) -> None:
        self._title = title
        self._console = Console(file=sys.stderr)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._every_s = every_s
        self._next_line_s = 0.0
        self._last: RunMetrics | None = None

    def __enter__(self) -> LiveView:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def starting(self, done: int, total: int) -> None:
        """Tells how far the building of operators has come: a cold start compiles kernels."""
        text = f"{self._title}: building operators, {done} of {total}"
        if self._console.is_terminal:
            self._live.update(Text(text))
        elif done == total:
            print(text, file=sys.stderr, flush=True)

    def update(self, metrics: RunMetrics) -> None:
        """Shows the newest metrics."""
        if self._console.is_terminal:
            self._live.update(Group(Text(self._headline(metrics)), busiest_table(metrics)))
        elif metrics.elapsed_s >= self._next_line_s:
            print(self._headline(metrics), file=sys.stderr, flush=True)
            self._next_line_s = metrics.elapsed_s + self._every_s
        self._last = metrics

    def _headline(self, metrics: RunMetrics) -> str:
        rate = metrics.read / metrics.elapsed_s if metrics.elapsed_s else 0.0
        if self._last is not None and metrics.elapsed_s > self._last.elapsed_s:
            rate = (metrics.read - self._last.read) / (metrics.elapsed_s - self._last.elapsed_s)
        pending = sum(operator.pending for operator in metrics.operators)
        return (
            f"{self._title}  {metrics.elapsed_s:5.1f} s  in {metrics.read:,} ({rate:,.0f}/s)  "
            f"out {metrics.written:,}  pending {pending:,}  workers busy {metrics.busy_share:.0%}  "
            f"blocks {metrics.memory_bytes / 2**20:,.0f} MiB{degrees_text(metrics.degrees)}"
        )


def busiest_table(metrics: RunMetrics) -> Table:
    """The operators that took most of the workers' time."""
    table = Table(title="busiest operators", title_justify="left", expand=False)
    for name in ("operator", "kind", "pending", "processed", "out/in", "ns/event", "time"):
        table.add_column(name, justify="left" if name in ("operator", "kind") else "right")
    total_ns = sum(operator.busy_ns for operator in metrics.operators) or 1
    for operator in sorted(metrics.operators, key=lambda o: o.busy_ns, reverse=True)[:_BUSIEST]:
        table.add_row(
            operator.id,
            operator.kind,
            f"{operator.pending:,}",
            f"{operator.processed:,}",
            "" if operator.kind == "sink" else f"{operator.selectivity:.3g}",
            f"{operator.cost_ns:.1f}",
            f"{operator.busy_ns / total_ns:.0%}",
        )
    return table


def latency_table(metrics: RunMetrics, *, most: int = 10) -> Table:
    """Latency per query, from an event's creation to the sink, the slowest first."""
    table = Table(title="latency by query (window residence not counted)", title_justify="left", expand=False)
    for name in ("query", "rows", "p50 ms", "p99 ms", "markers"):
        table.add_column(name, justify="left" if name == "query" else "right")
    slowest = sorted(metrics.latency.items(), key=lambda item: item[1].quantile_ms(0.99), reverse=True)
    for query, latency in slowest[:most]:
        table.add_row(
            query,
            f"{metrics[query].processed:,}",
            f"{latency.quantile_ms(0.5):.2f}",
            f"{latency.quantile_ms(0.99):.2f}",
            f"{latency.count:,}",
        )
    if len(slowest) > most:
        table.add_row(f"… and {len(slowest) - most} more", "", "", "", "")
    return table


class SparkView:
    """Shows a run on Spark on standard error, batch by batch; on a pipe, a line every few seconds instead.

    Use as a context manager and call ``update`` with every batch. ``run`` has the totals so far.
    """

    def __init__(self, title: str, *, every_s: float = 5.0, console: Console | None = None) -> None:
        self._title = title
        self._console = console or Console(file=sys.stderr)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._every_s = every_s
        self._next_line_ms = 0.0
        self._shown = (0, 0.0)  # rows in and the time, in ms, of the line before
        self.run = RunProgress()

    def __enter__(self) -> SparkView:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def starting(self, what: str) -> None:
        """Tells what goes on before the first batch, such as ``"starting Spark"``."""
        self._show(Text(f"{self._title}: {what}"))

    def update(self, batch: BatchProgress) -> None:
        """Shows the newest batch."""
        self.run.add(batch)
        if self._console.is_terminal:
            self._live.update(Group(Text(self._headline(batch)), parts_table(batch), waiting_table(batch)))
        elif batch.ended_unix_ms >= self._next_line_ms:
            self._show(Text(self._headline(batch)))
            self._next_line_ms = batch.ended_unix_ms + 1e3 * self._every_s
        else:
            return  # the rate is since the line before
        self._shown = (self.run.rows_in, batch.ended_unix_ms)

    def _show(self, text: Text) -> None:
        if self._console.is_terminal:
            self._live.update(text)
        else:
            self._console.print(text, soft_wrap=True)

    def _headline(self, batch: BatchProgress) -> str:
        run, (rows, since_ms) = self.run, self._shown
        took_ms = batch.ended_unix_ms - (since_ms or run.started_unix_ms)
        rate = 1e3 * (run.rows_in - rows) / took_ms if took_ms > 0 else 0.0
        marks = batch.watermark_us
        known = [mark for mark in marks.values() if mark is not None]
        lowest = min(known) if known and len(known) == len(marks) else None
        text = (
            f"{self._title}  batch {batch.batch_id}  {run.elapsed_s:5.1f} s  "
            f"in {run.rows_in:,} ({rate:,.0f}/s)  out {run.rows_out:,}  "
            f"{batch.batch_ms:,.0f} ms, {batch.tasks} tasks  "
            f"watermark {watermark_text(lowest, batch.ended_unix_ms)}  "
            f"state {batch.state_rows:,} rows, {_size(batch.state_bytes)}  "
            f"pending {sum(batch.pending.values()):,}"
            f"{degrees_text({step: DegreeMetrics.of(dict(one)) for step, one in batch.degrees.items()})}"
        )
        if run.late:
            text += f"  late {run.late:,}"
        if run.failed:
            text += f"  failed {run.failed:,}"
        if run.bad_records:
            text += f"  bad records {run.bad_records:,}"
        if run.restarts:
            text += f"  restarts {run.restarts:,}"
        return text


def degrees_text(degrees: Mapping[str, DegreeMetrics]) -> str:
    """How many instances each detector has, behind two spaces.

    >>> degrees_text({"overtakings": DegreeMetrics(6, 4, 3)})
    '  overtakings: degree 3, requested 4, planned 6'
    """
    return "".join(f"  {step}: {degree}" for step, degree in degrees.items())


def parts_table(batch: BatchProgress) -> Table:
    """Where a batch's time went, in the order in which it was measured."""
    table = Table(
        title=f"batch {batch.batch_id}: {batch.batch_ms:,.0f} ms", title_justify="left", expand=False
    )
    table.add_column("part")
    table.add_column("ms", justify="right")
    table.add_column("", width=_BAR)
    whole_ms = max(batch.batch_ms, sum(batch.parts_ms.values())) or 1.0
    for part, took_ms in batch.parts_ms.items():
        bar = "█" * round(_BAR * took_ms / whole_ms)
        table.add_row(part.replace("_", " "), f"{took_ms:,.1f}", bar)
    return table


def waiting_table(batch: BatchProgress) -> Table:
    """Each source's watermark, and the queries with most that is not yet emitted."""
    table = Table(show_header=False, expand=False)
    table.add_column()
    table.add_column(justify="right")
    for source, watermark_us in batch.watermark_us.items():
        table.add_row(f"watermark of {source}", watermark_text(watermark_us, batch.ended_unix_ms))
    fullest = sorted(batch.pending.items(), key=lambda item: (-item[1], item[0]))[:_FULLEST]
    for query, pending in fullest:
        if pending:
            table.add_row(f"pending in {query}", f"{pending:,}")
    return table


def spark_summary_table(run: RunProgress) -> Table:
    """A run on Spark at its end: batches and their time by part, rows, state."""
    table = Table(title="batches", title_justify="left", expand=False)
    for name in ("", "median ms", "p99 ms"):
        table.add_column(name, justify="left" if not name else "right")
    p99 = run.p99_parts_ms
    for part, median_ms in run.median_parts_ms.items():
        table.add_row(part.replace("_", " "), f"{median_ms:,.1f}", f"{p99[part]:,.1f}")
    if run.batches:
        table.add_section()
        table.add_row("batch", f"{run.median_batch_ms:,.1f}", f"{run.p99_batch_ms:,.1f}")
    rate = run.rows_in / run.elapsed_s if run.elapsed_s else 0.0
    failed = f"failed {run.failed:,}, " if run.failed else ""
    caption = (
        f"{run.batches:,} batches in {run.elapsed_s:,.1f} s, in {run.rows_in:,} ({rate:,.0f}/s), "
        f"out {run.rows_out:,}, late {run.late:,}, {failed}bad records {run.bad_records:,}"
    )
    if run.last is not None:
        caption += f", state {run.last.state_rows:,} rows ({_size(run.last.state_bytes)})"
    table.caption, table.caption_justify = caption, "left"
    return table


def watermark_text(watermark_us: int | None, now_unix_ms: float) -> str:
    """A watermark as a time in UTC, and how far it is behind now where event times are of today.

    >>> watermark_text(1_700_000_000_000_000, 1_700_000_001_500.0)
    '2023-11-14 22:13:20.000 (1.5 s behind)'
    >>> watermark_text(0, 1_700_000_001_500.0), watermark_text(None, 0.0), watermark_text(END_OF_TIME, 0.0)
    ('1970-01-01 00:00:00.000', 'none yet', 'at the end')
    """
    if watermark_us is None:
        return "none yet"
    if watermark_us >= END_OF_TIME:
        return "at the end"
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=watermark_us)
    except OverflowError:
        return f"{watermark_us:,} µs"
    behind_s = now_unix_ms / 1e3 - watermark_us / 1e6
    near = f" ({behind_s:,.1f} s behind)" if 0 <= behind_s <= _FAR_S else ""
    return f"{time:%Y-%m-%d %H:%M:%S}.{time.microsecond // 1000:03}{near}"


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count >= 2**20 else f"{count / 2**10:,.1f} KiB"
