"""What is compiled for longer than somebody would wait without a word is said, once."""

from __future__ import annotations

import logging

import pytest

from penstock.compiled.notice import Notice


def test_it_says_once_what_is_compiled(caplog: pytest.LogCaptureFixture) -> None:
    notice = Notice(patience_s=0.0)
    with caplog.at_level(logging.WARNING), notice.compiling("update_panes"):
        while not caplog.messages:
            pass  # the timer's thread says it
    with caplog.at_level(logging.WARNING), notice.compiling("merge_panes"):
        pass
    (message,) = caplog.messages
    assert message.startswith("compiling 'update_panes' for queries that have not run here before")
    assert set(notice.times_s) == {"update_panes", "merge_panes"}


def test_it_says_nothing_of_what_takes_no_time(caplog: pytest.LogCaptureFixture) -> None:
    notice = Notice(patience_s=1e6)
    with caplog.at_level(logging.WARNING), notice.compiling("update_panes"):
        pass
    assert caplog.messages == []
    assert notice.spent_s >= 0.0
