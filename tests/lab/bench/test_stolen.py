from __future__ import annotations

from pathlib import Path

import pytest

from lab.bench.measuring import stolen


def test_the_share_is_of_all_processors_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(stolen, "_STAT", stat)
    monkeypatch.setattr(stolen.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(stolen.os, "sysconf", lambda _: 100)
    stat.write_text("cpu  1 2 3 4 5 6 7 100 9 10\n")
    counted = stolen.Stolen()
    stat.write_text("cpu  1 2 3 4 5 6 7 140 9 10\n")
    assert counted.share(1.0) == pytest.approx(0.2)  # 40 ticks of 10 ms in 2 s


def test_where_the_system_says_nothing_nothing_is_stolen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stolen, "_STAT", tmp_path / "absent")
    assert stolen.Stolen().share(1.0) == 0.0
