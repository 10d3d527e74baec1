"""The state of a matcher as tables: open runs, what they have bound, and the events that they hold.

Numbers of events and runs count within a key, so that tables of several tasks can be put together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.cep.patterns import machine_layout as m
from penstock.cep.patterns.matcher import Matcher
from penstock.memory.layout import Columns, Layout
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.types import DataType, Field
from penstock.state.keys import KeyWords
from penstock.state.table import KeyTable
from penstock.state.tables import StateFormat, StateRows, key_fields, key_words

Ints = NDArray[np.int64]


def _numbers(*names: str) -> list[Field]:
    return [Field(name, DataType.INT64) for name in names]


def match_formats(words: KeyWords, layout: Layout, *first: str) -> tuple[StateFormat, ...]:
    """The tables of matchers over a layout, the same for every pattern; ``first`` are further numbers."""
    keys = key_fields(words)
    return (
        StateFormat("events", [*_numbers(*first, "$number", "$gone"), *layout.fields]),
        StateFormat(
            "runs",
            [
                *_numbers(*first, "$run", "$position", "$seen", "$start", "$due", "$spent", "$events"),
                *keys,
            ],
        ),
        StateFormat("bindings", [*_numbers(*first, "$run", "$place", "$event", "$number"), *keys]),
    )


class MatchState:
    """Takes a matcher's state out and puts it back."""

    def __init__(self, matcher: Matcher, layout: Layout) -> None:
        self._matcher, self._layout = matcher, layout
        self.formats = match_formats(matcher.words, layout)

    def rows(self, key_hash: KeyHash) -> list[StateRows]:
        """The rows of each table and the hashes of their keys."""
        matcher = self._matcher
        runs: list[list[int]] = []
        bindings: list[list[int]] = []
        events: dict[int, int] = {}  # row → its number in its key
        owners: list[int] = []
        bound_owners: list[int] = []
        for entry in matcher.table.entries.tolist():
            run, number = int(matcher.keys[entry, m.HEAD]), 0
            seen_events = int(matcher.keys[entry, m.EVENTS])
            while run >= 0:
                row = matcher.runs[run].tolist()
                standing = [row[column] for column in (m.POS, m.SEEN, m.SEQ, m.DUE, m.SPENT)]
                runs.append([number, *standing, seen_events])
                owners.append(entry)
                chain = []
                node = row[m.NODE]
                while node >= 0:
                    at, event, parent, sequence = matcher.nodes[node].tolist()
                    events[at] = sequence
                    chain.append((event, sequence))
                    node = parent
                for place, (event, sequence) in enumerate(reversed(chain)):
                    bindings.append([number, place, event, sequence])
                    bound_owners.append(entry)
                run, number = row[m.NEXT], number + 1
        kept = np.array(sorted(events), np.int64)
        held = tuple(column[kept] for column in matcher.events.columns)
        words = matcher.words.encode(self._layout, held, 0, len(kept))
        numbers = np.array([events[row] for row in kept.tolist()], np.int64)
        return [
            ((numbers, matcher.events.rows[kept, m.GONE], *held), key_hash(words)),
            self._keyed(runs, 7, owners, key_hash),
            self._keyed(bindings, 4, bound_owners, key_hash),
        ]

    def _keyed(self, rows: list[list[int]], width: int, owners: list[int], key_hash: KeyHash) -> StateRows:
        numbers = np.array(rows, np.int64).reshape(-1, width)
        words = self._matcher.table.words[np.array(owners, np.int64)]
        columns = [np.ascontiguousarray(numbers[:, place]) for place in range(width)]
        return (*columns, *self._matcher.words.decode(words)), key_hash(words)

    def restore(self, tables: list[Columns]) -> bool:
        """Takes in what ``rows`` gave, perhaps of several matchers; False if a key is there already."""
        events, runs, bindings = tables
        if not len(runs[0]):
            return True
        matcher, layout = self._matcher, self._layout
        columns = events[2:]
        words = matcher.words.encode(layout, columns, 0, len(events[0]))
        run_words = key_words(matcher.words, self.formats[1].layout, runs)
        if (matcher.table.find(run_words) >= 0).any():
            return False
        run_keys = matcher.table.insert(run_words)
        matcher.reserve()
        event_keys = matcher.table.find(words)
        bound_keys = matcher.table.find(key_words(matcher.words, self.formats[2].layout, bindings))
        base = matcher.events.add(columns, len(events[0]))
        matcher.events.rows[base : matcher.events.count, m.GONE] = events[1]
        place_of = KeyTable(2)  # (key, number of the event) → its place among the events
        place_of.insert(np.column_stack((event_keys, events[0])))
        at = place_of.find(np.column_stack((bound_keys, bindings[3]))) + base
        # Runs and bindings in order; a binding's parent stands just before it.
        order = np.lexsort((bindings[1], bindings[0], bound_keys))
        first_node = int(matcher.counts[m.NODES])
        nodes = np.zeros((len(order), 4), np.int64)
        nodes[:, m.N_ROW], nodes[:, m.N_EVENT] = at[order], bindings[2][order]
        nodes[:, m.N_SEQ] = bindings[3][order]
        numbers = np.arange(first_node, first_node + len(order))
        nodes[:, m.N_PARENT] = np.where(bindings[1][order] == 0, -1, numbers - 1)
        run_order = np.lexsort((runs[0], run_keys))
        _, sizes = np.unique(np.column_stack((bound_keys, bindings[0]))[order], axis=0, return_counts=True)
        ends = first_node + np.cumsum(sizes) - 1
        matcher.place(nodes, run_keys[run_order], [column[run_order] for column in runs[:7]], ends)
        return True
