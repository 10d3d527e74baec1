"""Numbered files as one sum whose size does not grow: it tells which one is missing, too many or another.

Every file is a hash h of all that is known of it. The sums of h, h·p and h·p² over all files, p being a
file's number plus one, are kept modulo a prime. If what is there differs in one file, the three differences
are d, d·p and d·p², which gives p; if the third does not fit, more than one file differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import xxhash

_PRIME = 2**61 - 1


@dataclass(frozen=True)
class FileSums:
    """The sum of a set of files; the order in which they were added does not matter."""

    powers: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def of(cls, files: Iterable[tuple[int, object]]) -> FileSums:
        """Of numbers and what is known of each."""
        sums = cls()
        for number, known in files:
            sums = sums.plus(number, known)
        return sums

    def plus(self, number: int, known: object) -> FileSums:
        """With one more file; no number may come twice."""
        first, second, third = self.powers
        place = number + 1
        value = xxhash.xxh3_64_intdigest(f"{number} {known}".encode()) % _PRIME
        return FileSums(
            (
                (first + value) % _PRIME,
                (second + value * place) % _PRIME,
                (third + value * place * place) % _PRIME,
            )
        )

    def odd_one(self, other: FileSums) -> int | None:
        """The number of the only file in which two sets differ; None if they differ in more or in none."""
        first, second, third = (
            (one - two) % _PRIME for one, two in zip(self.powers, other.powers, strict=True)
        )
        if not first or first * third % _PRIME != second * second % _PRIME:
            return None
        return second * pow(first, -1, _PRIME) % _PRIME - 1
