"""Functions of strings, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.functions.texts.concat import Concat
from penstock.query.functions.texts.contains import Contains
from penstock.query.functions.texts.ends_with import EndsWith
from penstock.query.functions.texts.length import Length
from penstock.query.functions.texts.lower import Lower
from penstock.query.functions.texts.regexp_extract import RegexpExtract
from penstock.query.functions.texts.regexp_match import RegexpMatch
from penstock.query.functions.texts.replace import Replace
from penstock.query.functions.texts.split_part import SplitPart
from penstock.query.functions.texts.starts_with import StartsWith
from penstock.query.functions.texts.substr import Substr
from penstock.query.functions.texts.trim import Trim
from penstock.query.functions.texts.upper import Upper

__all__ = [
    "Concat",
    "Contains",
    "EndsWith",
    "Length",
    "Lower",
    "RegexpExtract",
    "RegexpMatch",
    "Replace",
    "SplitPart",
    "StartsWith",
    "Substr",
    "Trim",
    "Upper",
]
