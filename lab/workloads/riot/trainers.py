"""Trainers: rows become a linear regression, or a decision tree over quartiles of air quality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from lab.workloads.riot.prediction import WEIGHTS
from lab.workloads.riot.settings import OBSERVATIONS
from penstock.query.stream.stream import Stream

Columns = dict[str, NDArray[Any]]

#: The classes of air quality, one for each quartile, from the lowest up.
CLASSES = ("BAD", "GOOD", "VERYGOOD", "EXCELLENT")
MODEL = {"message": "int64", "name": "string", "model": "string"}

_MOST_LEVELS = 8
_LEAST_ROWS_IN_LEAF = 5
_FEATURES = [OBSERVATIONS.index(name) for name in WEIGHTS]


def quartile_annotated(trainings: Stream, *, name: str = "annotate_class") -> Stream:
    """Each training's rows with the class of their air quality behind them."""
    output = {"message": "int64", "last_row": "int64", "rows": "string"}
    return trainings.batch(_annotated, output, name=name)


def regression_trained(trainings: Stream, *, name: str = "train_regression") -> Stream:
    """A linear regression of air quality on temperature, humidity and dust, from each training's rows."""
    return trainings.batch(_Trainer("MLR", linear_regression), MODEL, name=name)


def tree_trained(annotated: Stream, *, name: str = "train_tree") -> Stream:
    """A decision tree for the class of air quality by the other observations, from each training's rows."""
    return annotated.batch(_Trainer("DTC", decision_tree), MODEL, name=name)


def quartile_classes(air: NDArray[np.float64]) -> list[str]:
    """The class of each value: which quarter of all values it lies in, limits belong to the lower one.

    Quartiles as Weka's mathematics library has them: the value at position p · (n + 1), interpolated.

    >>> quartile_classes(np.array([5.0, 1.0, 3.0, 7.0]))
    ['VERYGOOD', 'BAD', 'GOOD', 'EXCELLENT']
    """
    limits = np.quantile(air, (0.25, 0.5, 0.75), method="weibull")
    return [CLASSES[place] for place in np.searchsorted(limits, air, side="left")]


def linear_regression(rows: str) -> dict[str, Any]:
    """Weights by observation, and the intercept."""
    values = np.array([line.split(",") for line in rows.split("\n")], np.float64)
    fitted = LinearRegression().fit(values[:, _FEATURES], values[:, -1])
    weights = {name: _rounded(weight) for name, weight in zip(WEIGHTS, fitted.coef_, strict=True)}
    return {"weights": weights, "intercept": _rounded(fitted.intercept_)}


def decision_tree(rows: str) -> dict[str, Any]:
    """The nodes of a tree: at most so much of which observation goes left; leaves have a class."""
    lines = [line.split(",") for line in rows.split("\n")]
    values = np.array([line[: len(OBSERVATIONS) - 1] for line in lines], np.float64)
    classes = [line[-1] for line in lines]
    # Of splits that are equally good the first is taken, by this seed.
    fitted = DecisionTreeClassifier(
        max_depth=_MOST_LEVELS, min_samples_leaf=_LEAST_ROWS_IN_LEAF, random_state=0
    ).fit(values, classes)
    tree = fitted.tree_
    nodes: list[dict[str, Any]] = []
    for place in range(tree.node_count):
        if tree.children_left[place] < 0:
            nodes.append({"class": str(fitted.classes_[int(np.argmax(tree.value[place][0]))])})
        else:
            nodes.append(
                {
                    "observation": OBSERVATIONS[tree.feature[place]],
                    "at_most": _rounded(tree.threshold[place]),
                    "left": int(tree.children_left[place]),
                    "right": int(tree.children_right[place]),
                }
            )
    return {"nodes": nodes}


class _Trainer:
    """Trains on each event's rows by itself; a model is named after its kind and its last row."""

    def __init__(self, kind: str, train: Callable[[str], dict[str, Any]]) -> None:
        self._kind, self._train = kind, train

    def __call__(self, columns: Columns) -> Columns:
        names = [f"{self._kind}-{row}.model" for row in columns["last_row"].tolist()]
        models = [orjson.dumps(self._train(rows)).decode() for rows in columns["rows"]]
        return {
            "message": columns["message"],
            "name": np.array(names, object),
            "model": np.array(models, object),
        }


def _annotated(columns: Columns) -> Columns:
    texts = []
    for rows in columns["rows"]:
        lines = rows.split("\n")
        air = np.array([line[line.rindex(",") + 1 :] for line in lines], np.float64)
        texts.append(
            "\n".join([f"{line},{kind}" for line, kind in zip(lines, quartile_classes(air), strict=True)])
        )
    return {**columns, "rows": np.array(texts, object)}


def _rounded(number: float) -> float:
    """To nine digits: what is beyond depends on the machine's way of adding up."""
    return float(f"{number:.9g}")
