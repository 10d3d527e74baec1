"""The aggregates of the language, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.aggregates.aggregate import AGGREGATES as AGGREGATES
from penstock.query.aggregates.aggregate import Aggregate as Aggregate
from penstock.query.aggregates.aggregate import AggregateFunction as AggregateFunction
from penstock.query.aggregates.arg_max import ArgMax as ArgMax
from penstock.query.aggregates.arg_max import arg_max
from penstock.query.aggregates.arg_min import ArgMin as ArgMin
from penstock.query.aggregates.arg_min import arg_min
from penstock.query.aggregates.avg import Avg as Avg
from penstock.query.aggregates.avg import avg
from penstock.query.aggregates.collect_list import CollectList as CollectList
from penstock.query.aggregates.collect_list import collect_list
from penstock.query.aggregates.count import Count as Count
from penstock.query.aggregates.count import count
from penstock.query.aggregates.count_distinct import CountDistinct as CountDistinct
from penstock.query.aggregates.count_distinct import count_distinct
from penstock.query.aggregates.first import First as First
from penstock.query.aggregates.first import first
from penstock.query.aggregates.last import Last as Last
from penstock.query.aggregates.last import last
from penstock.query.aggregates.max_ import Max as Max
from penstock.query.aggregates.max_ import max_
from penstock.query.aggregates.min_ import Min as Min
from penstock.query.aggregates.min_ import min_
from penstock.query.aggregates.quantile import Quantile as Quantile
from penstock.query.aggregates.quantile import median, quantile
from penstock.query.aggregates.stddev import Stddev as Stddev
from penstock.query.aggregates.stddev import stddev
from penstock.query.aggregates.sum_ import Sum as Sum
from penstock.query.aggregates.sum_ import sum_
from penstock.query.aggregates.variance import Variance as Variance
from penstock.query.aggregates.variance import variance

__all__ = [
    "arg_max",
    "arg_min",
    "avg",
    "collect_list",
    "count",
    "count_distinct",
    "first",
    "last",
    "max_",
    "median",
    "min_",
    "quantile",
    "stddev",
    "sum_",
    "variance",
]
