"""A sum of numbered files tells in which one two folders differ, if it is one."""

from __future__ import annotations

import random
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.files.sums import FileSums

files = st.dictionaries(st.integers(0, 10**12 - 1), st.integers(0, 2**40), min_size=1, max_size=30)


def sums(sizes: Mapping[int, int]) -> FileSums:
    return FileSums.of(sizes.items())


@given(files, st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(sizes: dict[int, int], choose: random.Random) -> None:
    shuffled = list(sizes.items())
    choose.shuffle(shuffled)
    assert FileSums.of(shuffled) == sums(sizes)
    assert sums(sizes).odd_one(FileSums.of(shuffled)) is None


@given(files, st.data())
def test_the_only_file_that_differs_is_named(sizes: dict[int, int], data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(sorted(sizes)))
    missing = {other: size for other, size in sizes.items() if other != number}
    changed = {**sizes, number: sizes[number] + 1}
    assert sums(sizes).odd_one(sums(missing)) == number
    assert sums(missing).odd_one(sums(sizes)) == number
    assert sums(sizes).odd_one(sums(changed)) == number


@given(files, st.data())
def test_of_several_files_none_is_named(sizes: dict[int, int], data: st.DataObject) -> None:
    odd = data.draw(st.sets(st.integers(0, 10**12 - 1), min_size=2, max_size=5))
    changed = {**sizes, **{number: sizes.get(number, 0) + 1 for number in odd}}
    assert sums(sizes) != sums(changed)
    assert sums(sizes).odd_one(sums(changed)) is None


def test_sums_are_of_one_size_however_many_files_there_are() -> None:
    many = FileSums.of((number, 10**9) for number in range(10_000))
    assert all(0 <= power < 2**61 for power in many.powers)
