"""The laboratory of faults: what a run on Spark survives, and that nothing is lost or written twice."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.bench.faults.blind import (
    without_fencing,
    without_synced_manifests,
    without_verified_sinks,
)
from lab.bench.faults.damaged import damages
from lab.bench.faults.kills import disturbances, kills, undisturbed
from lab.bench.faults.laboratory import Laboratory, RoundKind
from lab.bench.faults.machine import clock_jumps, executors, full_disk, power_cuts
from lab.bench.faults.second import at_once, second_starts
from lab.bench.faults.table import Outcome
from lab.bench.faults.unprotected import Protection
from lab.bench.measuring.report import Options, Report, progress
from penstock.spark.session.cluster import LocalCluster

#: The seed of a run; without it each run draws one, which it tells.
SEED = "PENSTOCK_FAULTS_SEED"

_UNPROTECTED = {
    Protection.FENCING: without_fencing,
    Protection.VERIFIED_SINKS: without_verified_sinks,
    Protection.SYNCED_MANIFESTS: without_synced_manifests,
}

_SECONDS, _FULL_SECONDS = 600.0, 3_600.0
#: How often an hour kills at least; a busy machine needs longer for that.
_FULL_KILLS = 100


def run(options: Options) -> Report:
    """Ten minutes of faults; or an hour, and longer until a hundred kills have been survived."""
    return experiment(_FULL_SECONDS, kills_at_least=_FULL_KILLS) if options.full else experiment(_SECONDS)


def experiment(seconds: float, first: Sequence[str] | None = None, kills_at_least: int = 0) -> Report:
    """Rounds for about so many seconds; each kind at least once, or ``first``, however long that takes; then
    rounds of kills until there have been enough."""
    began = time.monotonic()
    seed = os.environ.get(SEED) or str(int(time.time()))
    folder = Path(tempfile.mkdtemp(prefix="penstock-faults-"))
    cluster = LocalCluster(folder / "cluster")
    ended = signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left running
    try:
        lab = Laboratory(folder, seed)
        kinds = {kind.name: kind for kind in _kinds(cluster)}
        begin = [kinds[name] for name in (kinds if first is None else first)]
        for protection, play in _UNPROTECTED.items() if first is None else ():
            lab.lose(protection, play)
        lab.play_all(begin, list(kinds.values()), began + seconds)
        lab.play_until(kinds["kills"], lambda: lab.kills >= kills_at_least)
    finally:
        cluster.down()
        signal.signal(signal.SIGTERM, ended)
    progress(lab.table.text())
    if not lab.all_of(lambda world: world.problems):
        shutil.rmtree(folder)
    return Report(
        name="faults",
        settings={"seed": seed, "seconds": seconds},
        figures=_figures(lab) | {"seconds": round(time.monotonic() - began)},
        ratios={"recovered_share": _recovered_share(lab)},
    )


def _kinds(cluster: LocalCluster) -> tuple[RoundKind, ...]:
    def up() -> LocalCluster:
        if cluster.state() is None:
            cluster.up()
        return cluster

    return (
        RoundKind("undisturbed", undisturbed, weight=0),
        RoundKind("kills", kills, weight=10),
        RoundKind("disturbances", disturbances, weight=3),
        RoundKind("damages", damages, weight=4),
        RoundKind("second starts", second_starts, weight=2),
        RoundKind("two at once", at_once, weight=1),
        RoundKind("full disk", full_disk, weight=1),
        RoundKind("clock jumps", clock_jumps, weight=1),
        RoundKind("power cuts", power_cuts, weight=2),
        RoundKind("executors", executors(up), weight=1),
    )


def _figures(lab: Laboratory) -> dict[str, Any]:
    return {
        "kills": lab.kills,
        "wrong_rows": lab.total(lambda world: world.wrong_rows),
        "hangs": lab.table.total(Outcome.HUNG),
        "stuck": lab.table.total(Outcome.STUCK),
        "damaged_files_misread": lab.table.total(Outcome.WRONG, of="damage"),
        "second_starts_admitted": lab.total(lambda world: world.second_starts_admitted),
        **{f"lost_without_{protection.replace(' ', '_')}": lost for protection, lost in lab.lost.items()},
        "rounds": len(lab.rounds),
        "starts": lab.total(lambda world: world.starts),
        "processes_left_behind": lab.total(lambda world: world.left_behind),
        "in_others_words": lab.all_of(lambda world: world.in_others_words),
        "interruptions": lab.all_of(lambda world: world.interruptions),
        "problems": lab.all_of(lambda world: world.problems),
        "faults": lab.table.plain(),
    }


def _recovered_share(lab: Laboratory) -> float:
    """Of all faults, those after which the rows were right in the end."""
    bad = sum(lab.table.total(outcome) for outcome in (Outcome.WRONG, Outcome.HUNG, Outcome.STUCK))
    total = sum(lab.table.total(outcome) for outcome in Outcome)
    return 1.0 - bad / total if total else 1.0
