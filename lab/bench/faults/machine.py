"""Rounds in which the machine fails a run: a full disk, no power, another time, an executor that dies."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from lab.bench.faults.clock import ShiftedClock
from lab.bench.faults.disk import SmallDisk
from lab.bench.faults.power import PowerRecorder
from lab.bench.faults.run import Role
from lab.bench.faults.world import Fault, World
from penstock.spark.session.cluster import LocalCluster

_FULL_S = 15.0
_CUTS = 2
_DAY_S = 86_400


def full_disk(world: World) -> None:
    """The disk fills up on the way, for a while; a run that has ended for it is started again."""
    choose = world.choose
    disk = SmallDisk(world.plan.root, world.folder / "disk")
    world.cleanups.append(disk.remove)
    world.environment = disk.environment(world.environment)
    world.fill()  # what was there lies below the new disk
    run = world.start()
    run.until_batches(choose.randint(1, 6))
    fault = world.fault("full disk")
    leave, until_s = choose.choice((0, 0, 5_000, 30_000)), time.monotonic() + _FULL_S
    while run.lives and time.monotonic() < until_s:
        disk.fill(leave)
        time.sleep(0.02)
    disk.free()
    world.sum_up(run, [fault])


def clock_jumps(world: World) -> None:
    """The clock is put forward and back in a run, and between two."""
    choose = world.choose
    clock = ShiftedClock(world.folder / "clock")
    world.environment = clock.environment(world.environment)
    for _ in range(2):
        run, faults = world.start(), []
        for _ in range(choose.randint(1, 3)):
            if not run.until_batches(len(run.batches) + choose.randint(1, 3)):
                break
            clock.shift(choose.choice((-400, -1, 0, 1, 400)) * _DAY_S + choose.randint(-3600, 3600))
            faults.append(world.fault("clock jump"))
        if run.until_batches(len(run.batches) + 1):
            world.kill(run, Role.ALL, f"kill of the {Role.ALL}")
            run.end()
    world.to_the_end()


def power_cuts(world: World) -> None:
    """What was not synced is gone, or by chance is not."""
    choose = world.choose
    recorder = PowerRecorder(world.plan.root, world.folder / "journal")
    recorder.begin()
    world.environment = recorder.environment(world.environment)
    for number in range(_CUTS):
        run = world.start()
        run.until_batches(choose.randint(1, 6))
        time.sleep(choose.uniform(0.0, 0.6))
        if world.kill(run, Role.ALL, "power cut") is None:
            break
        run.end()
        recorder.cut(choose if number or choose.random() < 0.5 else None)
    world.to_the_end()


def executors(cluster: Callable[[], LocalCluster]) -> Callable[[World], None]:
    """Rounds on a cluster of which executors die or stand still for a while."""

    def play(world: World) -> None:
        choose, faults = world.choose, []
        brought_up = cluster()
        run = world.start(master=brought_up.master, tasks=2)
        for number in range(3):
            if not run.until_batches(len(run.batches) + choose.randint(1, 3)):
                break
            alive = executors_of(brought_up)
            if not alive:
                continue
            if number == 0 or choose.random() < 0.6:
                faults.append(_killed(world, choose.choice(alive)))
            else:
                faults.append(_stopped(world, choose.choice(alive)))
        world.use(master=brought_up.master)
        world.sum_up(run, [fault for fault in faults if fault is not None])

    return play


def executors_of(cluster: LocalCluster) -> list[psutil.Process]:
    """The executors' JVMs."""
    state = cluster.state()
    members = [] if state is None else [process for member in state.members if (process := member.process())]
    return [child for member in members for child in member.children() if "java" in child.name()]


def _killed(world: World, executor: psutil.Process) -> Fault | None:
    try:
        executor.kill()
    except psutil.NoSuchProcess:
        return None
    world.kills += 1
    return world.fault("kill of an executor")


def _stopped(world: World, executor: psutil.Process) -> Fault | None:
    try:
        executor.suspend()
        time.sleep(world.choose.uniform(0.5, 3.0))
        executor.resume()
    except psutil.NoSuchProcess:
        return None
    return world.fault("SIGSTOP and SIGCONT of an executor")
