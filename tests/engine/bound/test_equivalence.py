"""A rebind never changes a result: graphs rebound at random moments give the rows of the reference."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.binding.catalogue import BINDINGS, INSTALLATIONS
from penstock.engine.bound.threads import BoundThreads
from penstock.engine.seat.execution import Execution
from penstock.scheduling.catalogue import POLICIES
from tests.engine.test_equivalence import compare, described, expected_of
from tests.graphs.graph_strategies import CATALOGUE, Drawn, few, few_random_graphs, random_graphs

LONG_S = 600.0  # unless it hangs, no run here takes a second; but the machine may be halted for minutes

nodes = st.builds(
    ps.Node,
    workers=st.integers(1, 4),
    binding=st.sampled_from(sorted(BINDINGS)),
    installation=st.sampled_from(sorted(INSTALLATIONS)),
    scheduling=st.sampled_from([None, *sorted(POLICIES)]),
    consumption=st.sampled_from(["all", "all", "half", 1, 7, 1_000]),
    rebind_every_s=st.sampled_from([0.001, 60.0]),
    block_events=st.one_of(st.integers(2, 64), st.just(1024)),
    chunk_blocks=st.integers(1, 4),
    max_chunks=st.integers(2, 4),
    turn_blocks=st.integers(1, 4),
    source_batch=st.one_of(st.none(), st.integers(1, 40)),
)


class Rebinds:
    """After every k-th turn a new binding is requested: of some operators, often while others are on their
    way."""

    def __init__(self, every: int, seed: int) -> None:
        self.every, self.seed = every, seed
        self._random, self._turns = Random(seed), 0

    def __call__(self, threads: BoundThreads) -> None:
        self._turns += 1
        if self._turns % self.every:
            return
        if self._random.random() < 0.2:
            threads.rebind()
            return
        machine, random = threads.installation, self._random
        binding = list(machine.requested)
        for _ in range(random.randint(1, len(binding))):
            binding[random.randrange(len(binding))] = random.randrange(machine.threads)
        threads.install(tuple(binding))

    def __repr__(self) -> str:
        return f"Rebinds({self.every}, {self.seed})"


rebinds = st.builds(Rebinds, st.integers(1, 4), st.integers(0, 1 << 16))


def check_bound_run(one: Drawn, node: ps.Node, share: bool, hook: Rebinds) -> None:
    """Runs the graph with rebinds and compares every sink, and the late counts, with the reference."""
    built = one.build()
    reference = expected_of(one, share)
    execution = Execution(built.app.graph(share), node)
    runner = execution._runner
    assert isinstance(runner, BoundThreads)
    runner.after_turn = hook
    execution.start()
    how = f"{node}, share={share}, {hook}"
    if not execution.wait(LONG_S):
        pytest.fail(f"the run hangs\n{described(one, built, how)}")
    summary = execution.finish()
    compare(built.results(), reference.sinks, one, built, how)
    late = {operator.id: operator.late for operator in summary.metrics.operators if operator.late}
    assert late == {name: count for name, count in reference.late_counts.items() if count}, how
    # Rebinds under way when the last operator finished stay where they are; all others have arrived.
    assert runner.installation.parked == 0


#: Of the whole catalogue: whatever moves between threads in a way of its own. New graphs mean new kernels.
_QUICK = ("aggregate", "union", "join", "deduplicate", "late")
_EVERY = [pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow) for name in CATALOGUE]


@pytest.mark.parametrize("name", _EVERY)
def test_every_operator_gives_the_rows_of_the_reference_while_it_is_rebound(name: str) -> None:
    @settings(max_examples=3)
    @given(few(name), nodes, st.booleans(), rebinds)
    def check(one: Drawn, node: ps.Node, share: bool, hook: Rebinds) -> None:
        check_bound_run(one, node, share, hook)

    check()


def test_random_graphs_give_the_rows_of_the_reference_while_they_are_rebound() -> None:
    @settings(max_examples=3)
    @given(few_random_graphs(), nodes, st.booleans(), rebinds)
    def check(one: Drawn, node: ps.Node, share: bool, hook: Rebinds) -> None:
        check_bound_run(one, node, share, hook)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_random_graphs_give_the_rows_of_the_reference_while_they_are_rebound(part: int) -> None:
    @settings(settings.get_profile("thorough"), max_examples=25)
    @given(random_graphs, nodes, st.booleans(), rebinds)
    def check(one: Drawn, node: ps.Node, share: bool, hook: Rebinds) -> None:
        check_bound_run(one, node, share, hook)

    check()
