"""Strings that kernels make by calling Python."""

from __future__ import annotations

from typing import Any

import pytest
from numba import njit

from penstock.kernels.makers import Maker, make_text
from penstock.memory.strings import StringPool

_made: Any = njit(lambda address, a, b: make_text(address, (a, b)), nogil=True)


def test_a_kernel_gets_the_code_of_the_text() -> None:
    strings = StringPool()
    strings.code("other")
    maker = Maker(strings, lambda a, b: f"{a}-{b}", 2)
    assert strings.text(_made(maker.address, 3, -4)) == "3--4"
    assert _made(maker.address, 3, -4) == strings.code("3--4")
    maker.check()


def test_what_is_raised_comes_out_before_the_next_call() -> None:
    def divided(a: int, b: int) -> str:
        return str(a // b)

    maker = Maker(StringPool(), divided, 2)
    assert _made(maker.address, 1, 0) == 0
    with pytest.raises(ZeroDivisionError):
        maker.check()
    maker.check()


def test_an_interrupt_waits_until_the_text_is_made() -> None:
    strings, interrupts = StringPool(), [KeyboardInterrupt()]

    def interrupted(a: int, b: int) -> str:
        if interrupts:
            raise interrupts.pop()
        return str(a + b)

    maker = Maker(strings, interrupted, 2)
    assert strings.text(_made(maker.address, 1, 2)) == "3"
    with pytest.raises(KeyboardInterrupt):
        maker.check()
