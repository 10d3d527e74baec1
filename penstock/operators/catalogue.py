"""Which operator runs which kind of step."""

from __future__ import annotations

from penstock.operators.base import Build, Operator
from penstock.operators.batch import Batch
from penstock.operators.cogroup import CoGroup
from penstock.operators.custom import CustomSpec
from penstock.operators.deduplicate import Deduplicate
from penstock.operators.explode import Explode
from penstock.operators.filter import Filter
from penstock.operators.flat_map import FlatMap
from penstock.operators.group_join import GroupJoin
from penstock.operators.interval_join import IntervalJoin
from penstock.operators.lookup import Lookup
from penstock.operators.nested_aggregate import NestedAggregate
from penstock.operators.process import Process
from penstock.operators.select import Select
from penstock.operators.session_aggregate import (
    SessionAggregate as SessionAggregate,  # registered by its window
)
from penstock.operators.union import Union
from penstock.operators.window_aggregate import WindowAggregate as WindowAggregate
from penstock.operators.window_aggregates import aggregate_over, check_all
from penstock.operators.window_join import WindowJoin
from penstock.operators.window_top import WindowTop
from penstock.query.graph import (
    BatchSpec,
    CoGroupSpec,
    DeduplicateSpec,
    ExplodeSpec,
    FilterSpec,
    FlatMapSpec,
    GroupJoinSpec,
    IntervalJoinSpec,
    LookupSpec,
    NestedAggregateSpec,
    ProcessSpec,
    SelectSpec,
    UnionSpec,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowTopSpec,
)

_OPERATORS: dict[type, type[Operator]] = {
    FilterSpec: Filter,
    SelectSpec: Select,
    ExplodeSpec: Explode,
    FlatMapSpec: FlatMap,
    BatchSpec: Batch,
    UnionSpec: Union,
    LookupSpec: Lookup,
    NestedAggregateSpec: NestedAggregate,
    WindowTopSpec: WindowTop,
    WindowJoinSpec: WindowJoin,
    IntervalJoinSpec: IntervalJoin,
    CoGroupSpec: CoGroup,
    GroupJoinSpec: GroupJoin,
    DeduplicateSpec: Deduplicate,
    ProcessSpec: Process,
}
check_all()


def operator_for(build: Build) -> Operator:
    """The operator for a node that is neither a source nor a sink."""
    spec = build.node.spec
    if isinstance(spec, WindowAggregateSpec):
        return aggregate_over(build, spec.window)
    if isinstance(spec, CustomSpec):
        return spec.build(build)
    return _OPERATORS[type(spec)](build)
