"""Averages of blocks: each five readings of a sensor become one, their mean."""

from __future__ import annotations

from typing import Any

from lab.workloads.riot.results import ESTIMATED
from penstock.query.stream.stream import Stream
from penstock.query.user_functions import Context, ProcessFunction

BLOCK = 5


class BlockAverage(ProcessFunction):
    """Per key the sum and number of the readings of the block that is not full yet."""

    def on_event(self, event: dict[str, Any], context: Context) -> list[dict[str, Any]]:
        state = context.state
        total, count = state["total"] + event["airquality_raw"], state["count"] + 1
        if count < BLOCK:
            state["total"], state["count"] = total, count
            return []
        state["total"], state["count"] = 0.0, 0
        return [{"city": 0, "message": event["message"], "sensor": event["sensor"], "average": total / BLOCK}]


def block_averaged(messages: Stream, *, name: str = "block_average") -> Stream:
    """The mean air quality of each five messages of a sensor, with the last of them."""
    state = {"total": "float64", "count": "int64"}
    return messages.key_by("sensor").process(BlockAverage(), ESTIMATED, state, name=name)
