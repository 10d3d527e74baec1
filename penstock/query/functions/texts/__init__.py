"""Functions of strings, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.functions.texts.concat import Concat as Concat
from penstock.query.functions.texts.contains import Contains as Contains
from penstock.query.functions.texts.ends_with import EndsWith as EndsWith
from penstock.query.functions.texts.length import Length as Length
from penstock.query.functions.texts.lower import Lower as Lower
from penstock.query.functions.texts.regexp_extract import RegexpExtract as RegexpExtract
from penstock.query.functions.texts.regexp_match import RegexpMatch as RegexpMatch
from penstock.query.functions.texts.replace import Replace as Replace
from penstock.query.functions.texts.split_part import SplitPart as SplitPart
from penstock.query.functions.texts.starts_with import StartsWith as StartsWith
from penstock.query.functions.texts.substr import Substr as Substr
from penstock.query.functions.texts.trim import Trim as Trim
from penstock.query.functions.texts.upper import Upper as Upper
