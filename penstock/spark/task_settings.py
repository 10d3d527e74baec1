"""What of a node's settings the engine inside a task of Spark follows; the rest is refused by name."""

from __future__ import annotations

from dataclasses import Field, fields, replace
from typing import Any

from penstock.engine.seat.settings import Settings
from penstock.query.errors import PenstockError
from penstock.scheduling.dispatch.rules import Rules

#: A task has one thread, which runs its operators to the end of the batch. Of ``rules`` it has the passes.
USED = frozenset(
    {"scheduling", "rules", "fusion", "block_events", "chunk_blocks", "max_chunks", "turn_blocks"}
)

#: What a run on Spark has instead of some of the others.
_INSTEAD = {
    "workers": "ps.Spark('local[8]')",
    "tasks": "ps.Spark(tasks=...)",
    "virtual_partitions": "ps.Spark(virtual_partitions=...)",
    "rebalance": "ps.Spark(rebalance=...)",
    "source_batch": "ps.Spark(batch_events=...)",
    "stop_grace": "ps.Spark(stop_grace=...)",
    "checkpoint": "ps.Spark(checkpoint=...)",
    "keep_versions": "ps.Spark(keep_versions=...)",
}


def check_task_settings(node: Settings) -> None:
    """Raises if a setting differs from its default and a task would not follow it."""
    ignored = [field.name for field in fields(node) if not _is_followed(field, getattr(node, field.name))]
    if ignored:
        named = ", ".join(f"{name}={getattr(node, name)!r}" for name in ignored)
        instead = [f"{_INSTEAD[name]} instead of {name}" for name in ignored if name in _INSTEAD]
        hints = ["write " + " and ".join(instead)] if instead else []
        if len(instead) < len(ignored):
            hints.append("leave out the others" if instead else "leave them out")
        raise PenstockError(
            f"ps.Spark does not follow these settings of node=: {named}; a task of Spark has one thread and "
            f"follows {', '.join(sorted(USED))}; {', and '.join(hints)}"
        )


def _is_followed(field: Field[Any], value: Any) -> bool:
    if field.name == "rules":
        return bool(replace(value, passes=True) == Rules())
    return field.name in USED or bool(value == field.default)
