"""Rounds with second starts in the checkpoint of a run: one of the two goes on, and nothing is lost."""

from __future__ import annotations

import time

from lab.bench.faults.run import AppRun, Ending, Role
from lab.bench.faults.table import Outcome
from lab.bench.faults.unprotected import Protection
from lab.bench.faults.world import Fault, World

#: In which ways a lock can be passed by.
_WAYS = ("as it is", "file 'lock' removed", "file://", "no locks", "while the first is stopped")
#: The first run takes its time, so that others can start beside it.
_BATCH_S = 0.7
_STOPPED_S = 60.0  # at most


def second_starts(world: World) -> None:
    """Beside one run others start, one after the other."""
    choose = world.choose
    first = world.start(batch_s=_BATCH_S, by_address=choose.random() < 0.5)
    for way in choose.sample(_WAYS, len(_WAYS)):
        if not first.until_batches(len(first.batches) + choose.randint(1, 2)):
            break
        fault = world.fault(f"second start: {way}")
        if way != "as it is":
            (world.plan.checkpoint / "lock").unlink(missing_ok=True)
        stopped = first.stop(Role.ALL) if way == "while the first is stopped" else []
        without = [Protection.LOCKS] if way == "no locks" else []
        second = world.start(by_address=way == "file://" or choose.random() < 0.3, without=without)
        if stopped:
            second.until_batches(1, patience_s=_STOPPED_S)
            first.resume(stopped)
        _judge(world, fault, first, second)
    if world.ended(first) is not Ending.COMPLETE:
        world.to_the_end()


def at_once(world: World) -> None:
    """Two runs start at the same moment, in a new checkpoint or in one to go on with."""
    choose = world.choose
    if choose.random() < 0.5:
        run = world.start()
        run.until_batches(choose.randint(1, 4))
        world.kill(run, Role.ALL, f"kill of the {Role.ALL}")
        run.end()
    first = world.start(by_address=choose.random() < 0.5)
    time.sleep(choose.choice((0.0, 0.0, choose.uniform(0.0, 2.0))))
    second = world.start(by_address=choose.random() < 0.5)
    fault = world.fault("second start: at the same moment")
    while first.lives and second.lives:
        time.sleep(0.1)
    goes_on = first.lives or first.ending is Ending.COMPLETE
    winner, loser = (first, second) if goes_on else (second, first)
    _judge(world, fault, winner, loser)
    if world.ended(winner) is not Ending.COMPLETE:
        world.to_the_end()


def _judge(world: World, fault: Fault, first: AppRun, second: AppRun) -> None:
    """What has become of a second start: at most one of the two may have gone on."""
    ending = world.ended(second)
    if not second.batches and ending in (Ending.REFUSED, Ending.BROKEN):
        fault.outcome = Outcome.REFUSED if ending is Ending.REFUSED else Outcome.OTHERS_WORDS
        world.refusals.append(f"{fault.name}: {second.last_error}")
        return
    ending = world.ended(first)  # the second has taken its checkpoint over
    world.refusals.append(f"{fault.name}, the first: {first.last_error}")
    if ending is Ending.COMPLETE and second.batches:
        world.second_starts_admitted += 1
        world.problems.append(f"{fault.name}: both runs went on")
        fault.settle(Outcome.WRONG)
    else:
        fault.outcome = Outcome.OTHERS_WORDS if ending is Ending.BROKEN else Outcome.REFUSED
