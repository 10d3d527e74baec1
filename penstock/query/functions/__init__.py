"""The functions of the expression language, each declared in a file of its own; this declares all."""

from __future__ import annotations

from penstock.query.functions import choices, numbers, texts, times
from penstock.query.functions.function import FUNCTIONS, Function

__all__ = ["FUNCTIONS", "Function", "choices", "numbers", "texts", "times"]
