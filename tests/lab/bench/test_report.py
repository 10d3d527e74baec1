"""Reports: JSON that a script can check, text that a person can read."""

from __future__ import annotations

import json
from pathlib import Path

from lab.bench.measuring.report import Report


def report() -> Report:
    return Report(
        name="sample",
        settings={"workers": 2},
        figures={"events_per_s": 1.5e6, "nothing": float("nan"), "by_block": {64: {"x": 1.0}}},
        ratios={"of_limit": 0.5},
    )


def test_json_has_name_machine_settings_figures_and_ratios_and_no_nan() -> None:
    document = json.loads(report().json())
    assert document["name"] == "sample"
    assert {"machine", "settings", "figures", "ratios"} <= set(document)
    assert document["figures"] == {"events_per_s": 1.5e6, "nothing": None, "by_block": {"64": {"x": 1.0}}}
    assert document["machine"]["cores"] >= 1


def test_a_report_is_saved_beside_its_plots(tmp_path: Path) -> None:
    path = report().save(tmp_path / "results")
    assert json.loads(path.read_text())["ratios"] == {"of_limit": 0.5}


def test_text_shows_ratios_before_figures() -> None:
    text = report().text()
    assert text.index("of_limit = 0.500") < text.index("events_per_s = 1,500,000")
