"""What every stream is: one output of a step, and what the next step is made of."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.query.errors import Writing
from penstock.query.graph import Port
from penstock.query.misuse import told
from penstock.query.step import Feed, Step, check_name
from penstock.query.steps.spec import Spec
from penstock.query.types import Schema


@told
class StreamBase:
    """One output of a step."""

    __slots__ = ("_feed",)

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    @property
    def schema(self) -> Schema:
        """The columns of every event."""
        return self._feed.schema

    @property
    def time_column(self) -> str | None:
        """The column that always equals the event time, if there is one."""
        return self._feed.time_column

    def _step(
        self,
        writing: Writing,
        name: str | None,
        spec: Spec,
        schema: Schema,
        time_column: str | None,
        others: Sequence[Feed] = (),
    ) -> Step:
        feed = self._feed
        return Step(
            scope=feed.step.scope,
            label=writing.step,
            name=None if name is None else check_name(name, "a step's name"),
            spec=spec,
            inputs=(feed, *others),
            schema=schema,
            time_column=time_column,
            origin=writing.origin,
            untimed=None if spec.timed else feed.untimed,
        )

    def __repr__(self) -> str:
        step = self._feed.step
        port = "" if self._feed.port is Port.MAIN else f" {self._feed.port.value}"
        return f"<{type(self).__name__} {step.label}{port}: {', '.join(map(str, self.schema))}>"
