"""What a benchmark hands in: figures that promise nothing, ratios that do, the machine and the settings."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class Options:
    """How a benchmark is run."""

    on: str = "node"
    full: bool = False  # the papers' lengths and repetitions
    out: Path = Path("bench-results")  # where JSON and plots go
    events: int | None = None  # in a file, of a benchmark that reads files; None: as many as it likes
    part: str | None = None  # of a benchmark that has parts; None: all of it


@dataclass(frozen=True)
class Report:
    """The outcome of one benchmark."""

    name: str
    settings: dict[str, Any]
    figures: dict[str, Any]
    ratios: dict[str, float]
    plots: tuple[str, ...] = ()
    machine: dict[str, Any] = field(default_factory=lambda: describe_machine())

    def json(self) -> str:
        return json.dumps(_plain(asdict(self)), indent=2)

    def text(self) -> str:
        """For people: the ratios first, then the figures."""
        lines = [f"{self.name}:"]
        for title, values in (("ratios", self.ratios), ("figures", self.figures)):
            lines.append(f"  {title}")
            for name, value in values.items():
                if isinstance(value, dict):
                    lines.append(f"    {name}")
                    lines += [f"      {inner} = {_short(of_it)}" for inner, of_it in value.items()]
                else:
                    lines.append(f"    {name} = {_short(value)}")
        lines += [f"  plot: {path}" for path in self.plots]
        return "\n".join(lines)

    def save(self, folder: Path) -> Path:
        """Writes the JSON beside the plots."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(self.json() + "\n", encoding="utf-8")
        return path


def progress(text: str) -> None:
    """Tells what is being done, on standard error: standard output is for the result."""
    print(text, file=sys.stderr, flush=True)


def describe_machine() -> dict[str, Any]:
    """What a reader must know to judge the absolute figures."""
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _plain(value: Any) -> Any:
    """NaN has no place in JSON: it becomes null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(inner)}" for name, inner in value.items())
    return str(value)
