"""The windows of the language, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.windows.session import Session as Session
from penstock.query.windows.session import session
from penstock.query.windows.sliding import Sliding as Sliding
from penstock.query.windows.sliding import sliding
from penstock.query.windows.tumbling import tumbling
from penstock.query.windows.window import WINDOWS as WINDOWS
from penstock.query.windows.window import Window as Window

__all__ = [
    "session",
    "sliding",
    "tumbling",
]
