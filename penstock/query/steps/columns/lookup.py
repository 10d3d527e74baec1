"""Columns of a static table for events with its keys."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from penstock.query.steps.spec import Means, Names, Order, Pairs, Stateless, declared
from penstock.query.steps.texts import pairs_text
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class LookupSpec(Stateless):
    """Join with a static table on equal keys. ``left`` keeps events without a match, with nulls."""

    name = "lookup"
    order = Order.KEPT
    names_columns = True

    table: Any  # pyarrow.Table; its keys are unique
    on: Pairs  # (column of the stream, column of the table)
    columns: Pairs  # (name in the result, column of the table)
    left: bool

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return (wanted - {name for name, _ in self.columns}) | {name for name, _ in self.on}

    def means(self) -> Means:
        return (table_digest(self.table), self.on, self.columns, self.left)

    def details(self) -> str:
        return f"in {self.table.num_rows} rows on {pairs_text(self.on)}" + (", left" if self.left else "")


def table_digest(table: Any) -> str:
    """A hash of the content: equal tables are one operator's table, however often they were made."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()
