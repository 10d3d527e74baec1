"""What aggregates keep per group: one family a file, registered by the class of the aggregate."""

from __future__ import annotations

import sys

from penstock.operators.aggregates.accumulator import check_all
from penstock.query.word import load

load(sys.modules[__name__])
check_all()
