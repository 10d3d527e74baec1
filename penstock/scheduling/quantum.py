"""The quantum: how many events fit into the rest of the epoch (enjima eq. 4)."""

from __future__ import annotations

import numpy as np

from penstock.scheduling.policy import Floats, Integers


def events_until(now_ns: int, deadline_ns: int, cost_ns: Floats, least: int | Integers) -> Integers:
    """N_proc of each operator: (t_s − t) / c_i, at least ``least``.

    As printed the fraction is the wrong way round: a time divided by a time per event is a number of events.
    """
    if now_ns >= deadline_ns:
        return np.broadcast_to(np.asarray(least, np.int64), cost_ns.shape)
    return np.maximum((deadline_ns - now_ns) / cost_ns, least).astype(np.int64)
