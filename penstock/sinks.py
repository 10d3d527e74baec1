"""Where results go, as users write it: ``ps.sinks.Parquet("out/per_lane")``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.files.sink import Arrow, Csv, Files, JsonLines, Parquet
from penstock.connectors.memory.callback import Callback
from penstock.connectors.memory.console import Console
from penstock.connectors.memory.discard import Discard
from penstock.connectors.memory.sink import Memory
from penstock.query.extras import Extra, Lazy, lazy_names

if TYPE_CHECKING:
    from penstock.connectors.kafka.sink import Kafka
    from penstock.connectors.mqtt.sink import Mqtt
    from penstock.connectors.postgres.sink import Postgres
    from penstock.spark.batches.sinks import SparkWrite as Spark

__all__ = [
    "Arrow",
    "Callback",
    "Console",
    "Csv",
    "Discard",
    "Files",
    "JsonLines",
    "Kafka",
    "Memory",
    "Mqtt",
    "Parquet",
    "Postgres",
    "Spark",
]

# Loaded when first asked for: the other sinks need nothing beyond the package.
_LAZY = {
    "Kafka": Lazy(Extra.KAFKA, "penstock.connectors.kafka.sink", "Kafka"),
    "Postgres": Lazy(Extra.POSTGRES, "penstock.connectors.postgres.sink", "Postgres"),
    "Mqtt": Lazy(Extra.MQTT, "penstock.connectors.mqtt.sink", "Mqtt"),
    "Spark": Lazy(Extra.SPARK, "penstock.spark.batches.sinks", "SparkWrite"),
}
__getattr__ = lazy_names(__name__, _LAZY)


def __dir__() -> list[str]:
    return __all__
