"""The steps in front of an operator that its kernels run with it: which events come through, and their
columns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.cache import Kernel, compile_kernel
from penstock.kernels.builder import HEADER, KernelBuilder, Parameters
from penstock.kernels.parameters import column_types
from penstock.kernels.rows import indented
from penstock.kernels.views import ViewBuilder
from penstock.memory.layout import LATE, Columns, Layout
from penstock.operators.run.base import Build
from penstock.operators.run.fusion import link_of
from penstock.query.graph import QueryVertex

_CHOSEN = 0  # the first of the numbers by event: which events have come through


@dataclass(frozen=True)
class FrontStep:
    """What one of the steps has done so far."""

    node: QueryVertex
    taken: int
    emitted: int
    busy_ns: int


class Scratch:
    """Numbers by event of a block, that one kernel leaves for the next one. They grow with the largest
    block."""

    def __init__(self, count: int) -> None:
        self.arrays: list[NDArray[np.uint32]] = [np.zeros(0, np.uint32) for _ in range(count)]
        self._places: list[tuple[Parameters, int, int]] = []

    def local(self, builder: KernelBuilder, number: int) -> str:
        """A local of the kernel for one of them."""
        for parameters, place, known in self._places:
            if parameters is builder.parameters and known == number:
                return builder.table(place)
        place = builder.parameters.add_table(self.arrays[number])
        self._places.append((builder.parameters, place, number))
        return builder.table(place)

    def fit(self, events: int) -> None:
        """Makes room for a block of so many events."""
        if events <= len(self.arrays[0]):
            return
        size = 1 << (events - 1).bit_length()
        self.arrays = [np.zeros(size, np.uint32) for _ in self.arrays]
        for parameters, place, number in self._places:
            parameters.set_table(place, self.arrays[number])


@dataclass(frozen=True)
class LinkScratch:
    """The numbers by event that are one link's."""

    scratch: Scratch
    first: int

    def local(self, builder: KernelBuilder, number: int) -> str:
        """A local of the kernel for one of them."""
        return self.scratch.local(builder, self.first + number)


