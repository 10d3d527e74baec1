"""The tables of an operator's state on their way to files and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.operators.run.base import Operator
from penstock.state.tables import HASH, StateTables


def fitted(tables: StateTables, operator: Operator) -> StateTables:
    """The state without what only other queries read, which are elsewhere by now.

    Of a step whose results nobody here reads, but its late events, that is all of it.
    """
    chosen: StateTables = {}
    if operator.out is None:
        return chosen
    for kept in operator.state_formats:
        if kept.name in tables:
            table = tables[kept.name]
            narrower = set(kept.schema.names) < set(table.schema.names)
            chosen[kept.name] = table.select(kept.schema.names) if narrower else table
    return chosen


def routed(tables: StateTables, route: int) -> StateTables:
    """The tables of an operator without keys, in the virtual partition of its own."""
    return {
        name: table.set_column(
            0, table.schema.field(HASH), pa.array(np.full(table.num_rows, route, np.int64))
        )
        for name, table in tables.items()
    }
