"""Functions choosing between values, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.functions.choices.coalesce import Coalesce as Coalesce
from penstock.query.functions.choices.greatest import Greatest as Greatest
from penstock.query.functions.choices.hash_of import HashOf as HashOf
from penstock.query.functions.choices.least import Least as Least
