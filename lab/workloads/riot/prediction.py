"""Predictions about air quality: the decision tree, the linear regression, and how wrong the latter is."""

from __future__ import annotations

from typing import Any

from lab.workloads.riot.results import PREDICTED
from penstock.query.expr import Expr, col, lit, when
from penstock.query.stream.stream import Stream
from penstock.query.user_functions import Context, ProcessFunction

# The models that RIoTBench ships, trained with Weka on the city's data.
TREE = ((22, 0), (29, 1))  # air quality up to so much is of this class, else 2
WEIGHTS = {"temperature": -0.51068968, "humidity": 0.15503454, "dust": -0.0043941074}
INTERCEPT = 37.442739


def classified(messages: Stream, *, name: str = "decision_tree") -> Stream:
    """The class of each message's air quality."""
    (first, lowest), (second, middle) = TREE
    air = col("airquality_raw")
    kind = when(air <= first, lowest).when(air <= second, middle).otherwise(2)
    return messages.select("message", "sensor", analysis=lit("DTC"), value=kind.cast("float64"), name=name)


def predicted(messages: Stream, *, name: str = "linear_regression") -> Stream:
    """What the regression expects the air quality to be, beside what it is."""
    prediction: Expr = lit(INTERCEPT)
    for observation, weight in reversed(WEIGHTS.items()):
        prediction = weight * col(observation) + prediction
    columns = {
        "city": lit(0),
        "message": col("message"),
        "sensor": col("sensor"),
        "airquality_raw": col("airquality_raw"),
        "prediction": prediction,
        "average": lit(None, "float64"),
    }
    return messages.select(columns, name=name)


class ErrorEstimate(ProcessFunction):
    """Keeps the latest average of any sensor and tells each prediction's error in relation to it."""

    def on_event(self, event: dict[str, Any], context: Context) -> list[dict[str, Any]]:
        state = context.state
        if event["average"] is not None:
            state["average"] = event["average"]
            return []
        average = state["average"]
        if average is None:
            return []
        error = event["airquality_raw"] - event["prediction"]
        return [
            {
                "message": event["message"],
                "sensor": event["sensor"],
                "analysis": "ERR",
                "value": error / average if average else None,
            }
        ]


def errors_estimated(predictions: Stream, averages: Stream, *, name: str = "error_estimate") -> Stream:
    """(air quality − prediction) / latest average, for each prediction after the first average.

    An average counts from the message on that completed it: averages stand before predictions of equal time.
    """
    estimates = averages.union(predictions, name="estimates")
    return estimates.key_by("city").process(ErrorEstimate(), PREDICTED, {"average": "float64?"}, name=name)
