"""Sliding linear regression: a straight line through a sensor's last ten readings, drawn on for ten more."""

from __future__ import annotations

from operator import mul
from typing import Any

from lab.workloads.riot.results import STATISTIC
from penstock.query.stream.stream import Stream
from penstock.query.user_functions import Context, ProcessFunction

WINDOW = 10
HORIZON = 10

_MIDDLE = (WINDOW - 1) / 2
_OFFSETS = tuple(place - _MIDDLE for place in range(WINDOW))
_SPREAD = sum(offset**2 for offset in _OFFSETS)
_AHEAD = tuple(WINDOW + ahead - _MIDDLE for ahead in range(HORIZON))
_SLOTS = tuple(f"reading{slot}" for slot in range(WINDOW))


class SlidingRegression(ProcessFunction):
    """Per key the last readings, in a ring. Nothing comes before the window is full.

    The line is computed anew from the ten readings: running sums would drift apart from them.
    """

    def on_event(self, event: dict[str, Any], context: Context) -> list[dict[str, Any]]:
        state = context.state
        count = state["count"]
        state[_SLOTS[count % WINDOW]] = event["value"]
        state["count"] = count = count + 1
        if count < WINDOW:
            return []
        oldest = count % WINDOW
        readings = [state[slot] for slot in (*_SLOTS[oldest:], *_SLOTS[:oldest])]
        predictions = predict(readings)
        return [
            {
                "message": event["message"],
                "sensor": event["sensor"],
                "observation": event["observation"],
                "analysis": "SLR",
                "value": sum(predictions) / HORIZON,
                "next": predictions[0],
            }
        ]


def predict(readings: list[float]) -> list[float]:
    """The next ten readings, if those given lie on a line.

    >>> predict([float(place) for place in range(10)])[:3]
    [10.0, 11.0, 12.0]
    """
    mean = sum(readings) / WINDOW
    slope = sum(map(mul, _OFFSETS, readings)) / _SPREAD
    return [mean + slope * offset for offset in _AHEAD]


def regressed(observations: Stream, *, name: str = "sliding_regression") -> Stream:
    """Per sensor and kind of observation: ``value`` is the mean of the ten predictions, ``next`` the first.

    Both together are the line: the ten lie evenly, so the mean is the first and four and a half steps.
    """
    state = {"count": "int64", **dict.fromkeys(_SLOTS, "float64")}
    keyed = observations.key_by("sensor", "observation")
    return keyed.process(SlidingRegression(), STATISTIC, state, name=name)