class Front:
    """Runs the passes of links, one after the other without a branch, each over the events that the one
    before has left; columns are computed by whoever reads them."""

    def __init__(self, builds: Sequence[Build], events: Layout) -> None:
        """``builds`` are those of the links; ``events`` is what is behind the last one."""
        self._builds = builds
        self._links = [link_of(build) for build in builds]
        self._layouts = [*(build.inputs[0] for build in builds), events]
        firsts = np.cumsum([1, *(link.scratch for link in self._links)]).tolist()
        self._scratch = Scratch(firsts[-1])
        self._firsts: list[int] = firsts
        self.chooses = any(link.chooses for link in self._links)
        self._stayed = np.zeros(len(builds), np.int64)  # events behind each link, of the last selection
        self._emitted = np.zeros(len(builds), np.int64)
        self._last = self._taken = self._busy_ns = 0
        self._kernel: Kernel | None = None
        if any(link.passes for link in self._links):
            self._kernel, self._arguments = self._choosing()

    # -- for who writes the kernel behind it -----------------------------------------------------

    def builder(self, before: KernelBuilder | None = None) -> KernelBuilder:
        """A builder over what comes through; ``before`` writes an earlier loop of the same kernel."""
        if before is None:
            return self._builder(len(self._links), Parameters(self._builds[0].strings), 0)
        return self._builder(len(self._links), before.parameters, before.temporaries)

    def computes(self, name: str) -> bool:
        """Whether a column is an expression, and not just read."""
        return any(link.computes(name) for link in self._links)

    def event(self, builder: KernelBuilder, place: str) -> str:
        """The event of a place in the range that ``select`` gives."""
        return f"uint64({self._scratch.local(builder, _CHOSEN)}[{place}])" if self.chooses else place

    # -- at run time -----------------------------------------------------------------------------

    def select(self, columns: Columns, start: int, stop: int) -> tuple[int, int]:
        """Runs the passes over [start, stop); the range of places for the kernel behind."""
        began_ns = time.perf_counter_ns()
        self._last = stop - start
        if self._kernel is None:
            self._stayed[:] = stop - start
            chosen = stop - start
        else:
            self._scratch.fit(stop)
            chosen = self._kernel(columns, start, stop, self._stayed, *self._arguments())
        self._taken += stop - start
        self._emitted += self._stayed
        self._busy_ns += time.perf_counter_ns() - began_ns
        return (0, chosen) if self.chooses else (start, stop)

    def taken_until(self, columns: Columns, start: int, place: int) -> int:
        """Takes back what of the last selection stands at ``place`` and behind; where its events begin."""
        stop = int(self._scratch.arrays[_CHOSEN][place]) if self.chooses else place
        self._taken -= self._last
        self._emitted -= self._stayed
        self.select(columns, start, stop)
        return stop

    def late_events(self, columns: Columns, places: tuple[int, int]) -> int:
        """How many events of a range that ``select`` gave are late."""
        if LATE not in self._layouts[-1]:
            return 0
        late = columns[self._layouts[0].data(LATE)]
        first, last = places
        rows = self._scratch.arrays[_CHOSEN][first:last] if self.chooses else slice(first, last)
        return int(np.count_nonzero(late[rows]))

    @property
    def steps(self) -> list[FrontStep]:
        """What each step has done so far. The time of all is theirs by the events that they took."""
        taken = [self._taken, *self._emitted.tolist()]
        total = sum(taken[:-1]) or 1
        return [
            FrontStep(build.node, taken[place], taken[place + 1], self._busy_ns * taken[place] // total)
            for place, build in enumerate(self._builds)
        ]

    @property
    def busy_ns(self) -> int:
        """The time of all steps."""
        return self._busy_ns

    def _builder(self, links: int, parameters: Parameters, temporaries: int) -> KernelBuilder:
        """A builder over the events behind so many links."""
        strings = self._builds[0].strings
        builder = KernelBuilder(self._layouts[0], strings, parameters=parameters, temporaries=temporaries)
        for number in range(links):
            computed = self._links[number].computed(self._of(number))
            builder = ViewBuilder(builder, self._layouts[number + 1], computed)
        return builder

    def _choosing(self) -> tuple[Kernel, Any]:
        """The kernel of all passes. It writes how many events stay behind each link, returns how many come
        through."""
        parameters = Parameters(self._builds[0].strings)
        preamble: dict[str, None] = {}
        body: list[str] = []
        temporaries = 0
        events, compact = "range(uint64(start), uint64(stop))", False
        for number, link in enumerate(self._links):
            if link.passes:
                builder = self._builder(number, parameters, temporaries)
                holds = link.choose(builder, self._of(number))
                chosen = self._scratch.local(builder, _CHOSEN)
                body += ["m = uint64(0)", f"for j in {events}:"]
                body += indented([f"k = uint64({chosen}[j])" if compact else "k = j", *builder.lines])
                if link.chooses:
                    body += indented([f"{chosen}[m] = k", f"m += uint64({holds})"])
                    body += ["n = m"]
                    events, compact = "range(n)", True
                preamble |= dict.fromkeys(builder.preamble())
                temporaries = builder.temporaries
            body.append(f"stayed[{number}] = n")
        lines = [
            "def choose_rows(inp, start, stop, stayed, ints, floats, tables):",
            *indented([*preamble, "n = uint64(stop - start)", *body, "return int64(n)"]),
        ]
        signature = types.int64(
            column_types(self._layouts[0].dtypes),
            types.int64,
            types.int64,
            types.Array(types.int64, 1, "C"),
            *parameters.types,
        )
        source = HEADER + "\n\n" + "\n".join(lines) + "\n"
        return compile_kernel("choose_rows", source, signature), parameters.arguments

    def _of(self, link: int) -> LinkScratch:
        return LinkScratch(self._scratch, self._firsts[link])


def front_of(build: Build) -> Front | None:
    """The front of an operator, if it has one."""
    return Front(build.front, build.inputs[0]) if build.front else None
