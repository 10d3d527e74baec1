"""What the analyses of PRED and STATS hand on: one shape for all of them, so that any publisher takes any."""

from __future__ import annotations

#: ``value`` is null where it cannot be computed; ``next`` is what a regression predicts for the next reading.
PREDICTED = {"message": "int64", "sensor": "string", "analysis": "string", "value": "float64?"}
STATISTIC = {
    "message": "int64",
    "sensor": "string",
    "observation": "string",
    "analysis": "string",
    "value": "float64",
    "next": "float64?",
}

#: What error estimates are made from: an average, or an air quality with its prediction. All of one city.
ESTIMATED = {
    "city": "int64",
    "message": "int64",
    "sensor": "string",
    "airquality_raw": "float64?",
    "prediction": "float64?",
    "average": "float64?",
}
