"""An app with two sources that the tests of queries are written on. Nothing runs here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from penstock.app import App
from penstock.query.connectors import Sink, Source
from penstock.query.errors import QueryError
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema

CARS = Schema(ts="timestamp", id="int64", lane="int32", speed="float64?")
TOLLS = Schema(ts="timestamp", car="int64", paid="float32?")


class DeclaredSource(Source):
    """A source that has a schema and no events."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    @property
    def schema(self) -> Schema:
        return self._schema


class NoSink(Sink):
    @property
    def guarantee(self) -> str:
        return "none"


class Traffic:
    """An app with the streams ``cars`` and ``tolls``."""

    def __init__(self) -> None:
        self.app = App("traffic")
        self.cars = self.app.source("cars", DeclaredSource(CARS), event_time="ts", lateness="2s")
        self.tolls = self.app.source("tolls", DeclaredSource(TOLLS), event_time="ts")

    def sink(self, name: str, stream: Stream) -> None:
        self.app.sink(name, stream, NoSink())


def fails(action: Callable[[], Any], *parts: str, step: str | None = None) -> QueryError:
    """Expects a QueryError with all these parts that names the step and a line of the calling test."""
    with pytest.raises(QueryError) as caught:
        action()
    error = caught.value
    text = str(error)
    for part in parts:
        assert part in text, f"{part!r} is not in: {text}"
    if step is not None:
        assert f"step '{step}'" in text, text
    assert re.search(rf"written at .*{re.escape(action.__code__.co_filename)}:\d+", text), text
    assert abs(error.origin.line - action.__code__.co_firstlineno) <= 30, text
    return error
