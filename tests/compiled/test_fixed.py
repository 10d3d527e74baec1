"""Functions of fixed types: compiled at the first call, found by their module afterwards."""

from __future__ import annotations

import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.compiled import cache
from penstock.compiled.fixed import ALL, Fixed, fixed, kernel_of, part

_doubled = part()(lambda number: 2 * number)


@fixed("int64(int64[::1])", error_model="numpy")
def sum_of_doubles(numbers: np.ndarray) -> int:
    total = 0
    for number in numbers:
        total += _doubled(number)
    return total


@fixed("int64(int64)")
def never_called(number: int) -> int:
    return number


@given(st.lists(st.integers(-(2**40), 2**40), max_size=20))
def test_machine_code_gives_what_the_interpreter_gives(numbers: list[int]) -> None:
    assert sum_of_doubles(np.array(numbers, np.int64)) == 2 * sum(numbers)


def test_a_module_has_the_machine_code_once_it_was_called() -> None:
    sum_of_doubles(np.zeros(1, np.int64))
    now = sys.modules[__name__].sum_of_doubles
    assert not isinstance(now, Fixed)
    before = (cache.counts.compiled, cache.counts.loaded)
    assert now(np.array([4], np.int64)) == 8
    assert kernel_of(now) is now
    assert (cache.counts.compiled, cache.counts.loaded) == before


def test_what_is_not_called_is_not_compiled() -> None:
    assert isinstance(never_called, Fixed)
    assert never_called in ALL
    assert never_called._kernel is None


def test_a_part_is_a_plain_function_in_python() -> None:
    assert _doubled(21) == 42


def test_machine_code_depends_on_all_that_its_functions_and_constants_come_from() -> None:
    files = cache._compiled_modules("from penstock.scheduling.dispatch.machine import exchange\n")
    names = {file.rpartition("penstock/")[2] for file in files}
    assert {"scheduling/dispatch/machine.py", "scheduling/dispatch/board.py"} <= names
    assert "scheduling/policy.py" in names  # its constants are compiled in
    assert "engine/node.py" not in names
