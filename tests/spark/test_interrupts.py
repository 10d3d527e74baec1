"""Ctrl-C is noted while a run is under way, and means what it meant before and after."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from penstock.spark.interrupts import Interrupts


def test_the_first_ctrl_c_is_noted_and_the_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        assert not interrupts.noted
        signal.raise_signal(signal.SIGINT)
        assert interrupts.noted
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_ctrl_c_ends_the_process_at_once() -> None:
    program = (
        "import signal\n"
        "from penstock.spark.interrupts import Interrupts\n"
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
