"""The sensors of the city: their names, their places, and what the metadata knows of some of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lab.workloads.riot.chance import bits, uniform
from lab.workloads.riot.settings import RiotSettings

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_BOX = 28  # sensors in one box share all of their name but its end
_PLACES = ("harbour", "market", "museum", "bridge", "station", "school", "library", "park", "depot", "tower")
_KINDS = ("analog", "digital", "electronic", "heat", "radar", "solar", "ultrasound")


@dataclass(frozen=True)
class City:
    """All sensors of one choice of settings.

    >>> city = City(RiotSettings(sensors=3))
    >>> [len(name) for name in city.names], len(city.metadata()["sensor"])
    ([26, 26, 26], 2)
    """

    settings: RiotSettings

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Their names, 26 or 27 characters long; distinct."""
        boxes = np.arange(-(-self.settings.sensors // _BOX))
        high, low = (bits(self.settings.seed, f"names {part}", boxes).tolist() for part in (1, 2))
        prefixes = [
            f"ci{box:03}{_text(a, 10)}{_text(b, 10)}" for box, a, b in zip(boxes, high, low, strict=True)
        ]
        return tuple(f"{prefixes[i // _BOX]}{i % _BOX}" for i in range(self.settings.sensors))

    @cached_property
    def positions(self) -> tuple[tuple[str, str], ...]:
        """Longitude and latitude as their messages have them."""
        sensors = np.arange(self.settings.sensors)
        longitude = uniform(self.settings.seed, "longitude", sensors) * 360 - 180
        latitude = uniform(self.settings.seed, "latitude", sensors) * 120 - 60
        return tuple((f"{x:.6f}", f"{y:.6f}") for x, y in zip(longitude, latitude, strict=True))

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which of them the metadata knows."""
        chances = uniform(self.settings.seed, "known", np.arange(self.settings.sensors))
        return chances < self.settings.known_share

    def metadata(self) -> dict[str, list[str]]:
        """The known sensors with their location and type: the table that messages are annotated from."""
        numbers = np.flatnonzero(self.known)
        place = bits(self.settings.seed, "place", numbers) % np.uint64(len(_PLACES))
        kind = bits(self.settings.seed, "kind", numbers) % np.uint64(len(_KINDS))
        return {
            "sensor": [self.names[number] for number in numbers],
            "location": [_PLACES[number] for number in place],
            "type": [_KINDS[number] for number in kind],
        }


def _text(number: int, length: int) -> str:
    """The number's last digits to the base 36."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_LETTERS))
        digits.append(_LETTERS[digit])
    return "".join(digits)
