"""Ctrl-C and SIGTERM are noted while a run is under way, and means what it meant before and after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from penstock.engine.seat.interrupts import Interrupts, handler_kept
from tests.spark.processes import driver

_PATIENCE_S = 240.0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_its_summary_and_nothing_else(number: signal.Signals) -> None:
    with driver("tests.spark.patterns.live_app") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "batch 2\n":
                break
        if number is signal.SIGINT:  # as a terminal does: to all that is in the foreground
            os.killpg(process.pid, number)
        else:  # as a supervisor does
            process.send_signal(number)
        said, errors = process.communicate(timeout=_PATIENCE_S)
    check_stopped(process.returncode, said, errors)


@pytest.mark.slow
def test_ctrl_c_while_a_run_is_being_started_ends_it_with_its_summary() -> None:
    with driver("tests.spark.patterns.live_app", "start") as process:
        said, errors = process.communicate(timeout=_PATIENCE_S)
    check_stopped(process.returncode, said, errors)


def check_stopped(code: int, said: str, errors: str) -> None:
    assert code == 0, errors
    told = [line for line in said.splitlines() if not line.startswith("batch ")]
    assert told[0].startswith("stopped after ")
    assert [line for line in errors.splitlines() if "incubator modules" not in line] == []


def test_who_takes_ctrl_c_from_us_gives_it_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with handler_kept():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_first_ctrl_c_is_noted_and_the_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        assert not interrupts.noted
        signal.raise_signal(signal.SIGINT)
        assert interrupts.noted
    assert signal.getsignal(signal.SIGINT) is before


def test_sigterm_is_noted_unless_somebody_else_waits_for_it() -> None:
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.noted
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    theirs: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: theirs.append(number))
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGTERM)
            assert (interrupts.noted, theirs) == (False, [signal.SIGTERM])
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_the_second_ctrl_c_ends_the_process_at_once() -> None:
    program = (
        "import signal\n"
        "from penstock.engine.seat.interrupts import Interrupts\n"
        "with Interrupts():\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "print('still here')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (130, "")


def test_other_threads_are_left_alone() -> None:
    found: list[object] = []

    def enter() -> None:
        with Interrupts():
            found.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [before]
