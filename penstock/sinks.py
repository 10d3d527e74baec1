"""Where results go, as users write it: ``ps.sinks.Parquet("out/per_lane")``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.sinks.callback import Callback
from penstock.engine.sinks.console import Console
from penstock.engine.sinks.csv import Csv
from penstock.engine.sinks.discard import Discard
from penstock.engine.sinks.json_lines import JsonLines
from penstock.engine.sinks.memory import Memory
from penstock.engine.sinks.parquet import Parquet
from penstock.query.extras import Extra, Lazy, lazy_names

if TYPE_CHECKING:
    from penstock.engine.sinks.mqtt import Mqtt
    from penstock.spark.sinks import SparkWrite as Spark

__all__ = ["Callback", "Console", "Csv", "Discard", "JsonLines", "Memory", "Mqtt", "Parquet", "Spark"]

# Loaded when first asked for: the other sinks need nothing beyond the package.
_LAZY = {
    "Mqtt": Lazy(Extra.MQTT, "penstock.engine.sinks.mqtt", "Mqtt"),
    "Spark": Lazy(Extra.SPARK, "penstock.spark.sinks", "SparkWrite"),
}
__getattr__ = lazy_names(__name__, _LAZY)


def __dir__() -> list[str]:
    return __all__
