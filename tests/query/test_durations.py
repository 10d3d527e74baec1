"""Lengths of time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.query.durations import duration_text, duration_us
from tests.query.stream.streams import fails


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1us", 1),
        ("1ms", 1_000),
        ("1s", 1_000_000),
        ("1m", 60_000_000),
        ("1h", 3_600_000_000),
        ("1d", 86_400_000_000),
        ("1h30m", 5_400_000_000),
        ("1.5s", 1_500_000),
        (" 2 s ", 2_000_000),
        ("-5s", -5_000_000),
        ("-1h30m", -5_400_000_000),
        ("0s", 0),
        (timedelta(seconds=2), 2_000_000),
        (timedelta(seconds=-2), -2_000_000),
    ],
)
def test_lengths_as_people_write_them(text: str | timedelta, us: int) -> None:
    assert duration_us(text) == us


@given(st.integers(-(2**52), 2**52))
def test_text_reads_back(us: int) -> None:
    assert duration_us(duration_text(us)) == us


@pytest.mark.parametrize("text", ["", "  ", "5", "s", "5 parsecs", "5s!", "1s-2s", "--5s", "-"])
def test_what_is_no_length(text: str) -> None:
    fails(lambda: duration_us(text, "lateness"), "lateness is not a length of time", f"'{text}'", "'1h30m'")


def test_numbers_have_no_unit() -> None:
    fails(lambda: duration_us(5), "must be text or a timedelta", "got 5", "'10s'")  # type: ignore[arg-type]


def test_there_is_a_limit() -> None:
    fails(lambda: duration_us("99999999999999d"), "too long")
