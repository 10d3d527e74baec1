"""Instance keys spread the first instances over all tasks, on a route like any other."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.cep.selections.instance_keys import ANY_PARTITIONS, instance_keys
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.errors import PenstockError
from penstock.query.types import DataType, Field
from penstock.routing.route import even_route
from penstock.state.keys import KeyWords


def _partitions(keys: tuple[int, ...], count: int) -> list[int]:
    """As the runtimes find them."""
    layout = Layout([Field("$instance", DataType.INT64)])
    hashes = KeyHash(KeyWords(layout.fields), StringPool()).of_columns((np.array(keys, np.int64),), len(keys))
    return [int(one) for one in hashes % count]


@settings(max_examples=30)
@given(most=st.integers(1, 200), partitions=st.integers(1, 100))
def test_instance_i_falls_into_partition_i_and_round_again(most: int, partitions: int) -> None:
    keys = instance_keys(most, partitions)
    assert len(set(keys)) == most
    assert _partitions(keys, partitions) == [i % partitions for i in range(most)]


@pytest.mark.parametrize("partitions", [1, 2, 64, 128, ANY_PARTITIONS])
@pytest.mark.parametrize("tasks", [1, 2, 3, 7])
def test_keys_made_for_any_partitions_spread_over_the_tasks_of_an_even_route(
    partitions: int, tasks: int
) -> None:
    route = even_route(partitions, min(tasks, partitions))
    for degree in (1, 2, 5, 16):
        owners = Counter(route[one] for one in _partitions(instance_keys(degree), partitions))
        assert len(owners) == min(degree, tasks, partitions)
        if degree <= partitions:
            assert max(owners.values()) - min(owners.values()) <= 1


def test_more_instances_leave_the_first_keys_as_they_are() -> None:
    assert instance_keys(20, 64)[:5] == instance_keys(5, 64)


def test_no_instances_are_refused() -> None:
    with pytest.raises(PenstockError, match="at least one instance"):
        instance_keys(0, 64)
