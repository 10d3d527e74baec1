"""The live terminal view of a run: what flows, what waits, how late results are."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.metrics.run import RunMetrics

_BUSIEST = 8


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
            f"blocks {metrics.memory_bytes / 2**20:,.0f} MiB"
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
