"""The Kalman filter of one sensor's readings: how much of a change is change, and how much is noise."""

from __future__ import annotations

from typing import Any

from penstock.query.stream.stream import Stream
from penstock.query.user_functions import Context, ProcessFunction

PROCESS_NOISE = 0.125  # q
SENSOR_NOISE = 0.32  # r
FIRST_COVARIANCE = 30.0  # p0; the first estimate, x0, is 0


class KalmanFilter(ProcessFunction):
    """Per key the estimate and its covariance; a reading becomes the estimate after it."""

    def on_event(self, event: dict[str, Any], context: Context) -> list[dict[str, Any]]:
        state = context.state
        estimate = state["estimate"]
        # p0 is only there from the first reading on: state starts as zeros.
        covariance = (state["covariance"] if state["begun"] else FIRST_COVARIANCE) + PROCESS_NOISE
        gain = covariance / (covariance + SENSOR_NOISE)
        state["estimate"] = event["value"] = estimate + gain * (event["value"] - estimate)
        state["covariance"] = (1 - gain) * covariance
        state["begun"] = True
        return [event]


def kalman_filtered(observations: Stream, *, name: str = "kalman_filter") -> Stream:
    """The observations with ``value`` filtered, per sensor and kind of observation."""
    return observations.key_by("sensor", "observation").process(
        KalmanFilter(),
        observations.schema,
        {"begun": "bool", "estimate": "float64", "covariance": "float64"},
        name=name,
    )
