"""The benchmarks by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from lab.bench.measuring.report import Options, Report
from penstock.query.errors import PenstockError

#: name → (module, what it shows)
BENCHMARKS: dict[str, tuple[str, str]] = {
    "yahoo": ("lab.bench.yahoo.node", "the Yahoo benchmark against a hand-fused loop on the same columns"),
    "node": (
        "lab.bench.node.bench",
        "Yahoo, Linear Road and taxi on a node, each against a hand-fused loop over the same attributes",
    ),
    "memory": (
        "lab.bench.memory",
        "a source ten times faster than its sink: bounded memory, nothing lost",
    ),
    "blocks": (
        "lab.bench.blocks",
        "throughput and latency over block and chunk size (enjima figure 10)",
    ),
    "queries": (
        "lab.bench.queries",
        "result latency over the number of queries, against plain Spark in two forms",
    ),
    "start": (
        "lab.bench.start.bench",
        "how long queries take to start: nothing compiled, only what the package has, all of it",
    ),
    "ingest": (
        "lab.bench.ingest.bench",
        "files into a filter and a keyed window, beside DuckDB and Polars; what bad records cost",
    ),
    "kafka": (
        "lab.bench.kafka",
        "JSON of a topic into a filter and a keyed window, beside a bare client, a process for each core",
    ),
    "scheduling": (
        "lab.bench.scheduling.bench",
        "every scheduling policy against a thread for every operator, and the ablation (enjima figures 5-9)",
    ),
    "riot": (
        "lab.bench.riot.bench",
        "the four RIoTBench topologies, longest queue first against threads (edgewise figures 7-11)",
    ),
    "rebinding": (
        "lab.bench.rebinding.bench",
        "150 traffic queries with rebound operators, measured and simulated (operator-rebinding figures 2-4)",
    ),
    "placement": (
        "lab.bench.placement.bench",
        "partitioners, 20 simulated nodes, a heavy query among light ones on Spark (ms-stream figures 12-19)",
    ),
    "skew": (
        "lab.bench.skew.bench",
        "two-tier routing against hashing and groupings that split keys (ms-stream figures 7-11)",
    ),
    "simulation": (
        "lab.bench.simulation.bench",
        "the simulator's order of the policies against the measured one, and 24 cores (enjima figure 5)",
    ),
    "degree": (
        "lab.bench.degree.bench",
        "a buffer limit kept by queueing theory, in virtual time (buffer limits figures 8(a)-8(e))",
    ),
    "patterns": (
        "lab.bench.patterns.bench",
        "the splitter over overlapping windows, and detection over the degree (buffer limits figure 8(f))",
    ),
    "faults": (
        "lab.bench.faults.bench",
        "kills, damage, full disks, second starts: nothing lost, nothing twice, no hang",
    ),
}
#: Those that measure the Spark runtime when asked to.
ON_SPARK = ("queries", "yahoo")
#: Those of which one part can be run by itself.
IN_PARTS = ("scheduling",)


def benchmark_named(name: str) -> Callable[[Options], Report]:
    """The benchmark's run function; its module is loaded only now."""
    if name not in BENCHMARKS:
        raise PenstockError(f"unknown benchmark: '{name}'; benchmarks are {', '.join(sorted(BENCHMARKS))}")
    run: Callable[[Options], Report] = importlib.import_module(BENCHMARKS[name][0]).run
    return run
