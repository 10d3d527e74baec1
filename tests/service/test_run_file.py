"""``penstock run app.py`` and ``python app.py``: signals drain, logs tell, the exit code says how it went."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parent.parent.parent

ROWS = """
import penstock as ps
app = ps.App("numbers")
data = {"ts": [1_000_000 * n for n in range(10)], "n": list(range(10))}
numbers = app.source("numbers", ps.sources.Columns(data, {"ts": "timestamp", "n": "int64"}), event_time="ts")
"""

ENDLESS = """
import penstock as ps

def fill(offset, n, columns, start):
    columns["ts"][start : start + n] = range(offset, offset + n)

app = ps.App("endless")
source = ps.sources.Generator(fill, {"ts": "timestamp"}, rate=1_000)
app.sink("out", app.source("numbers", source, event_time="ts"), ps.sinks.Discard())
"""


@contextmanager
def started(
    tmp_path: Path, text: str, *arguments: str, plain: bool = False
) -> Iterator[subprocess.Popen[str]]:
    file = tmp_path / "app.py"
    file.write_text(text)
    command = [str(file)] if plain else ["-m", "penstock.cli", "run", *arguments, str(file)]
    with subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def done(tmp_path: Path, text: str, *arguments: str) -> tuple[int | None, str, str]:
    with started(tmp_path, text, *arguments) as process:
        out, errors = process.communicate()
        return process.returncode, out, errors


def test_an_app_that_its_file_does_not_run_is_run(tmp_path: Path) -> None:
    app = ROWS + 'app.sink("out", numbers.filter(ps.col("n") > 6), ps.sinks.Console())\n'
    code, out, errors = done(tmp_path, app, "--on", "node")
    assert (code, len(out.splitlines())) == (0, 4), errors  # three rows, and how many
    told = [line.split(" ", 2)[2] for line in errors.splitlines()]
    assert told[0] == "run 'numbers' starts on Node: 1 queries, 3 operators"
    assert told[1].startswith("run 'numbers' is ready after ")
    assert told[2].startswith("run 'numbers' has ended: complete after ")


def test_settings_beside_the_file_hold_for_a_run_that_the_file_starts(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(
        '[run]\non = "node"\n[node]\nworkers = 1\n[service]\nlog = "json"\n'
    )
    app = ROWS + 'app.sink("out", numbers, ps.sinks.Discard())\nprint(app.run().metrics.workers)\n'
    code, out, errors = done(tmp_path, app)
    assert (code, out) == (0, "1\n"), errors
    records = [json.loads(line) for line in errors.splitlines()]
    assert [record["state"] for record in records] == ["starting", "ready", "ended"]
    assert (records[-1]["read"], records[-1]["written"], records[-1]["run"]) == (10, 10, "numbers")


def test_sigterm_drains_and_ends_with_a_summary_and_the_pages_say_so_before(tmp_path: Path) -> None:
    with started(tmp_path, ENDLESS, "--on", "node", "--port", "0") as process:
        assert process.stderr is not None
        told = ""
        for line in process.stderr:
            told += line
            if " is ready " in line:
                break
        address = re.search(r"http://127\.0\.0\.1:\d+", told)
        assert address is not None, told
        with urlopen(f"{address[0]}/ready") as answer:
            assert json.load(answer)["state"] == "ready"
        with urlopen(f"{address[0]}/metrics") as answer:
            assert 'penstock_run_state{run="endless",state="ready"} 1.0' in answer.read().decode()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert process.returncode == 0
    assert "was asked to stop" in errors
    assert "run 'endless' has ended: stopped after " in errors


def test_sigterm_drains_a_file_that_python_runs(tmp_path: Path) -> None:
    app = ENDLESS + (
        "built = lambda done, of: print('built', flush=True) if done == of else None\n"
        "print(ps.Node(workers=1).run(app.graph(), on_built=built))\n"
    )
    with started(tmp_path, app, plain=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "built\n"
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert out.startswith("stopped after ")


@pytest.mark.parametrize(
    ("text", "code", "what"),
    [
        ('app.sink("out", numbers.filter(ps.col("m") > 6), ps.sinks.Discard())\n', 2, "unknown column 'm'"),
        ("app = None\n", 2, "runs no app"),
        (
            'out = numbers.flat_map(lambda row: [1 / 0], output={"x": "int64"})\n'
            'app.sink("out", out, ps.sinks.Discard())\n',
            1,
            "has failed: function '<lambda>' raised ZeroDivisionError",
        ),
    ],
)
def test_the_exit_code_says_who_has_to_act(text: str, code: int, what: str, tmp_path: Path) -> None:
    returned, _, errors = done(tmp_path, ROWS + text, "--on", "node")
    assert returned == code, errors
    assert what in errors
    assert "Traceback" not in errors
