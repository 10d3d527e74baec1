"""Which queries part: worked by hand, and what must hold for any measured work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.placement.query_groups import GroupPlanner, QueryWork, expected_latency_ms, shared_work

#: Two light queries that share a filter, and a heavy one; all read one source.
WORK = QueryWork(
    {"source": 2.0, "filter": 4.0, "light": 1.0, "dark": 1.0, "heavy": 500.0},
    {
        "source": frozenset("lmh"),
        "filter": frozenset("lm"),
        "light": frozenset("l"),
        "dark": frozenset("m"),
        "heavy": frozenset("h"),
    },
    fixed_ms=100.0,
)


def test_a_batch_of_some_queries_does_what_they_share_once() -> None:
    assert WORK.work_ms(["l", "m"]) == 2 + 4 + 1 + 1
    assert WORK.work_ms(["l"]) == 2 + 4 + 1
    assert WORK.work_ms(["h"]) == 502


def test_shared_work_ties_queries_together() -> None:
    graph = shared_work(WORK)
    assert graph.names == ("h", "l", "m")
    assert graph.loads == pytest.approx((500 + 2 / 3, 1 + 2 + 2 / 3, 1 + 2 + 2 / 3))
    # The source is shared by three: 2 / (3 − 1) between every two; the filter by two: 4.
    assert graph.traffic()[0].tolist() == [0.0, 1.0, 1.0]
    assert graph.traffic()[1].tolist() == [1.0, 0.0, 5.0]


def test_a_query_waits_for_its_own_group_only() -> None:
    assert expected_latency_ms(WORK, (("h", "l", "m"),), 0.5) == 100 + 508
    assert expected_latency_ms(WORK, (("l", "m"), ("h",)), 0.5) == (2 * (150 + 8) + 150 + 502) / 3


def test_the_heavy_query_parts_from_the_light_ones() -> None:
    plan = GroupPlanner().plan(WORK, most=2)
    assert plan is not None
    assert plan.groups == (("l", "m"), ("h",))
    assert plan.work_ms == (8.0, 502.0)
    assert plan.gain == pytest.approx(1 - (2 * 158 + 652) / 3 / 608)


def test_one_heavy_query_among_thirty_is_alone() -> None:
    names = [f"light_{number}" for number in range(30)]
    cost = {"source": 1.0, **{f"of_{name}": 0.5 for name in names}, "of_heavy": 400.0}
    queries = {f"of_{name}": frozenset((name,)) for name in [*names, "heavy"]}
    plan = GroupPlanner().plan(QueryWork(cost, {"source": frozenset([*names, "heavy"]), **queries}, 80.0), 2)
    assert plan is not None
    assert plan.groups[1] == ("heavy",)
    assert sorted(plan.groups[0]) == sorted(names)


def test_what_would_not_pay_stays_together() -> None:
    light = QueryWork({"a": 1.0, "b": 1.0}, {"a": frozenset("a"), "b": frozenset("b")}, fixed_ms=100.0)
    assert GroupPlanner().plan(light, most=2) is None
    assert GroupPlanner().plan(WORK, most=1) is None
    assert GroupPlanner().plan(QueryWork({}, {"a": frozenset("a")}), most=4) is None


@st.composite
def works(draw: st.DrawFn) -> QueryWork:
    queries = [f"q{number}" for number in range(draw(st.integers(1, 8)))]
    operators = draw(st.lists(st.frozensets(st.sampled_from(queries), min_size=1), max_size=12))
    served = {**{f"of_{query}": frozenset((query,)) for query in queries}}
    served |= {f"op{number}": some for number, some in enumerate(operators)}
    cost = {name: draw(st.floats(0.0, 1000.0)) for name in served}
    return QueryWork(cost, served, draw(st.floats(0.0, 500.0)))


@given(works(), st.integers(1, 4))
def test_a_plan_has_every_query_once_and_expects_less(work: QueryWork, most: int) -> None:
    plan = GroupPlanner().plan(work, most)
    if plan is not None:
        assert sorted(query for group in plan.groups for query in group) == work.queries()
        assert 2 <= len(plan.groups) <= most
        assert plan.gain >= 0.2
        assert plan.expected_ms < plan.before_ms
