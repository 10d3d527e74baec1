"""The functions of the language as native Spark columns, or why Spark's own would say something else."""

from __future__ import annotations

from penstock.spark.native.functions import choices, numbers, texts, times
from penstock.spark.native.functions.native import check_all, copies_of, native_call, not_native

__all__ = ["choices", "copies_of", "native_call", "not_native", "numbers", "texts", "times"]

check_all()
