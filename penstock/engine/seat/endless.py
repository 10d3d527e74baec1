"""Operators of a run in one process that keep keys for ever, watched for how large they become."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from penstock.engine.keyed.task import Task
from penstock.operators.keyed.deduplicate import Deduplicate
from penstock.operators.run.base import Operator
from penstock.operators.run.endless import EndlessState, Remembered


def watch(operators: Iterable[Operator]) -> None:
    """Lets them tell when they have grown; the instances of a step count together."""
    instances: dict[str, list[Deduplicate]] = {}
    for operator in operators:
        inner = operator.operator if isinstance(operator, Task) else operator
        if isinstance(inner, Deduplicate) and inner.remembered is not None:
            instances.setdefault(inner.step, []).append(inner)
    state, lock = EndlessState(), threading.Lock()

    def look(grown: Deduplicate) -> None:
        sizes = (one.remembered for one in instances[grown.step])
        with lock:  # several instances may have grown at once
            total = sum((size for size in sizes if size is not None), Remembered(0, 0))
            state.look({grown.step: total})

    for step in instances.values():
        for operator in step:
            operator.on_growth = look
