"""The demonstration: many traffic queries over one stream of cars."""

from __future__ import annotations

from rich.console import Console

from penstock.app import App
from penstock.engine.node import Node
from penstock.engine.sinks.memory import Memory
from penstock.engine.summary import Summary
from penstock.query.connectors import Sink
from penstock.query.errors import PenstockError
from penstock.view import LiveView, busiest_table, latency_table
from penstock.workloads.traffic.queries import replicated
from penstock.workloads.traffic.simulation import TrafficSettings
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


def run_demo(queries: int, cars: int, seconds: float, workers: int) -> Summary:
    """Runs the queries over ``seconds`` of traffic in real time and prints what came out."""
    console = Console()
    try:
        settings = TrafficSettings(cars=cars, roads=max(4, min(50, cars // _CARS_PER_ROAD)))
    except ValueError as error:
        raise PenstockError(str(error)) from None
    source = Traffic(settings, seconds=seconds, real_time=True)
    sinks: dict[str, Memory] = {}
    app = traffic_app(queries, source, sinks)
    console.print(
        f"[bold]Penstock[/bold]: {queries} queries over {cars:,} cars on {settings.roads} roads, "
        f"{cars * settings.frames_per_second:,} events a second, for {seconds:.0f} s"
    )
    with LiveView("traffic") as view:
        summary = Node(workers=workers).run(
            app.graph(),
            on_built=view.starting,
            on_progress=lambda execution: view.update(execution.metrics()),
        )
    console.print(busiest_table(summary.metrics))
    console.print(latency_table(summary.metrics))
    for name in list(sinks)[:3]:
        rows = sinks[name].rows()
        console.print(f"last of [bold]{name}[/bold]: {rows[-1] if rows else 'no window closed yet'}")
    console.print(str(summary))
    return summary
