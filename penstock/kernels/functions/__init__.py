"""How the functions of the language are written in a kernel: one emitter per family or function, by class."""

from __future__ import annotations

from penstock.kernels.functions import choices, numbers, texts, times
from penstock.kernels.functions.emitters import check_all, emit_call

__all__ = ["choices", "emit_call", "numbers", "texts", "times"]

check_all()
