"""Which queries share a batch: a group delays its queries by the work of all of them, so heavy ones part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.placement.metis import Metis
from penstock.placement.partitioner import Partitioner, members
from penstock.placement.task_graph import TaskEdge, TaskGraph

#: Queries by group, in a fixed order.
QueryGroups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class QueryWork:
    """What was measured of a run: the time that each operator takes in a batch, and whom it works for."""

    operator_ms: Mapping[str, float]
    queries_of: Mapping[str, frozenset[str]]
    fixed_ms: float = 0.0  # of a batch without any work: planning, logs, commits

    def queries(self) -> list[str]:
        return sorted(set[str]().union(*self.queries_of.values()))

    def work_ms(self, queries: Sequence[str]) -> float:
        """What a batch of these queries alone has to do: operators that they share work once."""
        chosen = set(queries)
        return sum(
            self.operator_ms.get(operator, 0.0)
            for operator, served in self.queries_of.items()
            if not chosen.isdisjoint(served)
        )


@dataclass(frozen=True)
class GroupPlan:
    """Groups, with what a query waits for on average, before and after."""

    groups: QueryGroups
    before_ms: float
    expected_ms: float
    work_ms: tuple[float, ...] = ()  # of each group's batch

    @property
    def gain(self) -> float:
        """The share of the mean latency that is saved."""
        return 1.0 - self.expected_ms / self.before_ms if self.before_ms > 0.0 else 0.0


def _even() -> Metis:
    """Evenness before shared work: what is done twice is in the expected latency already."""
    return Metis(weight=0.05)


@dataclass(frozen=True)
class GroupPlanner:
    """Tries every number of groups that can run side by side, and takes the best if it pays.

    A group is a streaming query of its own: it reads its sources itself, does again what it shares with
    other groups, and adds to what Spark's driver has to do. ``overhead`` is the share of a batch's fixed time
    that every further group adds to everybody's. ``least_gain``: moving means to stop and start once, about
    as long as some batches; less than this share of the latency would not pay for it.
    """

    partitioner: Partitioner = field(default_factory=_even)
    overhead: float = 0.5
    least_gain: float = 0.2

    def plan(self, work: QueryWork, most: int) -> GroupPlan | None:
        """The best division into at most ``most`` groups; None if one group is as good."""
        queries = work.queries()
        together = (tuple(queries),)
        before = expected_latency_ms(work, together, self.overhead)
        graph = shared_work(work)
        best = GroupPlan(together, before, before)
        for count in range(2, min(most, len(queries)) + 1):
            of = self.partitioner.partition(graph, count)
            found = [tuple(queries[task] for task in tasks) for tasks in members(of, count) if tasks]
            groups = tuple(sorted(found, key=lambda group: (work.work_ms(group), group)))
            expected = expected_latency_ms(work, groups, self.overhead)
            if expected < best.expected_ms:
                best = GroupPlan(groups, before, expected, tuple(work.work_ms(group) for group in groups))
        return best if len(best.groups) > 1 and best.gain >= self.least_gain else None


def expected_latency_ms(work: QueryWork, groups: QueryGroups, overhead: float) -> float:
    """What a query waits for on average: the batch of its own group, all groups having a core each."""
    fixed_ms = work.fixed_ms * (1.0 + overhead * (len(groups) - 1))
    waits = sum(len(group) * (fixed_ms + work.work_ms(group)) for group in groups)
    queries = sum(len(group) for group in groups)
    return waits / queries if queries else 0.0


def shared_work(work: QueryWork) -> TaskGraph:
    """The queries as a task graph: B is what each has to do, E what two of them would do twice if parted.

    What m queries share counts for each as its m-th part, and b / (m − 1) between every two: the one that
    leaves the others then costs b, which is what it must do again.
    """
    queries = work.queries()
    number = {query: place for place, query in enumerate(queries)}
    loads = [0.0] * len(queries)
    rates: dict[tuple[int, int], float] = {}
    for operator, served in work.queries_of.items():
        cost = work.operator_ms.get(operator, 0.0)
        places = sorted(number[query] for query in served)
        for index, one in enumerate(places):
            loads[one] += cost / len(places)
            for other in places[index + 1 :]:
                rates[one, other] = rates.get((one, other), 0.0) + cost / (len(places) - 1)
    edges = tuple(TaskEdge(one, other, rate) for (one, other), rate in rates.items())
    return TaskGraph(tuple(loads), edges, tuple(queries))
