"""Operator profiles: how long an event takes to process at a rate of arrivals, measured before the run
(buffer limits V-B)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.query.errors import PenstockError
from penstock.scaling.classification import classify
from penstock.scaling.distributions import Distribution, deterministic

Floats = NDArray[np.float64]

FORMAT = 1
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True)
class ProfileEntry:
    """The service times at one rate."""

    rate: float
    samples: int
    mean_s: float
    percentiles_s: dict[int, float]
    distribution: Distribution  # what they were classified as


@dataclass(frozen=True)
class OperatorProfile:
    """Service times for a range of rates, lowest first."""

    operator: str
    entries: tuple[ProfileEntry, ...]
    #: How long a selection is open, on average; 0 where that is short.
    selection_s: float = 0.0

    def __post_init__(self) -> None:
        rates = [entry.rate for entry in self.entries]
        if not rates or any(rate <= 0 for rate in rates) or any(a >= b for a, b in pairwise(rates)):
            raise PenstockError(
                f"a profile needs positive rates, each once and in order: '{self.operator}' has {rates}"
            )

    def service(self, rate: float, percentile: int = 99) -> Distribution:
        """The constant service time at ``rate`` that the paper calculates with: a percentile of the
        measured ones.

        Between measured rates the time follows a power of the rate, as it grows polynomially; beyond
        them, the power of the nearest two.
        """
        return deterministic(self.service_s(rate, percentile))

    def service_s(self, rate: float, percentile: int = 99) -> float:
        known = [self._percentile(entry, percentile) for entry in self.entries]
        if len(known) == 1 or rate <= 0.0:
            return known[0]
        logs = [math.log(entry.rate) for entry in self.entries]
        upper = int(np.clip(np.searchsorted(logs, math.log(rate)), 1, len(logs) - 1))
        share = (math.log(rate) - logs[upper - 1]) / (logs[upper] - logs[upper - 1])
        low, high = math.log(known[upper - 1]), math.log(known[upper])
        return math.exp(low + share * (high - low))

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> OperatorProfile:
        """Reads what ``save`` wrote; a file that is something else is a clear error."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["format"] != FORMAT:
                raise ValueError(f"format {found['format']!r}")
            entries = tuple(_entry(one) for one in found["entries"])
            return cls(str(found["operator"]), entries, float(found["selection_s"]))
        except (KeyError, TypeError, ValueError) as error:
            raise PenstockError(
                f"not an operator profile: '{path}' ({error}); measure it again, or name what was saved"
            ) from error

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "operator": self.operator,
            "selection_s": self.selection_s,
            "entries": [
                {
                    "rate": entry.rate,
                    "samples": entry.samples,
                    "mean_s": entry.mean_s,
                    "percentiles_s": {str(name): value for name, value in entry.percentiles_s.items()},
                    "distribution": entry.distribution.to_json(),
                }
                for entry in self.entries
            ],
        }

    def _percentile(self, entry: ProfileEntry, percentile: int) -> float:
        if percentile not in entry.percentiles_s:
            raise PenstockError(
                f"percentile {percentile} was not measured: '{self.operator}' has "
                f"{', '.join(map(str, entry.percentiles_s))}"
            )
        return entry.percentiles_s[percentile]


def measure_profile(
    operator: str,
    rates: Sequence[float],
    service_times: Callable[[float], Floats],
    selection_s: float = 0.0,
) -> OperatorProfile:
    """Asks an instrumented instance for its service times (in seconds) at every rate."""
    entries = tuple(_measured(rate, service_times(rate)) for rate in rates)
    return OperatorProfile(operator, entries, selection_s)


def _measured(rate: float, times_s: Floats) -> ProfileEntry:
    found = np.percentile(times_s, PERCENTILES)
    return ProfileEntry(
        rate=rate,
        samples=len(times_s),
        mean_s=float(times_s.mean()),
        percentiles_s={name: float(value) for name, value in zip(PERCENTILES, found, strict=True)},
        distribution=classify(times_s).distribution,
    )


def _entry(found: dict[str, Any]) -> ProfileEntry:
    return ProfileEntry(
        rate=float(found["rate"]),
        samples=int(found["samples"]),
        mean_s=float(found["mean_s"]),
        percentiles_s={int(name): float(value) for name, value in found["percentiles_s"].items()},
        distribution=Distribution.from_json(found["distribution"]),
    )
