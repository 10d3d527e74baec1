"""The command line: a mistake is one line, a result goes to standard output alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab.bench.catalogue import BENCHMARKS, benchmark_named
from penstock.cli import main
from penstock.query.errors import PenstockError


def test_without_a_command_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "usage: penstock" in capsys.readouterr().err


def test_an_unknown_benchmark_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "speed"])
    assert "memory" in capsys.readouterr().err
    with pytest.raises(PenstockError, match="unknown benchmark: 'speed'"):
        benchmark_named("speed")


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_every_benchmark_can_be_loaded(name: str) -> None:
    assert callable(benchmark_named(name))


def test_a_mistake_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise PenstockError("no such road: got 99; roads are 0 to 49")

    monkeypatch.setattr("penstock.demo.run_demo", fails)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == "penstock: no such road: got 99; roads are 0 to 49\n"


@pytest.mark.parametrize(("on", "shown"), [("spark", "median ms"), ("node", "latency by query")])
def test_the_demo_ends_with_a_summary(on: str, shown: str) -> None:
    command = [
        sys.executable,
        "-m",
        "penstock.cli",
        "demo",
        "--on",
        on,
        "--queries",
        "6",
        "--cars",
        "5000",
        "--seconds",
        "2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert "6 queries" in done.stdout
    assert "complete after" in done.stdout
    assert shown in done.stdout


@pytest.mark.slow
def test_bench_prints_json_alone_on_standard_output(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock.cli", "bench", "start", "--json", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(done.stdout)["name"] == "start"
    assert json.loads((tmp_path / "start.json").read_text()) == json.loads(done.stdout)
    assert "start: 150 queries, cold" in done.stderr
