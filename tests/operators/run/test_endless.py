"""State that nothing ever drops: when users are told of its size."""

from __future__ import annotations

import pytest

from penstock.operators.run import endless
from penstock.operators.run.endless import EndlessState, Remembered


def test_a_step_is_told_when_it_is_large_and_each_time_it_has_doubled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(endless, "FIRST_BYTES", 100 << 20)
    state, told = EndlessState(), []
    for mib in (1, 99, 100, 150, 199, 200, 210, 1_000, 1_999, 2_000):
        state.look({"first": Remembered(7, mib << 20), "other": Remembered(1, 5)})
        if caplog.messages:
            told.append(mib)
        caplog.clear()
    assert told == [100, 200, 1_000, 2_000]


def test_the_warning_names_the_step_its_size_and_what_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    EndlessState().look({"ids": Remembered(1_500_000, 70 << 20)})
    assert caplog.messages == [
        "step 'ids' remembers 1,500,000 keys for ever, 70 MiB, and grows with each new one; "
        "where duplicates come within a bounded time, write e.g. deduplicate(..., within='1h')"
    ]
