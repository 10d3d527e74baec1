"""Where results go, as users write it: ``ps.sinks.Parquet("out/per_lane")``."""

from penstock.engine.sinks.callback import Callback
from penstock.engine.sinks.console import Console
from penstock.engine.sinks.csv import Csv
from penstock.engine.sinks.discard import Discard
from penstock.engine.sinks.json_lines import JsonLines
from penstock.engine.sinks.memory import Memory
from penstock.engine.sinks.mqtt import Mqtt
from penstock.engine.sinks.parquet import Parquet
from penstock.spark.sinks import SparkWrite as Spark

__all__ = ["Callback", "Console", "Csv", "Discard", "JsonLines", "Memory", "Mqtt", "Parquet", "Spark"]
