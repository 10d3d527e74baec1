"""The k largest or smallest events per key and window: candidates are kept per pane, and ranked at the
end.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import kernel_of
from penstock.memory.layout import ORDER, SUB, TIME, Columns, Layout
from penstock.operators.joins.join_kernels import place
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.operators.windows.aggregation import WindowMerge
from penstock.operators.windows.best_ranks import WORST, BestRanks
from penstock.operators.windows.panes import Panes, ranges
from penstock.operators.windows.top_kernel import admit, candidate_kernel, further_keys
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.query.steps import WindowTopSpec
from penstock.query.types import DataType, Field
from penstock.state.keys import KeyWords, Words
from penstock.state.rows import RowStore
from penstock.state.table import ABSENT
from penstock.state.tables import StateFormat, StateRows, key_fields, key_words

Ints = NDArray[np.int64]

# What the store keeps beside an event's columns.
_ENTRY = Field("$entry", DataType.INT64)  # of its key and pane
_RANK = Field("$rank", DataType.INT64)  # ``by`` as an integer: the smaller, the better
_NULL = Field("$null", DataType.BOOL)  # ``by`` is null: after everything

_PANE = Field("$pane", DataType.INT64)  # in exported state, where entries mean nothing

_FEWEST_TO_PRUNE = 4096


@runs(WindowTopSpec)
class WindowTop(Operator):
    """Emits the best k events of each key and window, ranked from 1, when the watermark passes its end.

    Once a pane has k candidates, its k-th best is a limit: what is worse is not kept at all. Candidates that
    others have overtaken since are pruned when there are many.
    """

    mergeable = True

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(WindowTopSpec)
        self._k, self._ties = spec.k, spec.ties
        layout = self.inputs[0]
        self._keys = KeyWords.of(layout, spec.keys)
        self._panes = Panes(spec.window, self._keys.width)
        self._pane_us = spec.window.pane_us
        self._output = self.layouts.get(Port.MAIN, Layout(()))
        assert layout.time is not None
        kept = {*self._output.names, layout.time, ORDER, SUB}
        self._further = further_keys(spec, layout)
        fields = [*(field for field in layout.fields if field.name in kept), *(f for f, _ in self._further)]
        self._time = layout.time
        self._store = RowStore(Layout([*fields, _ENTRY, _RANK, _NULL], layout.time), layout)
        self.prune_at = _FEWEST_TO_PRUNE
        self._best = BestRanks(spec.k, self._panes.table.capacity)
        self._scratch = _scratch(0, len(self._further))
        self._kernel, self._parameters = candidate_kernel(spec, layout, self._keys, build)
        self._hash = KeyHash(self._keys, self.strings)
        self._merge = None if spec.window.is_tumbling else WindowMerge((), self._keys.width)
        self.state_formats = (StateFormat("rows", [*fields, _RANK, _NULL, _PANE, *key_fields(self._keys)]),)

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if self._ready:
            return 0
        self.divert_late(index, columns, start, stop)
        if Port.MAIN not in self.layouts:
            return stop - start
        if len(self._scratch[0]) < stop - start:
            self._scratch = _scratch(stop - start, len(self._further))
        rows, entries, ranks, nulls, words, absent = self._scratch
        table, found, position = self._panes.table, np.zeros(1, np.int64), start
        while position < stop:
            taken = self._kernel(
                columns,
                position,
                stop,
                table.arrays,
                self._panes.lowest,
                self._best.arrays,
                self._best.places,
                self._pane_us,
                (rows, entries, ranks, found),
                nulls,
                words,
                absent,
                *self._parameters.arguments(),
            )
            n = int(found[0])
            if n:
                further = zip(words, absent, self._further, strict=False)
                extra = (*(array[:n] for word, null, _ in further for array in (word, null)),)
                extra = (*extra, entries[:n], ranks[:n], nulls[:n])
                self._store.append(columns, position, position + taken, rows[:n], extra)
            position += taken
            if position < stop:
                table.grow()
                self._best.resize(self._panes.table.capacity)
        if len(self._store) > self.prune_at:
            self._prune()
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        if not self._panes.closes(watermark_us):
            return
        entries = self._store.column(_ENTRY.name)
        by_entry = np.argsort(entries, kind="stable")
        for shares, windows in self._panes.closing(watermark_us):
            low = np.searchsorted(entries, shares, sorter=by_entry)
            high = np.searchsorted(entries, shares, side="right", sorter=by_entry)
            self._emit_windows(shares, windows, by_entry[ranges(low, high - low)], high - low)
        removed = np.zeros(self._panes.table.size, np.bool_)
        removed[self._panes.forget(watermark_us)] = True
        self._store.keep(~removed[entries])
        self._plan_pruning()
        self._best.resize(self._panes.table.capacity)

    def _emit_windows(self, shares: Ints, windows: Ints, rows: Ints, counts: Ints) -> None:
        """Emits whole windows. Entry ``shares[i]`` has ``counts[i]`` of ``rows`` and is in ``windows[i]``."""
        words = self._panes.table.words
        if self._merge is None:  # a pane is a window
            groups: Ints = np.arange(len(shares))
            keys = words[shares, 1:]
        else:
            groups, merged, _ = self._merge(shares, windows, words, (np.zeros(1, np.int64),))
            windows, keys = merged[:, 0], merged[:, 1:]
        in_order = np.lexsort((self._hash(keys), windows))
        place = np.empty(len(in_order), np.int64)
        place[in_order] = np.arange(len(in_order))
        order, owners, _, ranks = self._ranked(np.repeat(place[groups], counts), rows)
        best = ranks < self._k
        closing = windows[in_order][owners[best]]
        ends = self._panes.ends(closing)
        made = {
            "window_start": self._panes.starts(closing),
            "window_end": ends,
            "rank": ranks[best] + 1,
            TIME: ends - 1,
        }
        store, chosen = self._store, rows[order][best]
        if ORDER in self._output:
            made[ORDER] = self._places(chosen)
        columns: list[NDArray[Any]] = []
        for field in self._output.fields:
            if field.name in made:
                columns.append(made[field.name].astype(field.dtype.numpy))
            elif field.name in store.layout:
                columns.append(store.column(field.name)[chosen])
                nulls = store.layout.nulls(field.name)
                if nulls is not None:
                    columns.append(store.columns[nulls][chosen])
        self.emit(tuple(columns), len(chosen))

    def _places(self, chosen: Ints) -> Ints:
        """A hash of each event's own place: an event can come twice, through two windows before this step."""
        store, hashed = self._store, np.empty(len(chosen), np.int64)
        subs = store.column(SUB) if SUB in store.layout else np.zeros(0, np.int64)
        place(store.column(self._time), store.column(ORDER), subs, chosen, len(chosen), hashed)
        return hashed

    def _ranked(self, owners: Ints, rows: Ints) -> tuple[NDArray[np.intp], Ints, Ints, Ints]:
        """``rows`` ordered within their owners, the owners in that order, each one's place from 0, and its
        rank from 0.
        """
        store = self._store
        tie_breakers = [name for name in (SUB, ORDER) if name in store.layout]
        places = [store.column(name)[rows] for name in (*tie_breakers, self._time)]
        ranking = [*self._further_ranks(rows), *(store.column(one.name)[rows] for one in (_RANK, _NULL))]
        order = np.lexsort((*places, *ranking, owners))
        owners = owners[order]
        numbers = np.arange(len(owners))
        is_first = np.ones(len(owners), np.bool_)
        is_first[1:] = owners[1:] != owners[:-1]
        in_owner = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
        if not self._ties:
            return order, owners, in_owner, in_owner
        is_other = is_first  # than the one before
        for values in ranking:
            ordered = values[order]
            is_other[1:] |= ordered[1:] != ordered[:-1]
        return order, owners, in_owner, in_owner[np.maximum.accumulate(np.where(is_other, numbers, 0))]

    def _further_ranks(self, rows: Ints) -> Iterator[NDArray[Any]]:
        """What else decides, the last first: values to sort by, then whether they are null."""
        store = self._store
        for field, descending in reversed(self._further):
            values, place = store.column(field.name)[rows], store.layout.nulls(field.name)
            assert place is not None
            nulls = store.columns[place][rows]
            if field.dtype is DataType.STRING:
                values = np.where(nulls, -1, self._text_ranks(values, nulls))
                values = -values if descending else values
            yield np.where(nulls, 0, values)
            yield nulls

    def _text_ranks(self, codes: NDArray[Any], nulls: NDArray[np.bool_]) -> NDArray[Any]:
        """Numbers that are ordered as the texts are."""
        distinct, places = np.unique(np.where(nulls, -1, codes), return_inverse=True)
        texts = ["" if code < 0 else self.strings.text(code) for code in distinct.tolist()]
        ranks = np.empty(len(texts), np.int64)
        ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        return ranks[places]

    def _prune(self) -> None:
        """Keeps the best k of every pane and lets what is worse than the k-th not in any more."""
        store = self._store
        order, owners, places, ranks = self._ranked(store.column(_ENTRY.name), np.arange(len(store)))
        last = places == self._k - 1
        by = store.column(_RANK.name)[order][last]
        self._best.limits[owners[last]] = np.where(store.column(_NULL.name)[order][last], WORST, by)
        keep = np.zeros(len(store), np.bool_)
        keep[order[ranks < self._k]] = True
        store.keep(keep)
        self._plan_pruning()

    def _plan_pruning(self) -> None:
        """Not before there are several times as many candidates as can be needed: it happens rarely."""
        needed = self._k * len(self._panes.table)
        self.prune_at = max(_FEWEST_TO_PRUNE, 4 * needed, 2 * len(self._store))

    def _state_rows(self) -> list[StateRows]:
        store = self._store
        if np.bincount(store.column(_ENTRY.name)).max(initial=0) > self._k:
            self._prune()  # changes no result: what is left are the best k of every pane
        words = self._panes.table.words[store.column(_ENTRY.name)]
        keys = words[:, 1:]
        copies = [column.copy() for column in store.columns]  # the store's own change under the table
        kept, ranked = copies[:-3], copies[-2:]  # the entry stands between them
        columns = (*kept, *ranked, words[:, 0], *self._keys.decode(keys))
        return [(columns, self._hash(keys))]

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        self._panes.resume(watermark_us)
        words = self._row_words(rows[0])
        if (self._panes.table.find(words) != ABSENT).any():
            raise self._given_twice()
        self._admit(rows[0], words)
        self._plan_pruning()

    def _merge_rows(self, rows: list[Columns]) -> None:
        self._admit(rows[0], self._row_words(rows[0]))
        if len(self._store) > self.prune_at:
            self._prune()

    def _row_words(self, columns: Columns) -> Words:
        """The (pane, key words) of rows of the state's table."""
        layout = self.state_formats[0].layout
        words = np.empty((len(columns[0]), self._keys.width + 1), np.int64)
        words[:, 0] = columns[layout.data(_PANE.name)]
        words[:, 1:] = key_words(self._keys, layout, columns)
        return words

    def _admit(self, columns: Columns, words: Words) -> None:
        """Stores those rows of the state's table that may be among the best k of their panes."""
        place = self.state_formats[0].layout.data(_RANK.name)  # then come nulls, panes, keys
        ranks, nulls = columns[place], columns[place + 1]
        entries, kept = np.empty(len(ranks), np.int64), np.empty(len(ranks), np.bool_)
        table, lowest, best, done = self._panes.table, self._panes.lowest, self._best, 0
        while True:
            done = self._admission(
                table.arrays, words, lowest, best.arrays, best.places, ranks, entries, kept, done
            )
            if done == len(ranks):
                break
            table.grow()
            best.resize(table.capacity)
        added = (*columns[:place], entries, ranks, nulls)
        self._store.extend(added if kept.all() else tuple(column[kept] for column in added))

    @cached_property
    def _admission(self) -> Any:
        return kernel_of(admit)

    def reset(self) -> None:
        super().reset()
        self._panes.reset()
        self._store.clear()
        self._best.resize(self._panes.table.capacity)
        self._plan_pruning()

    @property
    def state_bytes(self) -> int:
        return self._panes.table.nbytes + self._store.nbytes + self._best.nbytes

    @property
    def open_windows(self) -> int:
        return self._panes.open_windows


def _scratch(events: int, further: int) -> tuple[Any, ...]:
    words = tuple(np.zeros((max(1, further), events), np.int64))
    absent = tuple(np.zeros((max(1, further), events), np.bool_))
    return (*np.zeros((3, events), np.int64), np.zeros(events, np.bool_), words, absent)
