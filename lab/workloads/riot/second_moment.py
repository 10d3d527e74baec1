"""The second-order moment of a sensor's readings, as Alon, Matias and Szegedy estimate it.

The moment is the sum, over the distinct readings, of the square of how often each came: how uneven
they are.
"""

from __future__ import annotations

import struct
from typing import Any

import xxhash

from lab.workloads.riot.results import STATISTIC
from penstock.query.stream.stream import Stream
from penstock.query.user_functions import Context, ProcessFunction

ITEMS = 10

_ITEM = tuple(f"item{place}" for place in range(ITEMS))
_COUNT = tuple(f"count{place}" for place in range(ITEMS))


class SecondMoment(ProcessFunction):
    """Per key ten readings at most, each with how often it came since it is watched; n readings came in all.

    Each watched one estimates the moment as n · (2 · count − 1); the mean of those is the result. A new
    reading that finds no room takes the place of another, chosen by a hash and not by chance: the result
    depends on the input only.
    """

    def on_event(self, event: dict[str, Any], context: Context) -> list[dict[str, Any]]:
        state, reading = context.state, event["value"]
        seen = state["seen"] = state["seen"] + 1
        used = state["used"]
        for place in range(used):
            if state[_ITEM[place]] == reading:
                state[_COUNT[place]] += 1
                break
        else:
            if used < ITEMS:
                place = used
                state["used"] = used = used + 1
            else:
                place = replaced(reading, seen)
            state[_ITEM[place]], state[_COUNT[place]] = reading, 1
        watched = sum([state[name] for name in _COUNT[:used]])
        return [
            {
                "message": event["message"],
                "sensor": event["sensor"],
                "observation": event["observation"],
                "analysis": "SOM",
                "value": seen * (2 * watched - used) / used,
            }
        ]


def replaced(reading: float, seen: int) -> int:
    """Which of the watched readings makes room for this one, the ``seen``-th that came."""
    return xxhash.xxh64_intdigest(struct.pack("<d", reading), seen) % ITEMS


def second_moments(observations: Stream, *, name: str = "second_moment") -> Stream:
    """Per sensor and kind of observation, after every reading."""
    state = {
        "seen": "int64",
        "used": "int64",
        **dict.fromkeys(_ITEM, "float64"),
        **dict.fromkeys(_COUNT, "int64"),
    }
    return observations.key_by("sensor", "observation").process(SecondMoment(), STATISTIC, state, name=name)
