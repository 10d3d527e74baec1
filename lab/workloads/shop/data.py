"""The user behaviour events of the shop, addressable by offset: Zipf-distributed items whose skew can change
and whose hot ones can move while the stream runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

FIELDS: tuple[tuple[str, str], ...] = (
    ("user_id", "int64"),
    ("item_id", "int64"),
    ("category_id", "int64"),
    ("behaviour", "string"),
    ("ts", "timestamp"),
)
VOCABULARY: dict[str, tuple[str, ...]] = {"behaviour": ("pv", "buy", "cart", "fav")}

USERS = 1_000_000
CATEGORIES = 9_439
# As often as in the published records, of 65,536: 89.6 % views, 2.0 % purchases, 5.5 % carts, 2.9 % likes.
_BUY_FROM, _CART_FROM, _FAV_FROM = 58_720, 60_031, 63_635
_GUIDES = 1 << 16  # the top bits of a random number say about where its item stands

#: From this second of event time on, this Zipf coefficient.
Step = tuple[float, float]


@dataclass(frozen=True)
class ShopSettings:
    """What the events depend on, besides their offset.

    zipf: the coefficient of the items' popularity, or steps of (second, coefficient) with the first at 0.
    moves_every_s: after so many seconds of event time other items are the hot ones; None: never.
    events_per_second: how many events share one second of event time.
    first_item: the smallest item_id. Other ids hash differently, so this stands for another hash seed.
    disorder_us: an event's time lies at most this much before the time that its offset stands for.
    """

    seed: int = 0
    items: int = 100_000
    zipf: float | tuple[Step, ...] = 1.0
    moves_every_s: float | None = None
    events_per_second: int = 10_000
    base_us: int = 1_511_568_000_000_000  # 2017-11-25
    disorder_us: int = 0
    first_item: int = 1

    def __post_init__(self) -> None:
        if self.events_per_second <= 0:
            raise ValueError(
                f"events_per_second must be positive: shop got {self.events_per_second}; write e.g. 10_000"
            )
        if self.items <= 0:
            raise ValueError(f"items must be positive: shop got {self.items}; write e.g. 100_000")
        if self.moves_every_s is not None and self.moves_every_s <= 0:
            raise ValueError(f"moves_every_s must be positive: shop got {self.moves_every_s}; write e.g. 60")
        if self.disorder_us < 0:
            raise ValueError(
                f"disorder_us must not be negative: shop got {self.disorder_us}; write 0 for none"
            )
        steps = self.steps
        starts = [start for start, _ in steps]
        if not steps or starts[0] != 0 or starts != sorted(set(starts)) or min(z for _, z in steps) < 0:
            raise ValueError(
                "zipf must be a coefficient of at least 0, or steps of (second, coefficient) that begin at "
                f"second 0 and ascend: shop got {self.zipf!r}; write e.g. 1.0 or ((0, 0.5), (60, 1.0))"
            )

    @property
    def steps(self) -> tuple[Step, ...]:
        """The coefficients with the second from which each holds."""
        return self.zipf if isinstance(self.zipf, tuple) else ((0.0, float(self.zipf)),)


def popularity(items: int, coefficient: float) -> NDArray[np.float64]:
    """The share of events of each item, the most popular first.

    >>> popularity(2, 1.0).round(3).tolist()
    [0.667, 0.333]
    """
    weights = 1.0 / np.arange(1, items + 1) ** coefficient
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


class ShopEvents:
    """The endless sequence of events that one choice of settings stands for.

    >>> columns = {n: np.empty(3, np.int32 if kind == "string" else np.int64) for n, kind in FIELDS}
    >>> ShopEvents(ShopSettings(base_us=0)).fill(10_000, 3, columns, 0)
    >>> columns["ts"].tolist()
    [1000000, 1000100, 1000200]
    """

    def __init__(self, settings: ShopSettings) -> None:
        self.settings = settings
        self._key = np.uint64(np.random.SeedSequence(settings.seed).generate_state(1, np.uint64)[0])
        self._stride = _coprime(settings.items)

    def fill(self, offset: int, n: int, columns: dict[str, NDArray[Any]], start: int) -> None:
        """Write the events [offset, offset + n) into `columns` from position `start` on.

        The string column receives int32 indices into VOCABULARY.
        """
        settings = self.settings
        while n:
            coefficient, epoch, ends = self._stretch(offset)
            count = n if ends is None else min(n, ends - offset)
            stop = start + count
            bounds, guides = _table(settings.items, coefficient)
            _fill(
                offset,
                self._key,
                settings.events_per_second,
                settings.base_us,
                settings.disorder_us,
                bounds,
                guides,
                self._stride,
                epoch,
                settings.first_item,
                columns["user_id"][start:stop],
                columns["item_id"][start:stop],
                columns["category_id"][start:stop],
                columns["behaviour"][start:stop],
                columns["ts"][start:stop],
            )
            offset, n, start = offset + count, n - count, stop

    def hottest(self, offset: int) -> int:
        """The item that is most in demand at an offset."""
        _, epoch, _ = self._stretch(offset)
        return _item(0, self._stride, epoch, self.settings.items) + self.settings.first_item

    def _stretch(self, offset: int) -> tuple[float, int, int | None]:
        """The coefficient at an offset, how often the hot items have moved, and where either changes."""
        rate = self.settings.events_per_second
        ends: list[int] = []
        coefficient = 0.0
        for start_s, step in self.settings.steps:
            first = math.ceil(start_s * rate)
            if first <= offset:
                coefficient = step
            else:
                ends.append(first)
                break
        epoch = 0
        if self.settings.moves_every_s is not None:
            length = max(1, round(self.settings.moves_every_s * rate))
            epoch = offset // length
            ends.append((epoch + 1) * length)
        return coefficient, epoch, min(ends, default=None)


@lru_cache(16)
def _table(items: int, coefficient: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Where each item's share ends, and by the first 16 bits of a random number where to begin to look."""
    bounds = np.cumsum(popularity(items, coefficient))
    bounds[-1] = 1.0
    guides = np.searchsorted(bounds, np.arange(_GUIDES) / _GUIDES, side="right")
    return bounds, guides.astype(np.int64)


