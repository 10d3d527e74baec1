"""Degree: does queueing theory keep the buffer limit of a detector whose work it does not model? (buffer
limits figures 8(a) to 8(e), in virtual time)"""

from __future__ import annotations

from typing import Any

from lab.bench.degree.bounds import run_bounds
from lab.bench.degree.plots import draw_bounds, draw_degrees, draw_profile, draw_queues
from lab.bench.degree.runs import (
    HORIZON_S,
    INITIAL,
    P99_AT_PEAK_S,
    PEAK,
    REQUIREMENT,
    DegreeRun,
    arrivals_settings,
    controllers,
    least_fixed,
    load_of,
    measure_scenario,
    run_one,
)
from lab.bench.measuring.report import Options, Report, median, progress

HOURS_FIXED, HOURS_RUSH = 8.0, 6.0


def run(options: Options) -> Report:
    """The paper's 8 and 6 hours, once by default and with five seeds in full."""
    seeds = tuple(range(1, 6)) if options.full else (1,)
    scenario = measure_scenario(24.0 if options.full else 6.0)
    scenario.profile.save(options.out / "degree-profile.json")
    runs: dict[str, dict[str, list[DegreeRun]]] = {}
    least: dict[str, list[int]] = {}
    for name, rush, hours in (("fixed", False, HOURS_FIXED), ("rush", True, HOURS_RUSH)):
        runs[name], least[name] = {}, []
        for seed in seeds:
            load = load_of(arrivals_settings(rush, hours * 3600.0, seed), scenario.comparison_s)
            for control, make in controllers(scenario).items():
                found = run_one(load, make())
                runs[name].setdefault(control, []).append(found)
                progress(
                    f"degree: {name}, seed {seed}, {control}: within the limit "
                    f"{found.queue.share_within(REQUIREMENT.limit):.4f} of the time, 95 % of it at most "
                    f"{found.queue.percentile(95)}, mean degree {found.mean('observed'):.2f}"
                )
            least[name].append(least_fixed(load)[0])
    bounds = run_bounds(REQUIREMENT, 200_000 if options.full else 60_000)
    out = options.out
    ours = {name: runs[name]["qt_400"] for name in runs}
    return Report(
        name="degree",
        settings={
            "limit": REQUIREMENT.limit,
            "probability": REQUIREMENT.probability,
            "horizon_s": HORIZON_S,
            "initial_degree": INITIAL,
            "hours_fixed": HOURS_FIXED,
            "hours_rush": HOURS_RUSH,
            "seeds": list(seeds),
            "comparison_ns": scenario.comparison_s * 1e9,
            "scaled_to": f"99th percentile of {P99_AT_PEAK_S} s at {PEAK} cars a second",
            "selection_s": scenario.profile.selection_s,
            "remarks": REMARKS,
        },
        figures={
            "share_within_limit_fixed": _median(ours["fixed"], "share_within_limit"),
            "share_within_limit_rush": _median(ours["rush"], "share_within_limit"),
            "typical_degree_fixed": _median(ours["fixed"], "typical_degree"),
            "least_fixed": {name: median(found) for name, found in least.items()},
            "paper_degrees": {
                name: {"derived": found.degree, "paper": found.paper} for name, found in bounds.items()
            },
            "bounds_share_within_limit": {
                name: found.queue.share_within(REQUIREMENT.limit) for name, found in bounds.items()
            },
            "profile_p99_s": {str(entry.rate): entry.percentiles_s[99] for entry in scenario.profile.entries},
            **{
                name: {control: _summaries(found) for control, found in by_control.items()}
                for name, by_control in runs.items()
            },
        },
        ratios={
            "degree_over_least_fixed": _over(runs["fixed"]["qt_400"], least["fixed"]),
            "degree_over_least_fixed_rush": _over(runs["rush"]["qt_400"], least["rush"]),
            "instances_alive_over_least_fixed": _over(runs["fixed"]["qt_400"], least["fixed"], "alive"),
            "p95_queue_cpu_over_qt_fixed": _median(runs["fixed"]["cpu"], "p95_queue")
            / max(1.0, _median(ours["fixed"], "p95_queue")),
        },
        plots=(
            draw_queues(_first(runs["fixed"]), out / "degree-figure-8a.png", "8(a), fixed average"),
            draw_degrees(_first(runs["fixed"]), out / "degree-figure-8b.png", "8(b), fixed average"),
            draw_queues(_first(runs["rush"]), out / "degree-figure-8c.png", "8(c), rush hour"),
            draw_degrees(_first(runs["rush"]), out / "degree-figure-8d.png", "8(d), rush hour"),
            draw_bounds(bounds, out / "degree-figure-8e.png"),
            draw_profile(scenario.profile, out / "degree-figure-7.png"),
        ),
    )


#: What a reader must know to judge the figures.
REMARKS = [
    "the queue counts every event that the splitter has not discarded; exits_only counts as the model does",
    "an event is in service at every instance that holds it, so the simulated queue is none of M/D/c",
    "qt_400 and qt_1600 look ahead as far as a selection lasts; the naive ones TH ahead, as the paper does",
    "every run starts with an empty zone: exits begin after 12.5 minutes",
    "degree counts registered instances; instances_alive also those that still drain",
]


def _first(found: dict[str, list[DegreeRun]]) -> dict[str, DegreeRun]:
    return {control: several[0] for control, several in found.items()}


def _summaries(found: list[DegreeRun]) -> dict[str, Any]:
    """Numbers as medians over seeds, everything else of the first seed."""
    first = found[0].summary()
    return {
        name: median([float(one.summary()[name]) for one in found])  # type: ignore[arg-type]
        if isinstance(value, int | float)
        else value
        for name, value in first.items()
    }


def _median(found: list[DegreeRun], name: str) -> float:
    return median([float(one.summary()[name]) for one in found])  # type: ignore[arg-type]


def _over(found: list[DegreeRun], least: list[int], name: str = "observed") -> float:
    return median([one.mean(name) / fixed for one, fixed in zip(found, least, strict=True)])
