"""Which operator runs which kind of step."""

from __future__ import annotations

from penstock.operators.columns.batch import Batch
from penstock.operators.columns.explode import Explode
from penstock.operators.columns.filter import Filter
from penstock.operators.columns.flat_map import FlatMap
from penstock.operators.columns.lookup import Lookup
from penstock.operators.columns.select import Select
from penstock.operators.columns.union import Union
from penstock.operators.joins.group_join import GroupJoin
from penstock.operators.joins.interval_join import IntervalJoin
from penstock.operators.joins.window_join import WindowJoin
from penstock.operators.keyed.deduplicate import Deduplicate
from penstock.operators.keyed.process import Process
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.custom import CustomSpec
from penstock.operators.windows.cogroup import CoGroup
from penstock.operators.windows.nested_aggregate import NestedAggregate
from penstock.operators.windows.session_aggregate import (
    SessionAggregate as SessionAggregate,  # registered by its window
)
from penstock.operators.windows.window_aggregate import WindowAggregate as WindowAggregate
from penstock.operators.windows.window_aggregates import aggregate_over, check_all
from penstock.operators.windows.window_top import WindowTop
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
