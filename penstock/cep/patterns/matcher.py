"""The matcher: runs and kept events of one pattern over all keys, and what is made of a stretch of events."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.cep.patterns import machine
from penstock.cep.patterns import machine_layout as m
from penstock.cep.patterns.conditions import Conditions, EventMasks
from penstock.cep.patterns.kept_events import KeptEvents
from penstock.cep.patterns.measures import Measures
from penstock.compiled.fixed import kernel_of
from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import ORDER, SUB, TIME, Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.patterns.automaton import Automaton, automaton
from penstock.query.patterns.by_start import FITS, OPENS, POSITION
from penstock.query.patterns.matching import PatternWarning
from penstock.query.patterns.modes import AfterMatch, Contiguity
from penstock.query.patterns.patterns import Periodic
from penstock.query.steps import MatchSpec
from penstock.state.keys import KeyWords
from penstock.state.table import KeyTable

Ints = NDArray[np.int64]

_MODES = {Contiguity.STRICT: m.STRICT, Contiguity.NEXT: m.NEXT_MATCH, Contiguity.ANY: m.ANY_MATCH}
_SKIPS = {AfterMatch.NO_SKIP: m.NO_SKIP, AfterMatch.TO_NEXT: m.TO_NEXT, AfterMatch.PAST_LAST: m.PAST_LAST}


_NO_NUMBERS: Ints = np.zeros(0, np.int64)
_NO_FLAGS = np.zeros(0, np.bool_)
_FEW = 1024  # bindings or events that are not worth tidying up


class Matcher:
    """Takes events of a layout in their order and gives rows of another, those of a step named ``step``."""

    def __init__(
        self, spec: MatchSpec, layout: Layout, target: Layout, strings: StringPool, step: str
    ) -> None:
        self._spec, self._layout, self._step = spec, layout, step
        self._automaton = automaton(spec.pattern, cut=spec.contiguity is not Contiguity.ANY)
        events = self._automaton.events
        # By start the splitter has evaluated what concerns an event alone.
        self._masks = None if spec.by_start else EventMasks(events, layout, strings)
        self.conditions = Conditions(events, layout, strings)
        self._measures = Measures(spec, events, layout, target, strings)
        self._advance = kernel_of(machine.advance)
        self._expire = kernel_of(machine.expire_all)
        self._places, self._follow = _arrays(self._automaton, self.conditions.mask)
        self._modes = self._mode_array()
        self.words = KeyWords.of(layout, spec.keys)
        self._warned = False
        self._target = target
        self.clear()

    def clear(self) -> None:
        """Forgets all runs and events."""
        self.table = KeyTable(self.words.width)
        self.runs: Ints = np.zeros((64, m.RUN_WIDTH), np.int64)
        self.nodes: Ints = np.zeros((1024, 4), np.int64)
        self.keys: Ints = np.zeros((self.table.capacity, 5), np.int64)
        self.counts: Ints = np.zeros(m.COUNTS, np.int64)
        self.counts[m.FREE] = -1
        self._matches: Ints = np.zeros((1024, m.MATCH_WIDTH), np.int64)
        self.events = KeptEvents(self._layout)
        self._tidy = (0, 0)  # bindings and events when it was last tidied up
        self._made: list[Columns] = []
        self._context: Any = None  # keeps alive what conditions on earlier events read by address

    def take(self, columns: Columns, count: int, watermark_us: int) -> tuple[Columns, int]:
        """Events in order, none of them at or behind the watermark; the rows that are decided by then."""
        if count:
            self._take_events(columns, count)
        before = watermark_us if watermark_us < END_OF_TIME else int(m.NEVER)
        entry = 0
        while (entry := self._expire(self._machine, self.table.live, entry, before)) >= 0:
            self._make_room()
        self._drain()
        self._forget()
        made, self._made = self._made, []
        if not made:
            return self._target.allocate(0), 0
        merged = tuple(np.concatenate(arrays) for arrays in zip(*made, strict=True))
        return self._ordered(merged), len(merged[0])

    @property
    def open_runs(self) -> int:
        return int(self.counts[m.LIVE])

    @property
    def dropped_runs(self) -> int:
        """Runs that were not opened because their key had as many as it may have."""
        return int(self.counts[m.DROPPED])

    @property
    def nbytes(self) -> int:
        """What runs, bindings and kept events take."""
        matrices = (self.runs, self.nodes, self.keys, self._matches)
        return sum(array.nbytes for array in matrices) + self.events.nbytes + self.table.nbytes

    def place(self, nodes: Ints, owners: Ints, runs: list[Ints], ends: Ints) -> None:
        """Puts in bindings and runs that were saved: runs by key and in order, with their last bindings.

        ``runs`` has their numbers, positions, negated events seen, starts, deadlines, spent continuations,
        and how many events their keys have seen.
        """
        first_node, first_run = int(self.counts[m.NODES]), int(self.counts[m.RUNS])
        count = len(owners)
        self.nodes = _lengthened(self.nodes, _room(first_node + len(nodes), len(self.nodes)))
        self.nodes[first_node : first_node + len(nodes)] = nodes
        self.counts[m.NODES] += len(nodes)
        self.runs = _lengthened(self.runs, _room(first_run + count, len(self.runs)))
        placed = self.runs[first_run : first_run + count]
        _, positions, seen, starts, due, spent, events = runs
        placed[:, m.POS], placed[:, m.SEEN], placed[:, m.NODE] = positions, seen, ends
        placed[:, m.SEQ], placed[:, m.DUE], placed[:, m.SPENT] = starts, due, spent
        roots = ends.copy()
        while (parents := self.nodes[roots, m.N_PARENT]).max(initial=-1) >= 0:
            roots = np.where(parents >= 0, parents, roots)
        placed[:, m.ROW] = self.nodes[roots, m.N_ROW]
        is_last = np.append(owners[1:] != owners[:-1], True)
        placed[:, m.NEXT] = np.where(is_last, -1, first_run + np.arange(1, count + 1))
        heads = np.flatnonzero(np.append(True, is_last[:-1]))
        entries = owners[heads]
        self.keys[entries, m.HEAD] = first_run + heads
        self.keys[entries, m.TAIL] = first_run + np.flatnonzero(is_last)
        self.keys[entries, m.WANTED] = -1  # all: the next event that fits anything finds out
        self.keys[entries, m.SIZE] = np.diff(np.append(heads, count))
        self.keys[entries, m.EVENTS] = events[heads]
        self.counts[m.RUNS] += count
        self.counts[m.LIVE] += count

    def reserve(self) -> None:
        """Makes ``keys`` as long as the table of keys."""
        self.keys = _lengthened(self.keys, self.table.capacity)

    # -- how it goes on ------------------------------------------------------------------------------------

    @property
    def _machine(self) -> Any:
        return (
            self._places,
            self._follow,
            self._modes,
            self.runs,
            self.nodes,
            self.keys,
            self.counts,
            self._matches,
            self.events.rows,
        )

    def _take_events(self, columns: Columns, count: int) -> None:
        words = self.words.encode(self._layout, columns, 0, count)
        columns = tuple(np.ascontiguousarray(column[:count]) for column in columns)
        if self._masks is None:
            masks, numbers, opens = (columns[self._layout.data(name)] for name in (FITS, POSITION, OPENS))
        else:
            masks, numbers, opens = self._masks(columns, count), _NO_NUMBERS, _NO_FLAGS
        base = self.events.add(columns, count)
        done = 0
        while True:
            if self.conditions.bound:
                self._context = self.conditions.context(self.nodes, self.events.columns)
                self._modes[m.CONTEXT] = self._context[0].ctypes.data
            done = self._advance(self._machine, self.table.arrays, words, masks, numbers, opens, base, done)
            if done == count:
                return
            self._make_room()

    def _make_room(self) -> None:
        self._drain()
        machine.compact(self._machine)
        if len(self.table) == self.table.capacity:
            self.table.grow()
            self.reserve()
        size = int(self.keys[: self.table.size, m.SIZE].max(initial=0))
        needed = (size + 2) * (int(self._modes[m.FAN_OUT]) + 2) + 4
        period = int(self._modes[m.PERIOD])
        ticks = size * (int(self._modes[m.WITHIN]) // period + 1) if period else 0
        self.runs = _lengthened(self.runs, _room(self.counts[m.LIVE] + needed, len(self.runs)))
        # Twice the room, so that tidying up is paid for by what was bound since.
        room = _room(2 * (int(self.counts[m.NODES]) + needed), len(self.nodes))
        self.nodes = _lengthened(self.nodes, room)
        self._matches = _lengthened(self._matches, _room(needed + ticks, len(self._matches)))

    def _drain(self) -> None:
        """Turns the matches found so far into rows: their bindings are still there."""
        count = int(self.counts[m.MATCHES])
        if count:
            self._made.append(self._measures.rows(self._matches[:count], self.nodes, self.events.columns))
            self.counts[m.MATCHES] = 0
        if self.counts[m.DROPPED] and not self._warned:
            self._warned = True
            warnings.warn(
                f"step '{self._step}' left out runs: a key has more than max_runs={self._spec.max_runs}; "
                "shorten within, narrow the conditions, or raise max_runs",
                PatternWarning,
                stacklevel=2,
            )

    def _forget(self) -> None:
        """Gives up the keys without runs, the bindings without runs and the events without bindings."""
        idle = self.table.entries
        idle = idle[self.keys[idle, m.HEAD] < 0]
        if len(idle):
            self.table.remove(idle)
        if not self.counts[m.LIVE]:
            self.counts[m.NODES] = 0
            self.events = KeptEvents(self._layout)
            self._tidy = (0, 0)
            return
        bound, kept = self._tidy
        if self.counts[m.NODES] <= 2 * bound + _FEW and self.events.count <= 2 * kept + _FEW:
            return
        machine.compact(self._machine)
        nodes = self.nodes[: self.counts[m.NODES]]
        used = np.zeros(self.events.count, np.bool_)
        used[nodes[:, m.N_ROW]] = True
        places = self.events.keep(used)
        nodes[:, m.N_ROW] = places[nodes[:, m.N_ROW]]
        runs = self.runs[: self.counts[m.RUNS]]
        is_open = runs[:, m.POS] != m.UNUSED
        runs[is_open, m.ROW] = places[runs[is_open, m.ROW]]
        self._tidy = (len(nodes), self.events.count)

    def _ordered(self, columns: Columns) -> Columns:
        target = self._target
        keys = [columns[target.data(name)] for name in (SUB, ORDER, TIME) if name in target]
        order = np.lexsort(keys)
        return tuple(column[order] for column in columns)

    def _mode_array(self) -> Ints:
        spec, pattern = self._spec, self._spec.pattern
        modes = np.zeros(m.MODES, np.int64)
        modes[m.MODE] = _MODES[spec.contiguity]
        modes[m.SKIP] = _SKIPS[spec.after]
        # Matches that do not overlap share no events anyway.
        consumed = spec.consumed and spec.after is not AfterMatch.PAST_LAST
        modes[m.CONSUMED] = consumed
        modes[m.WITHIN] = -1 if spec.within_us is None else spec.within_us
        modes[m.WITHIN_EVENTS] = spec.within_events or 0
        modes[m.PERIOD] = pattern.every_us if isinstance(pattern, Periodic) else 0
        modes[m.MAX_RUNS] = spec.max_runs
        modes[m.ALL_ROWS] = spec.all_rows
        # Two runs at one point have the same future only if no event goes away.
        modes[m.PRUNE] = spec.contiguity is not Contiguity.ANY and not consumed
        modes[m.BY_START] = spec.by_start
        modes[m.BOUND], modes[m.FUNCTION] = self.conditions.mask, self.conditions.function
        modes[m.FAN_OUT] = max(map(len, self._automaton.follows))
        return modes


def _arrays(found: Automaton, looks_back: int) -> tuple[Ints, Ints]:
    """The automaton as the machine reads it, whose events ``looks_back`` have conditions on earlier ones."""
    starts = np.cumsum([0, *map(len, found.follows)])
    places = np.zeros((len(found.binds), m.PLACE_WIDTH), np.int64)
    places[:, m.BINDS] = found.binds
    places[:, m.FIRST], places[:, m.STOP] = starts[:-1], starts[1:]
    places[:, m.ACCEPTS], places[:, m.WAIT] = found.accepts, found.waits
    places[:, m.FORGETS] = _forgetting(found, looks_back)
    for position, follow in enumerate(found.follows):
        for one in follow:
            places[position, m.WATCH] |= one.guard
            places[position, m.WANTS] |= one.guard
            if one.target >= 0:
                places[position, m.WANTS] |= 1 << found.binds[one.target]
    flat = [(one.target, one.guard) for follow in found.follows for one in follow]
    return places, np.array(flat or [(0, 0)], np.int64)


def _forgetting(found: Automaton, looks_back: int) -> list[int]:
    """By position: the continuations, as bits, on which no event and no negation ever looks back."""
    everything = [(1 << len(follow)) - 1 for follow in found.follows]
    forgetting = [0] * len(everything)
    shrinking = list(everything)
    while forgetting != shrinking:
        forgetting = shrinking
        shrinking = [
            sum(
                1 << number
                for number, one in enumerate(follow)
                if not one.guard & looks_back
                and (one.target < 0 or not looks_back >> found.binds[one.target] & 1)
                and (one.target < 0 or forgetting[one.target] == everything[one.target])
            )
            for follow in found.follows
        ]
    return forgetting


def _room(needed: int, length: int) -> int:
    while length < needed:
        length *= 2
    return length


def _lengthened(matrix: Ints, length: int) -> Ints:
    if len(matrix) >= length:
        return matrix
    longer = np.zeros((length, matrix.shape[1]), np.int64)
    longer[: len(matrix)] = matrix
    return longer
