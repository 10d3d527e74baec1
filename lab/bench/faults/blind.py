"""Rounds without a protection, which must show a loss."""

from __future__ import annotations

import time

from lab.bench.faults.power import PowerRecorder
from lab.bench.faults.run import Ending, Role
from lab.bench.faults.unprotected import Protection
from lab.bench.faults.world import World

_BATCH_S = 0.3
_BOTH_S = 120.0


def without_fencing(world: World) -> int:
    """Two runs in one checkpoint, the first of which stood still: how many rows are missing or too many."""
    bare = [Protection.LOCKS, Protection.FENCING]
    first = world.start(batch_s=_BATCH_S, without=bare)
    first.until_batches(2)
    stopped = first.stop(Role.ALL)
    second = world.start(batch_s=_BATCH_S, without=bare)
    second.until_batches(2)  # else the first's would be the only ones
    first.resume(stopped)
    until_s = time.monotonic() + _BOTH_S  # each may wait for ever for what the other has read
    while (first.lives or second.lives) and time.monotonic() < until_s:
        time.sleep(0.1)
    for run in (first, second):
        run.end()
    ends = first.ending, second.ending
    if Ending.COMPLETE not in ends and world.start(without=bare).until_ended() is not Ending.COMPLETE:
        return sum(rows.total() for rows in world.expected.values())  # nothing can be had any more
    return sum(difference.rows for difference in world.differences())


def without_verified_sinks(world: World) -> int:
    """Output is gone when the run goes on: how many rows are missing in the end."""
    run = world.start()
    run.until_batches(4)
    run.kill(Role.ALL)
    run.end()
    oldest = min((world.plan.output / "counts").glob("*.parquet"))
    oldest.unlink()
    world.start(without=[Protection.VERIFIED_SINKS]).until_ended()
    return sum(difference.rows for difference in world.differences())


def without_synced_manifests(world: World) -> int:
    """The power goes: how many batches are gone of those that had counted."""
    recorder = PowerRecorder(world.plan.root, world.folder / "journal")
    recorder.begin()
    world.environment = recorder.environment(world.environment)
    run = world.start(without=[Protection.SYNCED_MANIFESTS])
    run.until_batches(5)
    run.kill(Role.ALL)
    run.end()
    recorder.cut()
    again = world.start()
    again.until_ended()
    return max(run.batches, default=-1) + 1 - min(again.batches, default=0)
