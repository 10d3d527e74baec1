"""What the tasks of a batch sent to the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Collected:
    """Rows for sinks, how far the sources have come, and what the tasks report of themselves."""

    rows: dict[str, pa.Table]  # by query
    moves: list[Any]
    reports: list[dict[str, Any]]
