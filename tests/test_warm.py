"""``penstock warm``: an app's kernels are compiled without running it, and a run afterwards compiles none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

_APP = """
import penstock as ps
from penstock import col, count, tumbling

app = ps.App("visits")
rows = [{{"ts": second * 1_000_000, "user": second % 2}} for second in range(10)]
schema = ps.Schema(ts="timestamp", user="int64")
visits = app.source("visits", ps.sources.Rows(rows, schema), event_time="ts", lateness="1s")
per_user = visits.filter(col("user") >= 0).key_by("user").window(tumbling("5s")).agg(visits=count())
found = ps.sinks.Memory()
app.sink("per_user", per_user, found)
{run}
"""
_RUN = """
from penstock.compiled import cache
app.run(on=ps.Node(workers=1))
print(len(found.rows()), cache.counts.compiled)
assert found.rows()[0]["visits"] > 0
"""


def penstock(tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PENSTOCK_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("run", [_RUN, "", "app.run()"], ids=["on a node", "not at all", "on Spark"])
def test_a_run_compiles_nothing_that_was_compiled_beforehand(tmp_path: Path, run: str) -> None:
    file = tmp_path / "app.py"
    file.write_text(_APP.format(run=run))
    warmed = penstock(tmp_path, "-m", "penstock.cli", "warm", str(file))
    assert warmed.returncode == 0, warmed.stderr
    assert "visits: " in warmed.stdout
    assert "0 kernels compiled" not in warmed.stdout
    if run == _RUN:
        assert warmed.stdout.startswith("0 "), "nothing was run"
        assert penstock(tmp_path, str(file)).stdout == "4 0\n"
    again = penstock(tmp_path, "-m", "penstock.cli", "warm", str(file))
    assert "0 kernels compiled" in again.stdout


def test_a_file_without_an_app_is_told(tmp_path: Path) -> None:
    file = tmp_path / "nothing.py"
    file.write_text("value = 1\n")
    told = penstock(tmp_path, "-m", "penstock.cli", "warm", str(file))
    assert (told.returncode, told.stdout) == (2, "")
    assert "has no app; write app = ps.App('name') or app.run()" in told.stderr
    missing = penstock(tmp_path, "-m", "penstock.cli", "warm", "missing.py")
    assert "there is no file 'missing.py'; write penstock warm app.py" in missing.stderr
