"""How a batch runs: the ways there are, and the one rule that chooses between them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

#: Rows of a DataFrame's batch from which on it pays to let Spark do the first steps. Below, the plan of its
#: own jobs costs more than the rows that cross into Python; and what Spark has seen of time is known a batch
#: later.
NATIVE_ROWS = 200_000


class Way(Enum):
    """What runs where. The state's format is one, so the way may change from batch to batch."""

    WHOLE = "whole"  # one task reads everything, runs all operators and keeps the state
    GROUPS = "groups"  # Spark aggregates the rows of a DataFrame; the driver merges the groups into the state
    HERE = "here"  # one task has all keys, and that is the driver's process: tasks only read
    ROUTED = "routed"  # tasks read, Spark shuffles, stage after stage
    FILTERED = "filtered"  # the same, but of a DataFrame Spark runs the first steps itself

    @property
    def is_native(self) -> bool:
        """Whether Spark alone sees all rows of the batch, and their times."""
        return self in (Way.GROUPS, Way.FILTERED)

    @property
    def is_whole(self) -> bool:
        """Whether one task has the graph in one piece."""
        return self in (Way.WHOLE, Way.GROUPS)

    def is_in_job(self, stage: int) -> bool:
        """Whether the tasks of a stage run in the Spark job, not in the driver's process."""
        return self is not Way.GROUPS and (self is not Way.HERE or stage == 0)


@dataclass(frozen=True)
class Terms:
    """What of a run decides, and stays as it is."""

    one_reads: bool  # one task can read everything: there is one source
    #: Whether operators may run in the driver's process. Among groups they may not: Python code of a heavy
    #: one would hold the others up.
    driver_works: bool


@dataclass(frozen=True)
class Waiting:
    """What waits, of an app with one source that is a DataFrame: how much, and what Spark can do of it."""

    rows: int  # as many as in the batch before
    aggregates: bool  # Spark can make the partial aggregates of everything
    filters: bool  # or it has first steps to run
    tells_bad: bool  # and counts the bad records then, or there are none, and nobody reads them


def choose(terms: Terms, tasks: int, waiting: Waiting | None = None) -> Way:
    """How a batch runs whose keys ``tasks`` share; ``waiting`` is None where Spark cannot do anything: for
    sources of ours, and for the batch that closes everything.

    Groups of an aggregate go to one task; one that gets all rows might as well do it all.
    """
    is_whole = terms.one_reads and tasks == 1
    if waiting is not None and waiting.rows >= NATIVE_ROWS and waiting.tells_bad:
        if is_whole and waiting.aggregates:
            return Way.GROUPS
        if tasks > 1 and waiting.filters and not waiting.aggregates:
            return Way.FILTERED
    if is_whole:
        return Way.WHOLE
    if tasks == 1 and terms.driver_works:
        return Way.HERE
    return Way.ROUTED
