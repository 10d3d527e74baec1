"""The whole Yahoo query as one hand-written loop: the limits that the benchmark measures against.

``fused_count`` reads three columns where they are. ``ingest_and_count`` first copies every attribute in,
block by block, as a system must that receives its events from someone else; then it runs the same loop on
the block while it is in the cache.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

WINDOW_US = 10_000_000
COUNTED_EVENT_TYPE = 0


def campaign_slots(
    ad_ids: NDArray[np.int64], campaign_ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Make the ad table dense: a row number for every ad_id, and the campaign id of every row number."""
    campaigns, slots = np.unique(campaign_ids, return_inverse=True)
    slot_of_ad = np.full(int(ad_ids.max()) + 1, -1, np.int64)
    slot_of_ad[ad_ids] = slots
    return slot_of_ad, campaigns


def fused_count(
    ts: NDArray[np.int64],
    ad_id: NDArray[np.int64],
    event_type: NDArray[np.int64],
    slot_of_ad: NDArray[np.int64],
    counts: NDArray[np.int64],
    first_window: int = 0,
) -> int:
    """Filter, project, look up and count in one pass; return how many events were counted.

    counts[w, slot] grows by the events of campaign `slot` in window number first_window + w.

    >>> counts = np.zeros((2, 1), np.int64)
    >>> ts, ads, types = np.array([0, 5, 10_000_000]), np.array([1, 1, 1]), np.array([0, 1, 0])
    >>> fused_count(ts, ads, types, np.array([-1, 0]), counts), counts.tolist()
    (2, [[1], [1]])
    """
    counted = int(_count(ts, ad_id, event_type, slot_of_ad, counts, first_window))
    if counted < 0:
        raise ValueError(
            f"every event must fall into a row of counts: fused_count got windows {ts.min() // WINDOW_US} to "
            f"{ts.max() // WINDOW_US} for {len(counts)} rows from {first_window}; pass a larger counts"
        )
    return counted


def ingest_and_count(
    columns: tuple[NDArray[np.int64], ...],
    block: tuple[NDArray[np.int64], ...],
    slot_of_ad: NDArray[np.int64],
    counts: NDArray[np.int64],
    first_window: int = 0,
) -> int:
    """Copy all attributes into ``block``, as much as it holds at a time, and count; return how many were
    counted.

    ``columns`` are the seven attributes in the order of ``FIELDS``.
    """
    return int(_ingest(columns, block, slot_of_ad, counts, first_window))


@njit(nogil=True, cache=True)
def _ingest(
    columns: tuple[NDArray[np.int64], ...],
    block: tuple[NDArray[np.int64], ...],
    slot_of_ad: NDArray[np.int64],
    counts: NDArray[np.int64],
    first_window: int,
) -> int:
    counted = 0
    size, capacity, start = columns[0].size, block[0].size, 0
    while start < size:
        n = min(capacity, size - start)
        for column in range(len(columns)):
            block[column][:n] = columns[column][start : start + n]
        counted += _count(block[0][:n], block[3][:n], block[5][:n], slot_of_ad, counts, first_window)
        start += n
    return counted


@njit(nogil=True, cache=True)
def _count(
    ts: NDArray[np.int64],
    ad_id: NDArray[np.int64],
    event_type: NDArray[np.int64],
    slot_of_ad: NDArray[np.int64],
    counts: NDArray[np.int64],
    first_window: int,
) -> int:
    counted = 0
    window = 0
    # The window of the last event covers [opens_us, closes_us): most events need no division.
    opens_us = 0
    closes_us = 0
    for i in range(ts.size):
        if event_type[i] != COUNTED_EVENT_TYPE:
            continue
        time_us = ts[i]
        if time_us < opens_us or time_us >= closes_us:
            window = time_us // WINDOW_US - first_window
            if window < 0 or window >= counts.shape[0]:
                return -1
            opens_us = time_us // WINDOW_US * WINDOW_US
            closes_us = opens_us + WINDOW_US
        slot = slot_of_ad[ad_id[i]]
        if slot >= 0:
            counts[window, slot] += 1
            counted += 1
    return counted
