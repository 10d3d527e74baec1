"""Where streams come from, as users write it: ``ps.sources.Csv("cars.csv")``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.files.source import Arrow, Csv, Files, JsonLines, Parquet
from penstock.connectors.memory.columns import Columns, Rows
from penstock.connectors.memory.generator import Generator
from penstock.connectors.tcp.source import TcpLines
from penstock.query.extras import Extra, Lazy, lazy_names
from penstock.workloads.traffic.source import Traffic

if TYPE_CHECKING:
    from penstock.connectors.kafka.source import Kafka
    from penstock.connectors.mqtt.source import Mqtt
    from penstock.spark.frames.formats import SparkFormat
    from penstock.spark.frames.streams import SparkStream as Spark

__all__ = [
    "Arrow",
    "Columns",
    "Csv",
    "Files",
    "Generator",
    "JsonLines",
    "Kafka",
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
    "Kafka": Lazy(Extra.KAFKA, "penstock.connectors.kafka.source", "Kafka"),
    "Mqtt": Lazy(Extra.MQTT, "penstock.connectors.mqtt.source", "Mqtt"),
    "Spark": Lazy(Extra.SPARK, "penstock.spark.frames.streams", "SparkStream"),
    "SparkFormat": Lazy(Extra.SPARK, "penstock.spark.frames.formats", "SparkFormat"),
}
__getattr__ = lazy_names(__name__, _LAZY)


def __dir__() -> list[str]:
    return __all__
