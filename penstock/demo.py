"""The demonstration: many traffic queries over one stream of cars."""

from __future__ import annotations

from rich.console import Console

from penstock.app import App
from penstock.connectors.memory.sink import Memory
from penstock.query.connectors import Sink
from penstock.query.errors import PenstockError
from penstock.query.extras import Extra, needed
from penstock.view import LiveView, SparkView, busiest_table, latency_table, spark_summary_table
from penstock.workloads.traffic.queries import replicated
from penstock.workloads.traffic.settings import TrafficSettings
from penstock.workloads.traffic.source import Traffic

_CARS_PER_ROAD = 400


def traffic_app(queries: int, source: Traffic, sinks: dict[str, Memory] | None = None) -> App:
    """An app with that many traffic queries; ``sinks`` receives the sink of each by name."""
    app = App("traffic")
    cars = app.source("cars", source, event_time="ts")
    for name, stream in replicated(cars, queries, source.settings.roads):
        sink: Sink = Memory()
        if sinks is not None:
            assert isinstance(sink, Memory)
            sinks[name] = sink
        app.sink(name, stream, sink)
    return app


def run_demo(on: str, queries: int, cars: int, seconds: float, workers: int, master: str) -> str:
    """Runs the queries over ``seconds`` of traffic in real time, shows how it goes, and sums up."""
    console = Console()
    try:
        settings = TrafficSettings(cars=cars, roads=max(4, min(50, cars // _CARS_PER_ROAD)))
    except ValueError as error:
        raise PenstockError(str(error)) from None
    source = Traffic(settings, seconds=seconds, real_time=True)
    sinks: dict[str, Memory] = {}
    app = traffic_app(queries, source, sinks)
    console.print(
        f"[bold]Penstock[/bold] on {'Spark' if on == 'spark' else 'one node'}: {queries} queries over "
        f"{cars:,} cars on {settings.roads} roads, {cars * settings.frames_per_second:,} events a second, "
        f"for {seconds:.0f} s"
    )
    summary = _on_spark(app, master, console) if on == "spark" else _on_node(app, workers, console)
    for name in list(sinks)[:3]:
        rows = sinks[name].rows()
        console.print(f"last of [bold]{name}[/bold]: {rows[-1] if rows else 'no window closed yet'}")
    console.print(summary)
    return summary


def _on_spark(app: App, master: str, console: Console) -> str:
    with needed(Extra.SPARK, "the demo on Spark", "run penstock demo --on node"):
        from penstock.spark.runtime import Spark

    with SparkView("traffic") as view:
        view.starting("building operators and starting Spark")
        summary = Spark(master).run(app.graph(), app.name, on_progress=view.update)
    console.print(spark_summary_table(summary.progress))
    return str(summary)


def _on_node(app: App, workers: int, console: Console) -> str:
    from penstock.engine.node import Node

    with LiveView("traffic") as view:
        summary = Node(workers=workers).run(
            app.graph(),
            on_built=view.starting,
            on_progress=lambda execution: view.update(execution.metrics()),
        )
    console.print(busiest_table(summary.metrics))
    console.print(latency_table(summary.metrics))
    return str(summary)
