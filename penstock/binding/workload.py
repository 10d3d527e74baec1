"""What operators and threads have to do: equations 1 to 4 of the rebinding paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def tuple_count(received: ArrayLike, processed: ArrayLike) -> NDArray[np.int64]:
    """Events that operators still have to process (eq. 1).

    >>> tuple_count([10, 5], [4, 5])
    array([6, 0])
    """
    return np.asarray(received, np.int64) - np.asarray(processed, np.int64)


def op_comp(tuple_comp_ns: Sequence[float], w: int) -> float:
    """The mean time an operator took for each of its last ``w`` events (eq. 2); 0 before the first.

    >>> op_comp([100.0, 20.0, 40.0], w=2)
    30.0
    """
    latest = tuple_comp_ns[-w:]
    return float(np.mean(latest)) if latest else 0.0


def demand(processed_since: ArrayLike, pending: ArrayLike) -> NDArray[np.int64]:
    """Events that operators had to process since the last rebinding, done or not.

    Equation 1 at a single moment is the backlog: it is near zero, and mere chance, wherever the threads keep
    up. With ``received`` and ``processed`` counted since the last rebinding, and the backlog of then counted
    as received, the same equation is what was processed meanwhile plus what still waits. It is constant
    under constant load, and it is the backlog for an operator that never got a turn.

    >>> demand([100, 0], [0, 40])
    array([100,  40])
    """
    return np.asarray(processed_since, np.int64) + np.asarray(pending, np.int64)


def thread_workloads(binding: Sequence[int], work: ArrayLike, threads: int) -> NDArray[np.float64]:
    """wl(t): the work, op_comp · tuple_count, of the operators bound to each thread (eq. 3).

    >>> thread_workloads([0, 1, 0], [10.0, 1.0, 5.0], threads=2)
    array([15.,  1.])
    """
    sums = np.bincount(np.asarray(binding, np.int64), np.asarray(work, np.float64), threads)
    return sums.astype(np.float64)  # of integers if there is no operator


def average_workload(workloads: ArrayLike) -> float:
    """wl_avg: the mean over all threads (eq. 4).

    >>> average_workload([15.0, 1.0])
    8.0
    """
    return float(np.mean(np.asarray(workloads, np.float64)))
