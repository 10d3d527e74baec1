"""Choices between values, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.functions.choices.coalesce import Coalesce
from penstock.query.functions.choices.greatest import Greatest
from penstock.query.functions.choices.hash_of import HashOf
from penstock.query.functions.choices.least import Least

__all__ = [
    "Coalesce",
    "Greatest",
    "HashOf",
    "Least",
]
