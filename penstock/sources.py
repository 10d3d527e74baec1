"""Where streams come from, as users write it: ``ps.sources.Csv("cars.csv")``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.engine.sources.columns import Columns, Rows
from penstock.engine.sources.files import Arrow, Csv, Files, JsonLines, Parquet
from penstock.engine.sources.generator import Generator
from penstock.engine.sources.lines import TcpLines
from penstock.engine.sources.mqtt import Mqtt
from penstock.workloads.traffic.source import Traffic

if TYPE_CHECKING:
    from penstock.spark.formats import SparkFormat
    from penstock.spark.frames import SparkStream as Spark

__all__ = [
    "Arrow",
    "Columns",
    "Csv",
    "Files",
    "Generator",
    "JsonLines",
    "Mqtt",
    "Parquet",
    "Rows",
    "Spark",
    "SparkFormat",
    "TcpLines",
    "Traffic",
]

# Loaded when first asked for: the other sources need no Spark.
_LAZY = {
    "Spark": ("penstock.spark.frames", "SparkStream"),
    "SparkFormat": ("penstock.spark.formats", "SparkFormat"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'penstock.sources' has no attribute '{name}'")
    module, found = _LAZY[name]
    return getattr(import_module(module), found)
