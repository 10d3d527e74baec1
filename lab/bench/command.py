"""``penstock bench NAME``: its arguments, and what it does."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab.bench.catalogue import BENCHMARKS, IN_PARTS, ON_SPARK, benchmark_named
from lab.bench.measuring.report import Options
from penstock.query.errors import PenstockError


def add_arguments(bench: argparse.ArgumentParser) -> None:
    """Tells the parser of a command line what a benchmark can be told."""
    bench.description = "; ".join(f"{name}: {what}" for name, (_, what) in sorted(BENCHMARKS.items()))
    bench.add_argument("name", choices=sorted(BENCHMARKS))
    bench.add_argument("--on", default="node", choices=["node", "spark"], help="the runtime to measure")
    bench.add_argument("--json", action="store_true", help="print the JSON alone on standard output")
    bench.add_argument("--full", action="store_true", help="the papers' lengths and repetitions")
    bench.add_argument("--events", type=int, help="events in a file, where a benchmark reads files")
    bench.add_argument("--out", type=Path, default=Path("bench-results"), help="folder for JSON and plots")
    bench.add_argument("--part", help="one part of a long benchmark (scheduling: rates, loads, ...)")
    bench.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> int:
    """Runs the benchmark, saves its report and prints it."""
    if parsed.on == "spark" and parsed.name not in ON_SPARK:
        raise PenstockError(f"{parsed.name} runs on: node; got 'spark'")
    if parsed.part is not None and parsed.name not in IN_PARTS:
        raise PenstockError(f"{parsed.name} has no parts; got --part {parsed.part}")
    options = Options(on=parsed.on, full=parsed.full, out=parsed.out, events=parsed.events, part=parsed.part)
    report = benchmark_named(parsed.name)(options)
    report.save(parsed.out)
    print(report.json() if parsed.json else report.text())
    return 0
