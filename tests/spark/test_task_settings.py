"""Every setting of a node, and what the engine inside a task of Spark does with it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

import penstock as ps
from penstock.metrics.turns import TurnLog
from penstock.query.errors import PenstockError
from penstock.scheduling.dispatch.rules import Rules

#: Each with a value that is not its default.
USED: dict[str, Any] = {
    "scheduling": "congestion",
    "rules": Rules(passes=False),
    "fusion": False,
    "block_events": 1_024,
    "chunk_blocks": 2,
    "max_chunks": 8,
    "turn_blocks": 1,
}
REFUSED: dict[str, Any] = {
    "workers": 8,
    "consumption": "half",
    "costs": "mean",
    "source_batch": 100,
    "prune_sources": False,
    "epoch_us": 500,
    "marker_every_ms": 7,
    "turn_log": TurnLog(),
    "threads": "per_operator",
    "memory": "queues",
    "binding": "greedy",
    "installation": "barrier",
    "rebind_every_s": 1.0,
    "tasks": 4,
    "virtual_partitions": 16,
    "rebalance": None,
    "rebalance_every_s": 1.0,
    "stop_grace": None,
    "force_route": lambda route: route,
    "checkpoint": "state",
    "epoch": "1s",
    "keep_versions": 3,
}
_NEEDS: dict[str, dict[str, Any]] = {"installation": {"binding": "greedy"}}


def test_it_is_known_of_every_setting_what_becomes_of_it() -> None:
    names = {field.name for field in fields(ps.Node)}
    assert names == {*USED, *REFUSED}, "say here what a task of Spark does with a new setting"


@pytest.mark.parametrize("name", USED)
def test_a_task_follows(name: str) -> None:
    assert getattr(ps.Spark(node=ps.Node(**{name: USED[name]})).node, name) == USED[name]


@pytest.mark.parametrize("name", REFUSED)
def test_a_setting_that_no_task_follows_is_refused_by_name(name: str) -> None:
    node = ps.Node(**{name: REFUSED[name]}, **_NEEDS.get(name, {}))
    with pytest.raises(PenstockError, match=rf"ps.Spark does not follow .* of node=: .*\b{name}="):
        ps.Spark(node=node)


def test_all_that_is_refused_is_named_with_what_there_is_instead() -> None:
    node = ps.Node(workers=8, binding="greedy", tasks=4, memory="queues")
    with pytest.raises(PenstockError) as refused:
        ps.Spark(node=node)
    assert str(refused.value) == (
        "ps.Spark does not follow these settings of node=: workers=8, memory='queues', binding='greedy', "
        "tasks=4; a task of Spark has one thread and follows block_events, chunk_blocks, fusion, max_chunks, "
        "rules, scheduling, turn_blocks; write ps.Spark('local[8]') instead of workers and "
        "ps.Spark(tasks=...) instead of tasks, and leave out the others"
    )


def test_of_rules_a_task_has_the_passes_alone() -> None:
    with pytest.raises(PenstockError, match="rules=Rules"):
        ps.Spark(node=ps.Node(rules=Rules(patience=False)))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"scheduling": "nope"}, "unknown policy: 'nope'"),
        ({"binding": "nope"}, "unknown binding: 'nope'"),
        ({"binding": "greedy", "installation": "nope"}, "unknown installation: 'nope'"),
        ({"costs": "nope"}, "costs must be 'least' or 'mean': got 'nope'"),
        ({"threads": "nope"}, "threads must be 'pool' or 'per_operator': got 'nope'"),
        ({"memory": "nope"}, "memory must be 'blocks' or 'queues': got 'nope'"),
        ({"consumption": "nope"}, "unknown consumption: 'nope'"),
        ({"source_batch": 0}, "source_batch must be at least 1: got 0"),
        ({"rules": 3}, "rules must be ps.Rules"),
    ],
)
def test_what_is_none_of_a_closed_set_is_refused_where_it_is_written(settings: Any, told: str) -> None:
    with pytest.raises(PenstockError, match=told):
        ps.Node(**settings)
