"""Routed operators: those that must see all events of a key in one place, and by which columns they want
them."""

from __future__ import annotations

from penstock.operators.run.custom import CustomSpec
from penstock.query.graph import (
    CoGroupSpec,
    DeduplicateSpec,
    GroupJoinSpec,
    IntervalJoinSpec,
    MatchMergeSpec,
    MatchSetSpec,
    MatchSpec,
    MatchSplitSpec,
    NestedAggregateSpec,
    ProcessSpec,
    Spec,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowTopSpec,
)

ROUTED = (
    WindowAggregateSpec,
    NestedAggregateSpec,
    WindowTopSpec,
    WindowJoinSpec,
    IntervalJoinSpec,
    CoGroupSpec,
    GroupJoinSpec,
    DeduplicateSpec,
    ProcessSpec,
    MatchSpec,
    MatchSplitSpec,
    MatchMergeSpec,
    MatchSetSpec,
)


def is_routed(spec: Spec) -> bool:
    """Whether the operator keeps state by key, so that events must be brought to it."""
    if isinstance(spec, CustomSpec):
        return spec.keys is not None
    return isinstance(spec, ROUTED)


def is_mergeable(spec: Spec) -> bool:
    """Whether parts of its input can be aggregated apart and the partial states merged: then those travel,
    and not the events."""
    if isinstance(spec, WindowAggregateSpec):
        return spec.window.mergeable
    return isinstance(spec, WindowTopSpec | NestedAggregateSpec)


def routing_keys(spec: Spec, index: int) -> tuple[str, ...]:
    """The key columns of a routed operator in its input ``index``; none means that all events belong
    together."""
    match spec:
        case WindowAggregateSpec(keys) | NestedAggregateSpec(keys) | WindowTopSpec(keys):
            return keys
        case DeduplicateSpec(keys) | ProcessSpec(keys) | MatchSpec(keys) | MatchSetSpec(keys):
            return keys
        case WindowJoinSpec(on) | IntervalJoinSpec(on) | CoGroupSpec(on) | GroupJoinSpec(on):
            return tuple(pair[index] for pair in on)
        case MatchSplitSpec() | MatchMergeSpec():
            return ()
        case CustomSpec(keys=tuple(keys)):
            return keys
    raise TypeError(f"not a routed step: {spec!r}")
