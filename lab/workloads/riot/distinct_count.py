"""How many sensors there are, roughly, from few bits: LogLog counting as Durand and Flajolet describe it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import xxhash

from lab.workloads.riot.results import STATISTIC
from penstock.query.stream.stream import Stream
from penstock.query.user_functions import Context, ProcessFunction

BUCKET_BITS = 5
BUCKETS = 1 << BUCKET_BITS
# The constant of the paper, 0.39701, twice: ranks are counted from 0 here, as RIoTBench does.
ALPHA = 0.79402
MOST_ZEROS = 31

_NOTHING = "0" * BUCKETS


class DistinctCount(ProcessFunction):
    """Per key the largest rank seen in each bucket: one character each, from "0" upwards."""

    def on_event(self, event: dict[str, Any], context: Context) -> list[dict[str, Any]]:
        state = context.state
        ranks = state["ranks"] or _NOTHING
        bucket, rank = placed(event["sensor"])
        before = ord(ranks[bucket]) - 48
        if rank > before:
            state["total"] += rank - before
            ranks = f"{ranks[:bucket]}{chr(48 + rank)}{ranks[bucket + 1 :]}"
        state["ranks"] = ranks
        return [
            {
                "message": event["message"],
                "sensor": event["sensor"],
                "observation": event["observation"],
                "analysis": "DAC",
                "value": float(estimated(state["total"])),
            }
        ]


@lru_cache(maxsize=1 << 14)
def placed(name: str) -> tuple[int, int]:
    """The bucket of a name and its rank: the zeros that its hash ends with, behind the bits of the bucket."""
    digest = xxhash.xxh64_intdigest(name.encode())
    rest = digest >> BUCKET_BITS
    zeros = MOST_ZEROS if rest == 0 else (rest & -rest).bit_length() - 1
    return digest % BUCKETS, min(zeros, MOST_ZEROS)


def estimated(total: int) -> int:
    """The number of distinct names, from the sum of the buckets' ranks.

    >>> estimated(0), estimated(32), estimated(64)
    (25, 50, 101)
    """
    return int(ALPHA * BUCKETS * 2 ** (total / BUCKETS))


def distinct_sensors(observations: Stream, *, name: str = "distinct_count") -> Stream:
    """Per kind of observation, after every event: how many sensors it came from so far."""
    state = {"ranks": "string", "total": "int64"}
    return observations.key_by("observation").process(DistinctCount(), STATISTIC, state, name=name)
