"""Functions of numbers, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.functions.numbers.abs import Abs as Abs
from penstock.query.functions.numbers.ceil import Ceil as Ceil
from penstock.query.functions.numbers.exp import Exp as Exp
from penstock.query.functions.numbers.floor import Floor as Floor
from penstock.query.functions.numbers.log import Log as Log
from penstock.query.functions.numbers.neg import Neg as Neg
from penstock.query.functions.numbers.pow import Pow as Pow
from penstock.query.functions.numbers.round import Round as Round
from penstock.query.functions.numbers.sign import Sign as Sign
from penstock.query.functions.numbers.sqrt import Sqrt as Sqrt
