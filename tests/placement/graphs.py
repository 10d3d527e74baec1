"""Task graphs for tests: two that are worked by hand, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.placement.task_graph import TaskEdge, TaskGraph

#: Two pairs that talk much within themselves and little to each other.
PAIRS = TaskGraph((2.0, 1.0, 1.0, 2.0), (TaskEdge(0, 1, 10.0), TaskEdge(1, 2, 1.0), TaskEdge(3, 2, 10.0)))


@st.composite
def task_graphs(draw: st.DrawFn, most: int = 24) -> TaskGraph:
    """Any graph: with cycles, edges to itself, tasks without load and tasks that nobody talks to."""
    tasks = draw(st.integers(1, most))
    number = st.integers(0, tasks - 1)
    value = st.floats(0.0, 1e6, allow_subnormal=False)
    loads = draw(st.lists(value, min_size=tasks, max_size=tasks))
    edges = draw(st.lists(st.builds(TaskEdge, number, number, value), max_size=3 * tasks))
    return TaskGraph(tuple(loads), tuple(edges))
