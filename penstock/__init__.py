"""Penstock: many continuous queries over shared streams, in Python, on Spark or in one process."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.app import App
from penstock.query import aggregates, errors, windows
from penstock.query.aggregates import *  # noqa: F403 - its ``__all__`` is made from the declarations
from penstock.query.aggregates import max_, min_, sum_
from penstock.query.environment import env
from penstock.query.errors import PenstockError, QueryError, RunError
from penstock.query.expr import coalesce, col, greatest, hash_of, least, lit, when
from penstock.query.extras import Extra, needed, unknown_attribute
from penstock.query.patterns.bound import bound, previous
from penstock.query.patterns.degree import Degree
from penstock.query.patterns.patterns import Pattern, aperiodic, event, periodic
from penstock.query.patterns.sets import PatternSet
from penstock.query.stream.keyed import KeyedStream, WindowedStream
from penstock.query.stream.stream import Stream
from penstock.query.types import DataType, Field, Schema
from penstock.query.user_functions import Context, Group, ProcessFunction
from penstock.query.windows import *  # noqa: F403

if TYPE_CHECKING:
    import penstock.connectors as connectors
    import penstock.detection as detection
    import penstock.sinks as sinks
    import penstock.sources as sources
    from penstock.engine.node import Node
    from penstock.scheduling.dispatch.rules import Rules
    from penstock.service.service import Service
    from penstock.spark.runtime import Spark

__version__ = "0.1.0"

__all__ = [
    "App",
    "Context",
    "DataType",
    "Degree",
    "Field",
    "Group",
    "KeyedStream",
    "Pattern",
    "PatternSet",
    "PenstockError",
    "ProcessFunction",
    "QueryError",
    "RunError",
    "Schema",
    "Stream",
    "WindowedStream",
    "aperiodic",
    "bound",
    "coalesce",
    "col",
    "env",
    "errors",
    "event",
    "greatest",
    "hash_of",
    "least",
    "lit",
    "periodic",
    "previous",
    "when",
]
__all__ += aggregates.__all__
__all__ += windows.__all__

# ``ps.sum`` reads well; not in ``__all__``, so that a star import leaves Python's own alone.
sum = sum_
min = min_
max = max_

# Loaded when first asked for: importing the package, also with a star, must not load a compiler.
_LAZY = {
    "Node": "penstock.engine.node",
    "Rules": "penstock.scheduling.dispatch.rules",
    "Service": "penstock.service.service",
    "Spark": "penstock.spark.runtime",
    "connectors": "penstock.connectors",
    "detection": "penstock.detection",
    "sinks": "penstock.sinks",
    "sources": "penstock.sources",
}

if TYPE_CHECKING:
    __all__ += ["Node", "Rules", "Service", "Spark", "connectors", "detection", "sinks", "sources"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise unknown_attribute("penstock", name, __dir__())
    with needed(Extra.SPARK, f"ps.{name}", "run the app with on=ps.Node()"):
        module = import_module(_LAZY[name])
    value = module if _LAZY[name] == f"penstock.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