def _coprime(items: int) -> int:
    """A number by whose multiples popular items are spread over all ids."""
    stride = max(1, int(items * 0.618))
    while math.gcd(stride, items) != 1:
        stride += 1
    return stride


@njit(nogil=True, cache=True)
def _item(rank: int, stride: int, epoch: int, items: int) -> int:
    # Another epoch begins elsewhere, so that what was hot is no longer so.
    return (rank * stride + epoch * 7_919) % items


@njit(nogil=True, cache=True)
def _mix(bits: np.uint64) -> np.uint64:
    """The finaliser of splitmix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@njit(nogil=True, cache=True)
def _fill(
    offset: int,
    key: np.uint64,
    events_per_second: int,
    base_us: int,
    disorder_us: int,
    bounds: NDArray[np.float64],
    guides: NDArray[np.int64],
    stride: int,
    epoch: int,
    first_item: int,
    user_id: NDArray[np.int64],
    item_id: NDArray[np.int64],
    category_id: NDArray[np.int64],
    behaviour: NDArray[np.int32],
    ts: NDArray[np.int64],
) -> None:
    golden = np.uint64(0x9E3779B97F4A7C15)
    half, part = np.uint64(32), np.uint64(0xFFFF)
    state = key + np.uint64(offset) * np.uint64(2) * golden
    for i in range(ts.size):
        chance, detail = _mix(state), _mix(state + golden)
        state += np.uint64(2) * golden
        place = offset + i
        second, within = place // events_per_second, place % events_per_second
        time_us = np.int64(base_us + second * 1_000_000 + within * 1_000_000 // events_per_second)
        if disorder_us > 0:
            time_us -= np.int64((detail >> half) % np.uint64(disorder_us + 1))
        ts[i] = time_us
        share = np.float64(chance >> np.uint64(11)) / 9007199254740992.0
        rank = guides[chance >> np.uint64(48)]
        while bounds[rank] <= share:
            rank += 1
        item = _item(rank, stride, epoch, bounds.size) + first_item
        item_id[i] = item
        category_id[i] = item % CATEGORIES + 1
        user_id[i] = np.int64((detail >> half) * np.uint64(USERS) >> half) + 1
        kind = np.int64(detail & part)
        if kind < _BUY_FROM:
            behaviour[i] = 0
        elif kind < _CART_FROM:
            behaviour[i] = 1
        elif kind < _FAV_FROM:
            behaviour[i] = 2
        else:
            behaviour[i] = 3
