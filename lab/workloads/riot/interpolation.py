"""Interpolation: a reading that is missing becomes the mean of the sensor's last ones."""

from __future__ import annotations

from typing import Any

from penstock.query.stream.stream import Stream
from penstock.query.user_functions import Context, ProcessFunction

WINDOW = 5

_SLOTS = tuple(f"reading{slot}" for slot in range(WINDOW))


class Interpolation(ProcessFunction):
    """Per key the last five readings that were there, in a ring. Without any, null stays null."""

    def on_event(self, event: dict[str, Any], context: Context) -> list[dict[str, Any]]:
        state = context.state
        if event["observation"] == "source":
            return [event]
        count = state["count"]
        if event["value"] is not None:
            state[_SLOTS[count % WINDOW]] = event["value"]
            state["count"] = count + 1
        elif count:
            known = min(count, WINDOW)
            event["value"] = sum([state[slot] for slot in _SLOTS[:known]]) / known
        return [event]


def interpolated(fields: Stream, *, name: str = "interpolation") -> Stream:
    """The fields with missing values filled in, per sensor and kind of observation."""
    state = {"count": "int64", **dict.fromkeys(_SLOTS, "float64")}
    return fields.key_by("sensor", "observation").process(Interpolation(), fields.schema, state, name=name)
