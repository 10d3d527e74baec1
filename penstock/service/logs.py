"""Logs of a service: what the package's loggers tell, as text or as lines of JSON on standard error."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum


class LogFormat(StrEnum):
    """How a record is written."""

    TEXT = "text"
    JSON = "json"


@contextmanager
def logging_as(form: LogFormat) -> Iterator[None]:
    """Inside ``with``, the loggers of the package write to standard error, from level INFO on."""
    logger = logging.root.getChild("penstock")
    before = logger.level, logger.propagate
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form is LogFormat.JSON else _Text())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
        logger.setLevel(before[0])


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_moment(record)} {record.levelname} {super().format(record)}"


class _Json(logging.Formatter):
    """One object a line; what a record says in fields stands beside its text."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)
