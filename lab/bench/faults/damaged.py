"""Rounds with damaged files: each damage is found before anything is written wrongly, or does no harm."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from lab.bench.faults.damage import Damage, damage, kinds_of_files
from lab.bench.faults.run import Ending, Role
from lab.bench.faults.table import Outcome
from lab.bench.faults.world import World
from penstock.connectors.deliveries import delivery_of
from penstock.state.store import StateStore

_DAMAGES = 4
_LARGE_BATCHES = 110  # events: fewer batches, so that a run is soon over


def damages(world: World) -> None:
    """A run is killed on its way; from there it is started again and again, each time with other damage."""
    choose = world.choose
    world.use(batch_events=_LARGE_BATCHES)
    world.goes_back = True
    run = world.start()
    run.until_batches(choose.randint(3, 10))
    world.kill(run, Role.ALL, f"kill of the {Role.ALL}")
    run.end()
    image = world.folder / "image"
    shutil.copytree(world.plan.root, image)
    kinds = sorted(kinds_of_files(image))
    for kind in choose.sample(kinds, min(_DAMAGES, len(kinds))):
        restore(image, world.plan.root)
        _damaged_start(world, image, kind)
    restore(image, world.plan.root)
    world.to_the_end()


def restore(image: Path, root: Path) -> None:
    """Puts a copy in the place of the folder."""
    shutil.rmtree(root)
    shutil.copytree(image, root)


def _damaged_start(world: World, image: Path, kind: str) -> None:
    root, choose = world.plan.root, world.choose
    files = kinds_of_files(root)[kind]
    path, what = choose.choice(files), choose.choice(list(Damage))
    changed = damage(what, path, files, choose)
    if not changed:
        return
    fault = world.fault(f"damage: {kind}")
    told = f"{what} of {' and '.join(str(file.relative_to(root)) for file in changed)}"
    run = world.start()
    ending = world.ended(run)
    if ending is Ending.COMPLETE:
        differences = world.differences()
        if not differences:
            fault.settle(Outcome.HARMLESS)
        elif is_told_by_verify(world):
            fault.settle(Outcome.TOLD)
        else:
            world.problems.append(f"not noticed: {told}")
            world.blame([fault], differences)
        return
    world.refusals.append(f"{told}: {run.last_error}")
    for file in changed:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(image / file.relative_to(root), file)
    if _contents(root) != _contents(image):  # else it goes on as it would have gone on
        world.to_the_end()
        differences = world.differences()
        if differences:
            world.problems.append(f"refused too late: {told}")
            world.blame([fault], differences)
            return
    fault.settle(Outcome.REFUSED if ending is Ending.REFUSED else Outcome.OTHERS_WORDS)


def _contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def is_told_by_verify(world: World) -> bool:
    """Whether what was delivered is not what is there: a run does not read all of its output at its start."""
    latest = StateStore(world.plan.checkpoint / "state").latest()
    assert latest is not None  # the run is complete, and nothing is there beyond its last batch
    deliveries = filter(None, map(delivery_of, latest.deliveries.values()))
    return any(delivery.verify(sys.maxsize) is not None for delivery in deliveries)
