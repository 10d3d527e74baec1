"""Rounds without a protection, which must show a loss."""

from __future__ import annotations

from lab.bench.faults.power import PowerRecorder
from lab.bench.faults.run import Ending, Role
from lab.bench.faults.unprotected import Protection
from lab.bench.faults.world import World

_BATCH_S = 0.3


def without_fencing(world: World) -> int:
    """Two runs in one checkpoint: how many rows are missing or too many."""
    bare = [Protection.LOCKS, Protection.FENCING]
    first = world.start(batch_s=_BATCH_S, without=bare)
    first.until_batches(2)
    second = world.start(batch_s=_BATCH_S, without=bare)
    endings = [first.until_ended(), second.until_ended()]
    if Ending.COMPLETE not in endings and world.start(without=bare).until_ended() is not Ending.COMPLETE:
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
