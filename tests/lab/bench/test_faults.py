"""Two minutes of the laboratory of faults, with faults of its own each time."""

from __future__ import annotations

import pytest

from lab.bench.faults.bench import experiment


@pytest.mark.slow
def test_nothing_is_lost_whatever_happens_to_a_run() -> None:
    report = experiment(120, first=["kills"])
    told = report.json()  # with the seed and the folder of what went wrong
    figures = report.figures
    assert figures["kills"] > 0, told
    for bad in ("wrong_rows", "hangs", "stuck", "damaged_files_misread", "second_starts_admitted"):
        assert figures[bad] == 0, told
