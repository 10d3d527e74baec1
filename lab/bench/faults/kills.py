"""Rounds in which processes are killed or stopped for a while."""

from __future__ import annotations

import time

from lab.bench.faults.run import Ending, Role
from lab.bench.faults.world import World

_KILLS = 5
_DISTURBANCES = 9  # a run has some twenty batches
#: What ends a run when it is killed.
_MORTAL = (Role.ALL, Role.ALL, Role.DRIVER, Role.JVM)
_MOMENTS = ("", "", "", " while it starts", " while it finishes")
#: What a run goes on without.
_REPLACED = (Role.WORKER, Role.WORKERS, Role.PLANNER, Role.PYTHON)
_PAUSED = (Role.ALL, Role.DRIVER, Role.JVM, Role.WORKERS, Role.PLANNER)


def kills(world: World) -> None:
    """The run is killed again and again, and started again at once or when all of it is gone."""
    choose = world.choose
    for _ in range(_KILLS):
        role, moment = choose.choice(_MORTAL), choose.choice(_MOMENTS)
        run = world.start()
        match moment:
            case " while it starts":
                time.sleep(choose.uniform(0.0, world.start_s))
            case " while it finishes":
                run.until_finishing()
                time.sleep(choose.uniform(0.0, 0.3))
            case _:
                run.until_batches(choose.randint(1, 4))
                time.sleep(choose.uniform(0.0, 0.8))
        if world.kill(run, role, f"kill of the {role}{moment}") is None:
            break  # it has come to its end
        if role is Role.JVM:
            world.ended(run)
        elif choose.random() < 0.5:
            world.left_behind += run.end()
    world.to_the_end()


def disturbances(world: World) -> None:
    """Processes that a run can replace are killed, others stopped for a while, several times in one run."""
    choose, batches, faults = world.choose, 0, []
    run = world.start()
    for _ in range(_DISTURBANCES):
        batches += choose.randint(1, 3)
        if not run.until_batches(batches):
            break
        time.sleep(choose.uniform(0.0, 0.4))
        if choose.random() < 0.6:
            role = choose.choice(_REPLACED)
            fault = world.kill(run, role, f"kill of {role}")
        else:
            role = choose.choice(_PAUSED)
            paused = run.pause(role, choose.uniform(0.2, 2.5))
            fault = world.fault(f"SIGSTOP and SIGCONT of the {role}") if paused else None
        if fault is not None:
            faults.append(fault)
    world.sum_up(run, faults)


def undisturbed(world: World) -> None:
    """The app itself: nobody disturbs it."""
    run = world.start()
    began = time.monotonic()
    run.until_batches(1)
    world.start_s = time.monotonic() - began
    if world.ended(run) is not Ending.COMPLETE:
        world.to_the_end()
