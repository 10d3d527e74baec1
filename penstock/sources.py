"""Where streams come from, as users write it: ``ps.sources.Csv("cars.csv")``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.sources.columns import Columns, Rows
from penstock.engine.sources.files import Arrow, Csv, Files, JsonLines, Parquet
from penstock.engine.sources.generator import Generator
from penstock.engine.sources.lines import TcpLines
from penstock.query.extras import Extra, Lazy, lazy_names
from penstock.workloads.traffic.source import Traffic

if TYPE_CHECKING:
    from penstock.engine.sources.mqtt import Mqtt
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

# Loaded when first asked for: the other sources need nothing beyond the package.
_LAZY = {
    "Mqtt": Lazy(Extra.MQTT, "penstock.engine.sources.mqtt", "Mqtt"),
    "Spark": Lazy(Extra.SPARK, "penstock.spark.frames", "SparkStream"),
    "SparkFormat": Lazy(Extra.SPARK, "penstock.spark.formats", "SparkFormat"),
}
__getattr__ = lazy_names(__name__, _LAZY)


def __dir__() -> list[str]:
    return __all__
