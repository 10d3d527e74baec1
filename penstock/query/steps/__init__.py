"""The steps of the language, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.steps.batch import BatchSpec as BatchSpec
from penstock.query.steps.cogroup import CoGroupSpec as CoGroupSpec
from penstock.query.steps.deduplicate import DeduplicateSpec as DeduplicateSpec
from penstock.query.steps.detect import DetectSpec as DetectSpec
from penstock.query.steps.explode import ExplodeSpec as ExplodeSpec
from penstock.query.steps.filter import FilterSpec as FilterSpec
from penstock.query.steps.flat_map import FlatMapSpec as FlatMapSpec
from penstock.query.steps.group_join import GroupJoinSpec as GroupJoinSpec
from penstock.query.steps.interval_join import IntervalJoinSpec as IntervalJoinSpec
from penstock.query.steps.lookup import LookupSpec as LookupSpec
from penstock.query.steps.match import MatchSpec as MatchSpec
from penstock.query.steps.match_merge import MatchMergeSpec as MatchMergeSpec
from penstock.query.steps.match_set import MatchSetSpec as MatchSetSpec
from penstock.query.steps.match_split import MatchSplitSpec as MatchSplitSpec
from penstock.query.steps.nested_aggregate import NestedAggregateSpec as NestedAggregateSpec
from penstock.query.steps.process import ProcessSpec as ProcessSpec
from penstock.query.steps.select import SelectSpec as SelectSpec
from penstock.query.steps.sink import SinkSpec as SinkSpec
from penstock.query.steps.source import SourceSpec as SourceSpec
from penstock.query.steps.union import UnionSpec as UnionSpec
from penstock.query.steps.window_aggregate import WindowAggregateSpec as WindowAggregateSpec
from penstock.query.steps.window_join import WindowJoinSpec as WindowJoinSpec
from penstock.query.steps.window_top import WindowTopSpec as WindowTopSpec
