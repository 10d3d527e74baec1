"""A run that goes on with a changed function says so; another version of a step starts it without state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.checkpoints.folders import Changes, resume
from penstock.checkpoints.positions import Progress
from penstock.query.steps import ProcessSpec, SourceSpec
from penstock.query.user_functions import Context
from penstock.spark.batches.job import for_tasks
from penstock.spark.batches.stages import Stages, cut
from penstock.state.store import StateStore

SCHEMA = {"ts": "timestamp", "k": "int64"}


def counting(step: int) -> ps.ProcessFunction:
    """A process function of one name, whose code is another for another ``step``."""

    class Count(ps.ProcessFunction):
        def on_event(self, event: dict[str, Any], context: Context) -> list[dict[str, Any]]:
            context.state["n"] += step
            return [{"n": context.state["n"]}]

    return Count()


def passing(times: int) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
    def passed(event: dict[str, Any]) -> list[dict[str, Any]]:
        return [event] * times

    return passed


def stages_of(count: int = 1, version: Any = None, times: int = 1, times_version: Any = None) -> Stages:
    app = ps.App("counts")
    events = app.source("events", ps.sources.Columns({"ts": [1], "k": [1]}, SCHEMA), event_time="ts")
    passed = events.flat_map(passing(times), SCHEMA, version=times_version, name="passed")
    counted = passed.key_by("k").process(
        counting(count), {"n": "int64"}, {"n": "int64"}, version=version, name="counted"
    )
    app.sink("counts", counted, ps.sinks.Memory())
    graph = app.graph()
    return cut(for_tasks(graph, {n.id: n.spec.source for n in graph if isinstance(n.spec, SourceSpec)}))


def changes(folder: Path, before: Stages, after: Stages) -> Changes:
    """What is told when a run of one app goes on with another's checkpoint."""
    store = StateStore(folder)
    finals: dict[str, list[int] | None] = {"events": None}
    first, nothing, is_new = resume(store, before, finals, (0, 0), "run")
    assert is_new
    assert not nothing
    store.commit(first.taken_over("run", "here"))
    second, told, is_new = resume(store, after, finals, (0, 0), "run")
    assert not is_new
    store.commit(second.taken_over("run", "here"))
    _, again, _ = resume(store, after, finals, (0, 0), "run")
    assert not again.functions, "what was told once is known"
    return told


def test_the_same_functions_are_nothing_to_tell(tmp_path: Path) -> None:
    assert not changes(tmp_path, stages_of(), stages_of())
    assert not changes(tmp_path / "versions", stages_of(version=1), stages_of(version=1))


def test_a_changed_function_goes_on_with_the_old_state_and_it_is_said(tmp_path: Path) -> None:
    told = changes(tmp_path, stages_of(count=1), stages_of(count=2))
    assert not told.fresh
    assert str(told) == (
        "the function of step 'counted' has changed and goes on with its old state; give the step another "
        "version= to start without"
    )


def test_of_a_step_without_state_those_behind_it_are_meant(tmp_path: Path) -> None:
    told = changes(tmp_path, stages_of(times=1), stages_of(times=2))
    assert not told.fresh
    assert "function of step 'passed' has changed and goes on with the old state of the steps behind" in str(
        told
    )


@pytest.mark.parametrize(("before", "after", "said"), [(None, 1, "none"), (1, "two", "1")])
def test_another_version_starts_the_step_without_state(
    before: Any, after: Any, said: str, tmp_path: Path
) -> None:
    told = changes(tmp_path, stages_of(version=before), stages_of(count=2, version=after))
    assert dict(told.fresh) == {"counted": f"its function has version {after}, the checkpoint's had {said}"}
    assert not told.functions


def test_another_version_starts_the_steps_behind_it_without_state(tmp_path: Path) -> None:
    told = changes(tmp_path, stages_of(), stages_of(times=2, times_version=2))
    assert dict(told.fresh) == {"counted": "it computes something else now"}


def test_the_same_version_says_that_the_function_is_the_same(tmp_path: Path) -> None:
    assert not changes(tmp_path, stages_of(count=1, version=1), stages_of(count=2, version=1))


def test_a_step_that_is_told_otherwise_keeps_its_state_and_one_that_means_something_else_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stages_of()
    monkeypatch.setattr(ProcessSpec, "details", lambda self: "reworded")
    assert not changes(tmp_path, before, stages_of())
    latest = StateStore(tmp_path).latest()
    assert latest is not None
    assert Progress.from_json(latest.progress).texts == {"counted": "process reworded"}
    monkeypatch.setattr(ProcessSpec, "version", 2)
    _, told, _ = resume(StateStore(tmp_path), stages_of(), {"events": None}, (0, 0), "run")
    assert dict(told.fresh) == {"counted": "it computes something else now"}
