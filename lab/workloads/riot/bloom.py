"""The Bloom filter of known sensors: says no of a sensor for certain, and yes of nearly no other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray
from rbloom import Bloom

from penstock.query.stream.stream import Stream

_FALSE_POSITIVES = 0.001


class KnownSensors:
    """A Bloom filter of names that gives the same answers in every process.

    >>> known = KnownSensors(["a", "b"])
    >>> "a" in known, "nowhere" in known
    (True, False)
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._bloom = Bloom(max(1, len(self._names)), _FALSE_POSITIVES, _stable_hash)
        self._bloom.update(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._bloom

    def __reduce__(self) -> tuple[Any, ...]:
        return KnownSensors, (self._names,)

    def keep(self, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The events of known sensors."""
        rows = np.flatnonzero(self._test(columns["sensor"]))
        return {"_row": rows, **{name: column[rows] for name, column in columns.items()}}

    def blank(self, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """All events, with null where ``source`` names a sensor that is not known."""
        given = np.flatnonzero(columns["source"] != np.array(None))
        unknown = given[~self._test(columns["source"][given])]
        columns["source"][unknown] = None
        return columns

    def _test(self, names: NDArray[Any]) -> NDArray[np.bool_]:
        texts = names.tolist()
        answers = {name: name in self._bloom for name in set(texts)}  # hashed once a batch
        return np.fromiter(map(answers.__getitem__, texts), np.bool_, len(texts))


def known_only(observations: Stream, known: KnownSensors, *, name: str = "bloom_filter") -> Stream:
    """The observations of known sensors (STATS)."""
    return observations.batch(known.keep, observations.schema, name=name)


def unknown_blanked(fields: Stream, known: KnownSensors, *, name: str = "bloom_filter") -> Stream:
    """All fields, the ``source`` of unknown sensors as null (ETL)."""
    return fields.batch(known.blank, fields.schema, name=name)


def _stable_hash(name: str) -> int:
    # rbloom wants signed 128-bit numbers; Python's own hash differs from process to process.
    return xxhash.xxh3_128_intdigest(name.encode()) - (1 << 127)
