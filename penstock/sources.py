"""Where streams come from, as users write it: ``ps.sources.Csv("cars.csv")``."""

from penstock.engine.sources.columns import Columns, Rows
from penstock.engine.sources.files import Arrow, Csv, Files, JsonLines, Parquet
from penstock.engine.sources.generator import Generator
from penstock.engine.sources.lines import TcpLines
from penstock.workloads.traffic.source import Traffic

__all__ = [
    "Arrow",
    "Columns",
    "Csv",
    "Files",
    "Generator",
    "JsonLines",
    "Parquet",
    "Rows",
    "TcpLines",
    "Traffic",
]
