"""A program to be killed: the app of the crash tests on a node with a checkpoint, many epochs long.

It says when it has begun and when an epoch counts, so that whoever kills it knows how far it is.
"""

from __future__ import annotations

import random
from pathlib import Path

import penstock as ps
from tests.engine.epochs.kept import FOR_EVER_S, Portions, begun, portioned
from tests.spark.crash_app import build


def main(folder: str, joined: str, seed: str, tasks: str, workers: str, binding: str) -> None:
    choose = random.Random(int(seed))
    app, _ = build(Path(folder) / "out", joined == "joined")
    portions = Portions(choose, most=12)
    node = ps.Node(
        tasks=int(tasks),
        workers=int(workers),
        binding=binding or None,
        block_events=64,
        virtual_partitions=16,
    )
    execution, kept = begun(portioned(app.graph(), portions), node, Path(folder) / "state", portions)

    def tell(epoch: int) -> None:
        print(f"epoch {epoch}", flush=True)
        portions.more()

    kept.after_commit = tell
    execution.start()
    assert execution.wait(FOR_EVER_S)
    print(f"complete: {execution.finish().complete}", flush=True)
