"""Placement: partitioners compared, the paper's cluster in a model, groups against a heavy query on Spark."""

from __future__ import annotations

from dataclasses import asdict

from lab.bench.measuring.report import Options, Report, progress
from lab.bench.placement.partitions import GROUPS, compare, cut_ratios, summary
from lab.bench.placement.plots import draw_partitions, draw_simulated, draw_spark
from lab.bench.placement.simulated import REAL, ZIPF, simulate, simulated_ratios
from lab.bench.placement.spark import FULL_SPANS, SPANS, measure_on_spark
from lab.sim.cluster import Cluster
from penstock.placement.deployment import DEFAULT_THRESHOLD
from penstock.placement.redeployment import DEFAULT_IMBALANCE


def run(options: Options) -> Report:
    """Spark first, while the machine is as cool as it will be; then what only computes."""
    progress("placement: one heavy query among light ones, on Spark")
    measured = measure_on_spark(FULL_SPANS if options.full else SPANS)
    partitioned = compare(random_graphs=50 if options.full else 10)
    cluster = Cluster()
    seeds = 25 if options.full else 7
    simulated = simulate(cluster, seeds)
    return Report(
        name="placement",
        settings={
            "spark": measured["settings"],
            "groups": list(GROUPS),
            "simulated_cluster": asdict(cluster),
            "simulated_seeds": seeds,
            "zipf": list(ZIPF),
            "zipf_in_place_of_real_data": REAL,
            "node_threshold": DEFAULT_THRESHOLD,
            "node_imbalance": DEFAULT_IMBALANCE,
        },
        figures={"spark": measured["figures"], **summary(partitioned), "simulated": simulated},
        ratios={**measured["ratios"], **cut_ratios(partitioned), **simulated_ratios(simulated)},
        plots=(
            draw_spark(measured["latencies_ms"], options.out / "placement-spark.png"),
            draw_partitions(partitioned, options.out / "placement-partitioners.png"),
            *draw_simulated(simulated, options.out),
        ),
    )
