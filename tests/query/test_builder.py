"""From steps to the graph: sharing, ids, order, and checks of graphs made by hand."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from penstock.query.aggregates import avg, count
from penstock.query.errors import QueryError
from penstock.query.expr import col, lit
from penstock.query.graph import Graph, Input, Port, QueryVertex
from penstock.query.step import Feed
from penstock.query.steps import FilterSpec, SinkSpec, SourceSpec, UnionSpec, WindowJoinSpec
from penstock.query.stream.stream import Stream
from penstock.query.user_functions import ProcessFunction
from penstock.query.validation import checked_graph
from penstock.query.windows import tumbling
from tests.query.stream.streams import CARS, DeclaredSource, NoSink, Traffic


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


def ids(graph: Graph) -> list[str]:
    return [node.id for node in graph]


def operators(graph: Graph) -> list[QueryVertex]:
    return [node for node in graph if not isinstance(node.spec, SourceSpec | SinkSpec)]


# -- sharing -----------------------------------------------------------------------------------------------


def test_the_same_sub_plan_is_one_operator(traffic: Traffic) -> None:
    for lane in (1, 2, 3):
        fast = traffic.cars.filter(col("speed") > 30)
        traffic.sink(f"lane{lane}", fast.filter(col("lane") == lane).window(tumbling("1s")).agg(n=count()))
    graph = traffic.app.graph()
    assert len(operators(graph)) == 1 + 3 + 3
    shared = [node for node in operators(graph) if len(node.queries) == 3]
    assert [str(node.spec.predicate) for node in shared] == ["(speed > 30)"]
    assert len(operators(traffic.app.graph(share=False))) == 9


@pytest.mark.parametrize(
    "make",
    [
        lambda cars, x: cars.filter(col("speed") > x),
        lambda cars, x: cars.select("ts", y=col("speed") * x),
        lambda cars, x: cars.with_columns(y=lit(x)),
        lambda cars, x: cars.explode([dict(y=lit(x))]),
        lambda cars, x: cars.key_by("lane").window(tumbling(f"{x}s")).agg(n=count()),
        lambda cars, x: cars.key_by("lane").window(tumbling("1s")).agg(n=avg(col("speed") + x)),
        lambda cars, x: cars.window(tumbling("1s")).top(x, by="speed"),
        lambda cars, x: cars.deduplicate("id", within=f"{x}s"),
        lambda cars, x: cars.join(cars, on="id", window=tumbling(f"{x}s")),
        lambda cars, x: cars.interval_join(cars, on="id", lower=f"-{x}s", upper="0s"),
        lambda cars, x: cars.lookup({"lane": [1], "y": [x]}, on="lane"),
        lambda cars, x: cars.union(*[cars] * x),
        lambda cars, x: cars.flat_map(print, output={f"y{x}": "int64"}),
        lambda cars, x: cars.batch(print, output=CARS, arrow=x == 1),
        lambda cars, x: cars.key_by("lane").process(_PROCESS, output=CARS, state={f"y{x}": "int64"}),
    ],
)
def test_constants_tell_operators_apart(traffic: Traffic, make: Any) -> None:
    traffic.sink("a", make(traffic.cars, 1))
    traffic.sink("same", make(traffic.cars, 1))
    one = len(operators(traffic.app.graph()))
    traffic.sink("other", make(traffic.cars, 2))
    assert len(operators(traffic.app.graph())) == one + 1


_PROCESS = ProcessFunction()


def test_functions_are_the_same_if_they_are_the_same_object(traffic: Traffic) -> None:
    def twin() -> Any:
        return lambda event: [event]

    one = twin()
    for name, function in (("a", one), ("b", one), ("c", twin())):
        traffic.sink(name, traffic.cars.flat_map(function, output=CARS))
    first, second = operators(traffic.app.graph())
    assert first.queries == {"a", "b"}
    assert second.id == first.id + "-2"  # the same name in every run, so only the number differs


def test_a_bound_method_is_the_same_each_time_it_is_written(traffic: Traffic) -> None:
    class Doubler:
        def double(self, event: dict[str, Any]) -> list[dict[str, Any]]:
            return [event, event]

    doubler = Doubler()
    traffic.sink("a", traffic.cars.flat_map(doubler.double, output=CARS))
    traffic.sink("b", traffic.cars.flat_map(doubler.double, output=CARS))
    traffic.sink("c", traffic.cars.flat_map(Doubler().double, output=CARS))
    assert [len(node.queries) for node in operators(traffic.app.graph())] == [2, 1]


def test_ports_tell_operators_apart(traffic: Traffic) -> None:
    join = traffic.cars.join(traffic.cars, on="id", window=tumbling("1s"))
    traffic.sink("left", join.late().filter(col("lane") == 1))
    traffic.sink("right", join.late("right").filter(col("lane") == 1))
    graph = traffic.app.graph()
    filters = [node for node in graph if isinstance(node.spec, FilterSpec)]
    assert [node.inputs[0].port for node in filters] == [Port.LATE, Port.LATE_RIGHT]


def test_without_sharing_every_query_has_operators_of_its_own(traffic: Traffic) -> None:
    fast = traffic.cars.filter(col("speed") > 30, name="fast")
    traffic.sink("a", fast)
    traffic.sink("b", fast.join(fast, on="id", window=tumbling("1s")))
    graph = traffic.app.graph(share=False)
    assert ids(graph)[:3] == ["cars", "fast", "fast-2"]
    assert graph["a"].inputs == (Input("fast"),)
    join = graph[graph["b"].inputs[0].node]
    assert join.inputs == (Input("fast-2"), Input("fast-2"))
    assert all(len(node.queries) == 1 for node in operators(graph))
    assert graph["cars"].queries == {"a", "b"}


def test_a_diamond(traffic: Traffic) -> None:
    fast, slow = traffic.cars.filter(col("speed") > 30), traffic.cars.filter(col("speed") <= 30)
    traffic.sink("all", fast.union(slow))
    for share in (True, False):
        graph = traffic.app.graph(share)
        assert len(operators(graph)) == 3
        union = graph[graph["all"].inputs[0].node]
        assert isinstance(union.spec, UnionSpec)
        assert len({source.node for source in union.inputs}) == 2


# -- ids -----------------------------------------------------------------------------------------------------


def test_sources_and_sinks_are_called_by_their_names(traffic: Traffic) -> None:
    traffic.sink("out", traffic.tolls)
    graph = traffic.app.graph()
    assert ids(graph) == ["tolls", "out"]
    assert graph["out"].schema == traffic.tolls.schema
    assert graph["out"].time_column == "ts"
    assert graph["out"].queries == {"out"}


def test_ids_do_not_change_when_queries_are_added() -> None:
    alone = Traffic()
    alone.sink("a", alone.cars.filter(col("speed") > 30).select("lane"))
    crowd = Traffic()
    crowd.sink("z", crowd.tolls.filter(col("paid") > 1))
    crowd.sink("a", crowd.cars.filter(col("speed") > 30).select("lane"))
    assert set(ids(alone.app.graph())) < set(ids(crowd.app.graph()))


_SCRIPT = """
from penstock import col, count, tumbling
from tests.query.stream.streams import CARS, Traffic
t = Traffic()
mapped = t.cars.filter(col("lane").is_in([1, 2])).flat_map(print, output=CARS)
looked_up = mapped.lookup({"lane": [1], "x": ["y"]}, on="lane")
t.sink("a", looked_up.key_by("x").window(tumbling("1s")).agg(n=count()))
print([node.id for node in t.app.graph()])
"""


def test_ids_are_the_same_in_every_process() -> None:
    def run(seed: str) -> str:
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT], env=env, capture_output=True, text=True, check=True
        )
        return done.stdout

    first = run("1")
    assert "filter-" in first
    assert first == run("2")


def test_a_name_is_an_id(traffic: Traffic) -> None:
    traffic.sink("a", traffic.cars.filter(col("speed") > 30, name="fast"))
    traffic.sink("b", traffic.cars.filter(col("speed") > 30))
    graph = traffic.app.graph()
    assert ids(graph) == ["cars", "fast", "a", "b"]
    assert graph["fast"].queries == {"a", "b"}


def test_the_first_of_several_names_is_the_id(traffic: Traffic) -> None:
    traffic.sink("a", traffic.cars.filter(col("speed") > 30))
    traffic.sink("b", traffic.cars.filter(col("speed") > 30, name="fast"))
    traffic.sink("c", traffic.cars.filter(col("speed") > 30, name="quick"))
    assert ids(traffic.app.graph())[1] == "fast"


def test_one_name_for_two_different_steps_is_an_error(traffic: Traffic) -> None:
    traffic.sink("a", traffic.cars.filter(col("speed") > 30, name="fast"))
    traffic.sink("b", traffic.cars.filter(col("speed") > 40, name="fast"))
    for share in (True, False):
        with pytest.raises(
            QueryError, match=r"duplicate name: step 'fast' is called like the step written at"
        ):
            traffic.app.graph(share)


@pytest.mark.parametrize("name", ["cars", "tolls", "a"])
def test_a_step_cannot_be_called_like_a_source_or_sink(traffic: Traffic, name: str) -> None:
    traffic.sink("a", traffic.cars.filter(col("speed") > 30, name=name))
    with pytest.raises(
        QueryError, match=r"duplicate name: step '.*' is called like a (source|sink)"
    ) as caught:
        traffic.app.graph()
    assert caught.value.origin.file == __file__


def test_nodes_know_their_line(traffic: Traffic) -> None:
    traffic.sink("a", traffic.cars.filter(col("speed") > 30))
    assert all(node.origin.file.endswith(("test_builder.py", "streams.py")) for node in traffic.app.graph())
    assert operators(traffic.app.graph())[0].origin.file == __file__


# -- order ----------------------------------------


def test_inputs_stand_before_those_who_read_them(traffic: Traffic) -> None:
    late = traffic.cars.filter(col("speed") > 1).deduplicate("id")
    traffic.sink("late", late.late())
    traffic.sink("b", traffic.tolls.join(late, on={"car": "id"}, window=tumbling("1s")))
    for share in (True, False):
        seen: set[str] = set()
        for node in traffic.app.graph(share):
            assert all(source.node in seen for source in node.inputs)
            seen.add(node.id)


def test_sources_are_in_the_order_they_were_registered(traffic: Traffic) -> None:
    traffic.sink("a", traffic.tolls)
    traffic.sink("b", traffic.cars)
    assert ids(traffic.app.graph())[:2] == ["cars", "tolls"]


def test_a_long_pipeline(traffic: Traffic) -> None:
    stream = traffic.cars
    for index in range(1_500):
        stream = stream.filter(col("speed") > index)
    traffic.sink("end", stream)
    assert len(traffic.app.graph()) == 1_502
    assert traffic.app.explain()
    assert traffic.app.explain("mermaid")


def test_schemas_along_edges(traffic: Traffic) -> None:
    join = traffic.cars.join(traffic.tolls, on={"id": "car"}, window=tumbling("1s"))
    traffic.sink("main", join)
    traffic.sink("left", join.late())
    traffic.sink("right", join.late("right"))
    traffic.sink("bad", traffic.cars.bad_records())
    graph = traffic.app.graph()
    for name in ("main", "left", "right", "bad"):
        assert graph.input_schema(graph[name].inputs[0]) == graph[name].schema
    assert graph["right"].time_column == "ts"
    assert graph["bad"].time_column is None
    assert [(node.id, index) for node, index in graph.consumers("cars", Port.BAD)] == [("bad", 0)]


def test_an_app_without_sinks_has_an_empty_graph(traffic: Traffic) -> None:
    assert len(traffic.app.graph()) == 0


# -- graphs that no stream can make ----------------------------------------


def test_steps_that_go_round_are_refused(traffic: Traffic) -> None:
    stream: Stream = traffic.cars.union(traffic.cars)
    loop = stream.filter(col("speed") > 1)
    object.__setattr__(stream._feed.step, "inputs", (traffic.cars._feed, Feed(loop._feed.step)))
    traffic.sink("a", loop)
    for share in (True, False):
        with pytest.raises(
            QueryError, match=r"a cycle.*(filter → union → filter|union → filter → union).*written at"
        ):
            traffic.app.graph(share)


def node(name: str, spec: Any, *inputs: Input) -> QueryVertex:
    return QueryVertex(name, spec, inputs, CARS, "ts")


CAR_SOURCE = SourceSpec(DeclaredSource(CARS), "ts", 0)
FAST = FilterSpec(col("speed") > 30)


def test_a_graph_by_hand_is_put_in_order() -> None:
    graph = checked_graph(
        [node("out", SinkSpec(NoSink()), Input("f")), node("f", FAST, Input("s")), node("s", CAR_SOURCE)]
    )
    assert ids(graph) == ["s", "f", "out"]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("a", FAST, Input("b")), node("b", FAST, Input("a"))], "a cycle.*(a → b → a|b → a → b)"),
        ([node("a", FAST, Input("a"))], "a cycle.*a → a"),
        ([node("a", CAR_SOURCE), node("a", CAR_SOURCE)], "duplicate name: step 'a'"),
        ([node("a", FAST, Input("x"))], "unknown input 'x': step 'a'; operators here: a"),
        ([node("a", FAST)], "a filter needs 1 input: step 'a' got 0"),
        ([node("a", UnionSpec())], "a union needs 1 input"),
        ([node("s", CAR_SOURCE), node("a", SinkSpec(NoSink()))], "a sink needs 1 input: step 'a' got 0"),
        (
            [
                node("s", CAR_SOURCE),
                node("j", WindowJoinSpec((("id", "id"),), tumbling("1s"), ()), Input("s")),
            ],
            "a join needs 2 inputs: step 'j' got 1",
        ),
        ([node("s", CAR_SOURCE, Input("s"))], "a source needs no input"),
        ([node("s", CAR_SOURCE), node("a", FAST, Input("s", Port.LATE))], "a source has no output 'late'"),
        (
            [node("s", CAR_SOURCE), node("a", FAST, Input("s")), node("b", FAST, Input("a", Port.BAD))],
            "a filter has no output 'bad'.*it has: main",
        ),
        (
            [
                node("s", CAR_SOURCE),
                node("a", SinkSpec(NoSink()), Input("s")),
                node("b", FAST, Input("a")),
            ],
            "a sink has no output 'main'.*it has: none",
        ),
    ],
)
def test_what_is_no_graph(nodes: list[QueryVertex], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        checked_graph(nodes)
