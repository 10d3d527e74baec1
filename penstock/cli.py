"""The command line: ``penstock demo``, ``penstock bench NAME``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock.query.errors import PenstockError


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; a user's mistake is one line on standard error and exit code 2."""
    parsed = _parser().parse_args(arguments)
    try:
        return int(parsed.command(parsed))
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    from penstock.bench.catalogue import BENCHMARKS

    parser = argparse.ArgumentParser(
        prog="penstock", description="Adaptive stream processing for many queries."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="many traffic queries over one stream of cars, with a live view")
    demo.add_argument("--queries", type=_positive, default=150)
    demo.add_argument("--cars", type=_positive, default=20_000)
    demo.add_argument("--seconds", type=float, default=30.0, help="of traffic, in real time")
    demo.add_argument("--workers", type=int, default=0, help="threads; 0 means one per core")
    demo.set_defaults(command=_demo)

    listed = "; ".join(f"{name}: {what}" for name, (_, what) in sorted(BENCHMARKS.items()))
    bench = commands.add_parser("bench", help="run a benchmark and its baselines", description=listed)
    bench.add_argument("name", choices=sorted(BENCHMARKS))
    bench.add_argument("--on", default="node", choices=["node"], help="the runtime to measure")
    bench.add_argument("--json", action="store_true", help="print the JSON alone on standard output")
    bench.add_argument("--full", action="store_true", help="the papers' lengths and repetitions")
    bench.add_argument("--out", type=Path, default=Path("bench-results"), help="folder for JSON and plots")
    bench.set_defaults(command=_bench)
    return parser


def _demo(parsed: argparse.Namespace) -> int:
    from penstock.demo import run_demo

    run_demo(parsed.queries, parsed.cars, parsed.seconds, parsed.workers)
    return 0


def _bench(parsed: argparse.Namespace) -> int:
    from penstock.bench.catalogue import benchmark_named
    from penstock.bench.report import Options

    report = benchmark_named(parsed.name)(Options(on=parsed.on, full=parsed.full, out=parsed.out))
    report.save(parsed.out)
    print(report.json() if parsed.json else report.text())
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1: got {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
