"""The benchmark of starting tells what a process has compiled, and the apps that it starts give rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from lab.bench.start.apps import APPS
from lab.bench.start.bench import started


def test_a_second_start_compiles_nothing(tmp_path: Path) -> None:
    cold = started("window", str(tmp_path / "cache"), {})
    warm = started("window", str(tmp_path / "cache"), {})
    assert {"update_panes", "hash_keys"} <= set(cold.compiled)
    assert (warm.compiled, warm.rows) == ({}, cold.rows)
    assert cold.processor_s > 0.0
    assert warm.loaded >= len(cold.compiled)


@pytest.mark.parametrize("name", APPS)
def test_every_query_of_an_app_gives_rows(name: str) -> None:
    sinks = APPS[name]().run(on=ps.Node(workers=1)).metrics.operators
    assert [sink.id for sink in sinks if sink.kind == "sink" and not sink.processed] == []
