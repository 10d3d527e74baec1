"""The side outputs of steps and sources: what came late, what failed, what could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.errors import QueryError, Writing
from penstock.query.graph import Port
from penstock.query.misuse import told
from penstock.query.step import Feed, check_columns
from penstock.query.steps import SourceSpec
from penstock.query.stream.base import StreamBase

if TYPE_CHECKING:
    from penstock.query.stream.stream import Stream


@told
class SideOutputs(StreamBase):
    """Streams of what the step or the source just before did not hand on."""

    __slots__ = ()

    def late(self, side: str = "left") -> Stream:
        """The events that the operator just before left out because they came beyond their source's lateness.

        A join has two inputs: ``side`` says whose late events.
        """
        from penstock.query.stream.stream import Stream

        with Writing("late"):
            spec = self._feed.step.spec
            if self._feed.port is not Port.MAIN or not spec.timed:
                raise QueryError(
                    "only operators that depend on time have a late output",
                    detail=f"got a {self!r}",
                    hint="call late() on what agg, top, a join, cogroup, deduplicate, match, detect or "
                    "process gave",
                )
            if side not in ("left", "right"):
                raise QueryError(
                    "side is 'left' or 'right'", detail=f"got {side!r}", hint="write side='right'"
                )
            if side == "right" and len(self._feed.step.inputs) < 2:
                raise QueryError("there is one input only", detail=f"got a {self!r}", hint="leave side out")
            return Stream(Feed(self._feed.step, Port.LATE if side == "left" else Port.LATE_RIGHT))

    def failed(self) -> Stream:
        """The events that the function of the step just before failed for, with ``error`` and ``step``.

        Only of steps with ``on_error="set_aside"``. Such an event has left no rows and changed no state.

        >>> kinds = cars.flat_map(str, {"text": "string"}, on_error="set_aside")
        >>> kinds.failed().schema.names
        ('ts', 'id', 'lane', 'speed', 'error', 'step')
        """
        from penstock.query.stream.stream import Stream

        with Writing("failed"):
            if self._feed.port is not Port.MAIN or not self._feed.step.spec.sets_aside:
                raise QueryError(
                    "only a step that sets events aside has a failed output",
                    detail=f"got a {self!r}",
                    hint='give flat_map, batch or process on_error="set_aside", and call failed() on what it '
                    "gave",
                )
            feed = Feed(self._feed.step, Port.FAILED)
            check_columns(feed.schema)
            return Stream(feed)

    def bad_records(self) -> Stream:
        """The records of a source that could not be read: partition, offset, record, reason."""
        from penstock.query.stream.stream import Stream

        with Writing("bad_records"):
            if self._feed.port is not Port.MAIN or not isinstance(self._feed.step.spec, SourceSpec):
                raise QueryError(
                    "only sources have bad records",
                    detail=f"got a {self!r}",
                    hint="call bad_records() on what app.source gave",
                )
            return Stream(Feed(self._feed.step, Port.BAD))
