"""Functions of numbers, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.functions.numbers.abs import Abs
from penstock.query.functions.numbers.ceil import Ceil
from penstock.query.functions.numbers.exp import Exp
from penstock.query.functions.numbers.floor import Floor
from penstock.query.functions.numbers.log import Log
from penstock.query.functions.numbers.neg import Neg
from penstock.query.functions.numbers.pow import Pow
from penstock.query.functions.numbers.round import Round
from penstock.query.functions.numbers.sign import Sign
from penstock.query.functions.numbers.sqrt import Sqrt

__all__ = [
    "Abs",
    "Ceil",
    "Exp",
    "Floor",
    "Log",
    "Neg",
    "Pow",
    "Round",
    "Sign",
    "Sqrt",
]
