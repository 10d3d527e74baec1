"""Messages of city sensors: lines of a time and a SenML record, addressable by offset."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.workloads.riot.chance import bits, uniform
from lab.workloads.riot.sensors import City
from lab.workloads.riot.settings import OBSERVATIONS, UNITS, RiotSettings
from penstock.connectors.memory.generator import Generator
from penstock.connectors.pacing import Rate

FIELDS: tuple[tuple[str, str], ...] = (("ts", "timestamp"), ("message", "int64"), ("line", "string"))

# Shares of messages and the value that so many lie below, with straight lines between. The shares below and
# above the allowed ranges are those of the public sample: of 1,000 messages 29 + 44 temperatures, 38 + 120
# humidities, 8 lights, 55 + 44 dusts and 29 + 54 air qualities.
_QUANTILES: dict[str, tuple[tuple[float, float], ...]] = {
    "temperature": ((0, -8), (0.029, 0.65), (0.25, 11.5), (0.5, 24), (0.75, 28.5), (0.956, 35.15), (1, 40)),
    "humidity": ((0, 12), (0.038, 20.25), (0.25, 38.5), (0.5, 48), (0.75, 60.5), (0.88, 69.15), (1, 99.9)),
    "light": ((0, 0), (0.6, 0), (0.75, 320), (0.95, 1950), (0.992, 5153.5), (1, 9800)),
    "dust": ((0, -1), (0.055, 83.355), (0.25, 400), (0.5, 800), (0.75, 1560), (0.956, 3322.675), (1, 10400)),
    "airquality_raw": ((0, 4), (0.029, 11.5), (0.25, 19), (0.5, 24), (0.75, 30), (0.946, 49.5), (1, 970)),
}
_DIGITS = {"temperature": 1, "humidity": 1, "light": 0, "dust": 2, "airquality_raw": 0}


class Messages:
    """The endless sequence of messages that one choice of settings stands for.

    After ``settings.trace`` messages the lines start again; event times and message numbers go on.

    >>> messages = Messages(RiotSettings())
    >>> messages.lines(7, 2) == messages.lines(0, 9)[7:]
    True
    """

    def __init__(self, settings: RiotSettings) -> None:
        self.settings = settings
        self.city = City(settings)

    def lines(self, offset: int, n: int) -> list[str]:
        """The lines of messages [offset, offset + n): ``ts_ms,{SenML}``, some 380 characters each."""
        messages = np.arange(offset, offset + n) % self.settings.trace
        seed, city = self.settings.seed, self.city
        senders = (bits(seed, "sender", messages) % np.uint64(self.settings.sensors)).tolist()
        values = [_texts(name, uniform(seed, name, messages)) for name in OBSERVATIONS]
        lines = []
        for message, sender, *readings in zip(messages.tolist(), senders, *values, strict=True):
            taken_ms = self.settings.time_us(message) // 1_000
            longitude, latitude = city.positions[sender]
            observed = ",".join(
                f'{{"v":"{reading}","u":"{UNITS[name]}","n":"{name}"}}'
                for name, reading in zip(OBSERVATIONS, readings, strict=True)
            )
            lines.append(
                f'{taken_ms},{{"e":[{{"u":"string","n":"source","sv":"{city.names[sender]}"}},'
                f'{{"v":"{longitude}","u":"lon","n":"longitude"}},'
                f'{{"v":"{latitude}","u":"lat","n":"latitude"}},{observed}],"bt":{taken_ms}}}'
            )
        return lines

    @cached_property
    def trace(self) -> tuple[str, ...]:
        """All lines that differ."""
        return tuple(self.lines(0, self.settings.trace))

    def fill(self, offset: int, n: int, columns: dict[str, NDArray[Any]], start: int) -> None:
        """Writes the messages [offset, offset + n) into ``columns`` from ``start`` on.

        Lines are numbers in the trace.
        """
        messages = np.arange(offset, offset + n)
        stop = start + n
        columns["ts"][start:stop] = (
            self.settings.base_ms * 1_000 + messages * 1_000_000 // self.settings.events_per_second
        )
        columns["message"][start:stop] = messages
        columns["line"][start:stop] = messages % self.settings.trace


def source(settings: RiotSettings, limit: int | None = None, rate: Rate | None = None) -> Generator:
    """Messages for PRED, STATS and ETL, replayed from memory; ``rate`` is in messages per second."""
    messages = Messages(settings)
    return Generator(messages.fill, dict(FIELDS), limit=limit, rate=rate, vocabulary={"line": messages.trace})


def readings(observation: str, chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of an observation at these shares of its distribution, rounded as sensors do."""
    shares, values = zip(*_QUANTILES[observation], strict=True)
    rounded: NDArray[np.float64] = np.round(np.interp(chances, shares, values), _DIGITS[observation])
    return rounded


def _texts(observation: str, chances: NDArray[np.float64]) -> list[str]:
    return [repr(value).removesuffix(".0") for value in (readings(observation, chances) + 0.0).tolist()]
