"""The steps of the language, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.steps.columns.batch import BatchSpec as BatchSpec
from penstock.query.steps.columns.explode import ExplodeSpec as ExplodeSpec
from penstock.query.steps.columns.filter import FilterSpec as FilterSpec
from penstock.query.steps.columns.flat_map import FlatMapSpec as FlatMapSpec
from penstock.query.steps.columns.lookup import LookupSpec as LookupSpec
from penstock.query.steps.columns.select import SelectSpec as SelectSpec
from penstock.query.steps.columns.union import UnionSpec as UnionSpec
from penstock.query.steps.ends.sink import SinkSpec as SinkSpec
from penstock.query.steps.ends.source import SourceSpec as SourceSpec
from penstock.query.steps.joins.group_join import GroupJoinSpec as GroupJoinSpec
from penstock.query.steps.joins.interval_join import IntervalJoinSpec as IntervalJoinSpec
from penstock.query.steps.joins.window_join import WindowJoinSpec as WindowJoinSpec
from penstock.query.steps.keyed.deduplicate import DeduplicateSpec as DeduplicateSpec
from penstock.query.steps.keyed.process import ProcessSpec as ProcessSpec
from penstock.query.steps.patterns.detect import DetectSpec as DetectSpec
from penstock.query.steps.patterns.match import MatchSpec as MatchSpec
from penstock.query.steps.patterns.match_merge import MatchMergeSpec as MatchMergeSpec
from penstock.query.steps.patterns.match_set import MatchSetSpec as MatchSetSpec
from penstock.query.steps.patterns.match_split import MatchSplitSpec as MatchSplitSpec
from penstock.query.steps.windows.cogroup import CoGroupSpec as CoGroupSpec
from penstock.query.steps.windows.nested_aggregate import NestedAggregateSpec as NestedAggregateSpec
from penstock.query.steps.windows.window_aggregate import WindowAggregateSpec as WindowAggregateSpec
from penstock.query.steps.windows.window_top import WindowTopSpec as WindowTopSpec
