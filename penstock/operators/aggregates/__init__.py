"""What aggregates keep per group: one family a file, registered by the class of the aggregate."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from penstock.operators.aggregates.accumulator import check_all

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
check_all()
