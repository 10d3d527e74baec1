"""Steps: what a stream's methods leave behind, and what the graph is made from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import assert_never

from penstock.query.connectors import BAD_RECORD_SCHEMA
from penstock.query.errors import Origin, QueryError
from penstock.query.graph import Port
from penstock.query.steps.spec import Spec
from penstock.query.types import Schema

LATE_EVENTS = "late events stay late: an operator that depends on time would leave all of them out"
BAD_RECORDS = "bad records have no event time"
_PATH_LIKE = re.compile(r"[/\\]|^\.")
_LONGEST_NAME = 200  # file systems allow 255, and some names get an ending


class Scope:
    """The app that a step belongs to. Compared by identity: two apps may have the same name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a query, with all that the graph must know of it."""

    scope: Scope
    #: What errors call it: its name, or the method that made it.
    label: str
    #: The name that the user gave it, if any; sources have one always.
    name: str | None
    spec: Spec
    inputs: tuple[Feed, ...]
    schema: Schema
    time_column: str | None
    origin: Origin
    #: Why no operator that depends on time can follow, if so.
    untimed: str | None = None

    def __post_init__(self) -> None:
        check_columns(self.schema)


@dataclass(frozen=True)
class Feed:
    """One output of a step: what a stream is, and what the next step reads."""

    step: Step
    port: Port = Port.MAIN

    @property
    def schema(self) -> Schema:
        if self.port is Port.BAD:
            return BAD_RECORD_SCHEMA
        if self.port is Port.FAILED:
            return self.step.spec.failed_columns(self.step.inputs[0].schema)
        return self._late_of.schema if self._late_of else self.step.schema

    @property
    def time_column(self) -> str | None:
        if self.port is Port.BAD:
            return None
        if self.port is Port.FAILED:  # a timer that failed has no event
            return None if self.step.spec.has_timers else self.step.inputs[0].time_column
        return self._late_of.time_column if self._late_of else self.step.time_column

    @property
    def untimed(self) -> str | None:
        if self.port is Port.BAD:
            return BAD_RECORDS
        return LATE_EVENTS if self._late_of else self.step.untimed

    @property
    def _late_of(self) -> Feed | None:
        match self.port:
            case Port.LATE:
                return self.step.inputs[0]
            case Port.LATE_RIGHT:
                return self.step.inputs[1]
            case Port.MAIN | Port.BAD | Port.FAILED:
                return None
            case _ as port:
                assert_never(port)


def check_columns(schema: Schema) -> None:
    """Refuses an empty schema and the names that Penstock keeps for itself."""
    if not len(schema):
        raise QueryError("an event needs at least one column", hint="keep or add a column")
    for name in schema.names:
        if name.startswith("$") or name == "_row":
            raise QueryError(
                f"column name '{name}' is reserved",
                hint="names that start with '$', and '_row', belong to Penstock: choose another",
            )


def check_name(name: object, what: str) -> str:
    """A name that can stand in metrics and errors, and be a file's or a folder's: never a path."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or name.startswith("$"):
        raise QueryError(
            f"{what} must be a name",
            detail=f"got {name!r}",
            hint=f"write some printable text, e.g. 'per_lane'{_column_hint(name)}",
        )
    if _PATH_LIKE.search(name) or len(name.encode()) > _LONGEST_NAME:
        raise QueryError(
            f"{what} must be fit for a file",
            detail=f"got {name!r}",
            hint=f"leave out '/' and '\\' and a '.' in front, and take at most {_LONGEST_NAME} bytes",
        )
    return name


def _column_hint(name: object) -> str:
    if name is None or isinstance(name, str):
        return ""
    return "; for a column called 'name' pass a dict: {'name': ...}"


def check_timed(feed: Feed) -> None:
    """Refuses an operator that depends on time where there is no time to depend on."""
    if feed.untimed:
        raise QueryError(
            "this stream cannot be windowed, joined, deduplicated, matched or processed", detail=feed.untimed
        )
