"""The events of the Yahoo streaming benchmark, addressable by offset."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

FIELDS: tuple[tuple[str, str], ...] = (
    ("ts", "timestamp"),
    ("user_id", "int64"),
    ("page_id", "int64"),
    ("ad_id", "int64"),
    ("ad_type", "int64"),
    ("event_type", "int64"),
    ("ip_address", "int64"),
)
VOCABULARY: dict[str, tuple[str, ...]] = {}

CAMPAIGNS = 100
ADS_PER_CAMPAIGN = 10
ADS = CAMPAIGNS * ADS_PER_CAMPAIGN
AD_TYPES = 5
EVENT_TYPES = 3
USERS = 1_000_000
PAGES = 1_000_000


@dataclass(frozen=True)
class YahooSettings:
    """What the events depend on, besides their offset.

    events_per_second: how many events share one second of event time.
    base_us: the event time of offset 0.
    """

    seed: int = 0
    events_per_second: int = 1_000_000
    base_us: int = 0

    def __post_init__(self) -> None:
        if self.events_per_second <= 0:
            raise ValueError(
                f"events_per_second must be positive: yahoo got {self.events_per_second}; write e.g. 1000000"
            )


class YahooEvents:
    """The endless sequence of events that one choice of settings stands for.

    >>> columns = {name: np.empty(4, np.int64) for name, _ in FIELDS}
    >>> YahooEvents(YahooSettings()).fill(998, 4, columns, 0)
    >>> columns["ad_id"].tolist(), columns["event_type"].tolist()
    ([999, 1000, 1, 2], [2, 0, 1, 2])
    """

    def __init__(self, settings: YahooSettings) -> None:
        self.settings = settings
        self._key = np.uint64(np.random.SeedSequence(settings.seed).generate_state(1, np.uint64)[0])

    def fill(self, offset: int, n: int, columns: dict[str, NDArray[np.int64]], start: int) -> None:
        """Write the events [offset, offset + n) into `columns` from position `start` on."""
        stop = start + n
        _fill(
            offset,
            self._key,
            self.settings.events_per_second,
            self.settings.base_us,
            columns["ts"][start:stop],
            columns["user_id"][start:stop],
            columns["page_id"][start:stop],
            columns["ad_id"][start:stop],
            columns["ad_type"][start:stop],
            columns["event_type"][start:stop],
            columns["ip_address"][start:stop],
        )

    def campaign_table(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every ad_id, and beside it the id of the campaign that the ad belongs to."""
        random = np.random.Generator(np.random.Philox(self.settings.seed))
        campaign_ids = random.choice(10 * USERS, CAMPAIGNS, replace=False).astype(np.int64) + 1
        return np.arange(1, ADS + 1, dtype=np.int64), np.repeat(campaign_ids, ADS_PER_CAMPAIGN)


@njit(nogil=True, cache=True)
def _fill(
    offset: int,
    key: np.uint64,
    events_per_second: int,
    base_us: int,
    ts: NDArray[np.int64],
    user_id: NDArray[np.int64],
    page_id: NDArray[np.int64],
    ad_id: NDArray[np.int64],
    ad_type: NDArray[np.int64],
    event_type: NDArray[np.int64],
    ip_address: NDArray[np.int64],
) -> None:
    # The three cycles and the clock are counted up rather than divided for: a 64-bit division per column
    # would cost more than the rest of the event.
    ad = offset % ADS
    kind = offset % AD_TYPES
    action = offset % EVENT_TYPES

    # Invariant: time_us is base_us + k * 1_000_000 // events_per_second for offset k, `fraction` its rest.
    into_second = (offset % events_per_second) * 1_000_000
    time_us = base_us + (offset // events_per_second) * 1_000_000 + into_second // events_per_second
    fraction = into_second % events_per_second
    step_us = 1_000_000 // events_per_second
    step_fraction = 1_000_000 % events_per_second

    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    counter = key + np.uint64(offset) * np.uint64(0x9E3779B97F4A7C15)
    for i in range(ts.size):
        # Two rounds of xor-shift and multiply: the low and high halves are independent enough for two fields.
        bits = (counter ^ (counter >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
        user = ((bits >> half) * np.uint64(USERS) >> half) + np.uint64(1)
        ts[i] = time_us
        user_id[i] = user
        page_id[i] = ((bits & low) * np.uint64(PAGES) >> half) + np.uint64(1)
        ad_id[i] = ad + 1
        ad_type[i] = kind
        event_type[i] = action
        # A user keeps one IPv4 address.
        ip_address[i] = user * np.uint64(2654435761) & low

        counter += np.uint64(0x9E3779B97F4A7C15)
        ad += 1
        if ad == ADS:
            ad = 0
        kind += 1
        if kind == AD_TYPES:
            kind = 0
        action += 1
        if action == EVENT_TYPES:
            action = 0
        time_us += step_us
        fraction += step_fraction
        if fraction >= events_per_second:
            fraction -= events_per_second
            time_us += 1
