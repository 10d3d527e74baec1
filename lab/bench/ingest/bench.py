"""``penstock bench ingest``: files into a filter and a keyed window, beside DuckDB and Polars on the same
files and cores; and what a bad record in a thousand costs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lab.bench.ingest.inputs import BAD_EVERY, FileKind, MeasuredInput, write
from lab.bench.ingest.systems import ANSWER, Run, duck, penstock, polars
from lab.bench.measuring.report import Options, Report, median, progress
from penstock.query.errors import PenstockError

_WORKERS = 2
_EVENTS = 2_000_000
_FULL_EVENTS = 4_000_000
_SECONDS, _FULL_SECONDS = 4.0, 20.0  # of work, per system and file
_LEAST_ROUNDS = 3


def run(options: Options) -> Report:
    """Each file is read in rounds, by one system after the other, until each has worked long enough."""
    events = options.events or (_FULL_EVENTS if options.full else _EVENTS)
    seconds = _FULL_SECONDS if options.full else _SECONDS
    peers: dict[str, Run] = {"duckdb": duck(_WORKERS), "polars": polars()}
    figures: dict[str, Any] = {}
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-ingest-") as name:
        for kind in FileKind:
            given = write(kind, Path(name), events)
            progress(f"ingest: {kind.value}, {given.path.stat().st_size >> 20} MiB")
            rates = measured({"penstock": penstock(_WORKERS), **peers}, given, seconds)
            figures[kind.value] = rates
            ratios[f"{kind.value}_over_best_peer"] = rates["penstock"] / max(rates[peer] for peer in peers)
            if kind is not FileKind.PARQUET:
                wrong = write(kind, Path(name), events, bad=True)
                progress(f"ingest: {kind.value} with a bad record in {BAD_EVERY:,}")
                ratios[f"{kind.value}_bad_over_good"] = beside(given, wrong, seconds)
                wrong.path.unlink()
            given.path.unlink()
    ratios["least_over_best_peer"] = min(
        rate for name, rate in ratios.items() if name.endswith("_over_best_peer")
    )
    ratios["least_bad_over_good"] = min(
        rate for name, rate in ratios.items() if name.endswith("_bad_over_good")
    )
    settings = {"events": events, "workers": _WORKERS, "seconds": seconds, "bad_every": BAD_EVERY}
    return Report(name="ingest", settings=settings, figures={"million_events_per_s": figures}, ratios=ratios)


def measured(systems: Mapping[str, Run], given: MeasuredInput, seconds: float) -> dict[str, float]:
    """Million events per second of each system, the median of its rounds; raises unless all answers agree."""
    times: dict[str, list[float]] = {name: [] for name in systems}
    answers = {name: system(given)[1] for name, system in systems.items()}  # which also warms them up
    first = next(iter(answers))
    for name, answer in answers.items():
        if not same(answer, answers[first]):
            raise PenstockError(f"{name} and {first} give different answers for {given.path.name}")
    while any(len(spent) < _LEAST_ROUNDS or sum(spent) < seconds for spent in times.values()):
        for name, system in systems.items():
            if len(times[name]) < _LEAST_ROUNDS or sum(times[name]) < seconds:
                times[name].append(system(given)[0])
    return {name: given.events / median(spent) / 1e6 for name, spent in times.items()}


def beside(good: MeasuredInput, bad: MeasuredInput, seconds: float) -> float:
    """The rate with bad records as a share of that without, in alternating rounds."""
    system, shares, spent = penstock(_WORKERS), list[float](), 0.0
    system(bad)
    while len(shares) < _LEAST_ROUNDS or spent < seconds:
        good_s, bad_s = system(good)[0], system(bad)[0]
        shares.append(good_s / bad_s)
        spent += good_s + bad_s
    return median(shares)


def same(answer: pa.Table, other: pa.Table) -> bool:
    """Whether two answers have the same rows, sums alike to 1e-9."""
    rows, others = (
        table.sort_by([("start", "ascending"), ("page", "ascending")]) for table in (answer, other)
    )
    if rows.num_rows != others.num_rows:
        return False
    exact = all(rows[name].to_pylist() == others[name].to_pylist() for name in ANSWER[:3])
    return exact and np.allclose(rows["amount"].to_numpy(), others["amount"].to_numpy(), rtol=1e-9, atol=0)
