"""The board: all that the machine knows, in one piece of memory that Python and compiled code read by name.

Compiled code is called with the board's address alone: to hand over eight arrays costs more than what is done
with them, above all when the kernels of the turn before have filled the caches.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from numpy.typing import NDArray

from penstock.compiled.fixed import part
from penstock.scheduling.dispatch.passes import is_chain, operators_behind
from penstock.scheduling.topology import Topology

NEVER_NS = 1 << 62  # a time that nobody knows
MOST_TURNS = 64  # that a worker takes at once, each with those behind it


def _fields(annotations: dict[str, Any]) -> list[tuple[str, Any]]:
    """What ctypes needs to know of a record whose fields are written as annotations."""
    return [
        (name, ctypes.c_double if kind == "float" else ctypes.c_int64) for name, kind in annotations.items()
    ]


class Head(ctypes.Structure):
    """What is known of the whole. Truths are 0 or 1."""

    operators: int
    sources: int
    links: int
    workers: int
    turn_limit: int
    epoch_ns: int
    share: int  # a turn takes one of so many parts of what waits,
    at_most: int  # and at most so many events
    # rules
    passes: int
    alone_rule: int
    together: int
    staying: int  # and there are more workers than sources
    bounded: int
    # by the plan
    order: int
    idle_ns: float  # who had no turn for longer than this is eligible with any number of events
    overdue_ns: float  # who has waited so much longer goes before all others
    deadline_ns: int  # when turns should end
    planned_ns: int
    patience_ns: int  # how long a source that was read empty waits
    slack_ns: int  # so much too early a source may come if another one is due
    # now
    waiting: int  # operators that wait for a worker
    held: int  # operators that workers have
    sleeping: int  # workers
    tickets: int  # given out so far
    alone: int  # turns are so short that one worker takes them all
    put_off: int  # somebody has work that was not worth a turn so far
    next_look_ns: int  # the least ``look_ns`` of the sources
    beat_ns: int  # the next time at which sources are read together

    _fields_ = _fields(__annotations__)


class BoardOperator(ctypes.Structure):
    """What is known of one operator. ``seen``, ``due_ns``, ``blocked`` and ``finished`` are said by the
    driver, when a turn has ended; the rest is the machine's."""

    priority: float  # among those that wait for a worker; 0: it does not
    ticket: int  # of equal priorities the lowest goes first
    place: int  # among those that wait
    seen: int  # events and marks that wait for it; of a source, if it was not read empty, some
    pending: int  # the same, as it stands
    running: int  # a worker has it
    blocked: int  # it may not run until it is released
    finished: int
    since_ns: int  # since when it has had work and no turn; 0: it has no work
    last_turn_ns: int
    given_ns: int  # when it was last given out
    span_ns: int  # how long a worker has it, with all that goes with it, smoothed; 0: not known
    known_cost_ns: float  # per event in large turns; 0: not known
    # by the plan
    potential: float  # its priority as soon as it is eligible
    least_events: int  # so many make it eligible
    taken: float  # the priority with which it was last given out since the plan
    limit: int
    cost_ns: float  # per event, where a turn should end with the epoch; else 0
    least_turn: int
    # passes
    follow: int  # all operators behind it may go with it
    allowed: int  # events in the pass that it goes with; 0: it was given out for itself
    leading: int  # a worker has it together with all operators behind it
    chain: int  # it and all behind it have one reader at the most
    behind: int  # where those behind it begin among the links,
    behind_end: int
    readers: int  # and its readers
    readers_end: int
    # sources
    source: int
    due_ns: int  # when its next event is due
    look_ns: int  # when it should be let in; NEVER_NS: somebody else will say
    per_ns: float  # events by the ns
    steady: int  # by its rate it has more before its patience ends: it need not be asked

    _fields_ = _fields(__annotations__)


class Given(ctypes.Structure):
    """One turn that is given out."""

    operator: int
    limit: int
    leads: int  # all operators behind it go with it

    _fields_ = _fields(__annotations__)


class Views(NamedTuple):
    """The board in compiled code. ``heads`` has one row."""

    heads: Any
    operators: Any
    given: Any
    returned: Any
    ready: Any  # the operators that wait for a worker, in no order
    sources: Any
    links: Any


def _pointer_to(kind: Any) -> Callable[[int], Any]:
    """A compiled function that takes an address for a pointer to this."""

    def pointer(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        returned: Any = types.CPointer(kind)  # type: ignore[no-untyped-call]
        return returned(types.int64), generate

    compiled: Any = intrinsic
    return compiled(pointer)  # type: ignore[no-any-return]


_RECORDS = (Head, BoardOperator, Given)
_head, _operator, _given = (_pointer_to(numba.from_dtype(np.dtype(record))) for record in _RECORDS)
_number = _pointer_to(types.int64)
_HEAD_BYTES, _OPERATOR_BYTES, _GIVEN_BYTES = (ctypes.sizeof(record) for record in _RECORDS)


@part()
def views(address):  # type: ignore[no-untyped-def]
    """The board at this address."""
    heads = carray(_head(address), (1,))
    count = heads[0].operators
    address += _HEAD_BYTES
    operators = carray(_operator(address), (count,))
    address += _OPERATOR_BYTES * count
    given = carray(_given(address), (MOST_TURNS,))
    address += _GIVEN_BYTES * MOST_TURNS
    returned = carray(_number(address), (MOST_TURNS,))
    ready = carray(_number(address + 8 * MOST_TURNS), (count,))
    address += 8 * (MOST_TURNS + count)
    sources = carray(_number(address), (heads[0].sources,))
    links = carray(_number(address + 8 * heads[0].sources), (heads[0].links,))
    return Views(heads, operators, given, returned, ready, sources, links)


class Board:
    """The board in Python: records with attributes, and ``columns`` of all operators by field."""

    def __init__(self, topology: Topology) -> None:
        count, behind = len(topology), operators_behind(topology)
        sources = [number for number, kind in enumerate(topology.kinds) if kind == "source"]
        readers = [tuple(dict.fromkeys(children)) for children in topology.children]
        links = [number for numbers in (*behind, *readers) for number in numbers]
        sizes = (_HEAD_BYTES, _OPERATOR_BYTES * count, _GIVEN_BYTES * MOST_TURNS)
        lists = 8 * (MOST_TURNS + count + len(sources) + len(links))
        self._memory: NDArray[np.uint8] = np.zeros(sum(sizes) + lists, np.uint8)
        memory, starts = memoryview(self._memory), np.cumsum((0, *sizes)).tolist()  # type: ignore[arg-type]
        self.head = Head.from_buffer(memory)
        self.operators = list((BoardOperator * count).from_buffer(memory, starts[1]))
        self.columns = np.frombuffer(memory, np.dtype(BoardOperator), count, starts[1])
        self.given = list((Given * MOST_TURNS).from_buffer(memory, starts[2]))
        self.returned = (ctypes.c_int64 * MOST_TURNS).from_buffer(memory, starts[3])
        self.address = self._memory.ctypes.data  # for compiled code
        self.behind = behind
        self.readers = readers
        tail = np.frombuffer(
            memory, np.int64, len(sources) + len(links), starts[3] + 8 * (MOST_TURNS + count)
        )
        tail[:] = sources + links
        self.head.operators, self.head.sources, self.head.links = count, len(sources), len(links)
        self.head.next_look_ns = NEVER_NS
        place = 0
        for starting, ending, lists_of in (
            ("behind", "behind_end", behind),
            ("readers", "readers_end", readers),
        ):
            for operator, numbers in zip(self.operators, lists_of, strict=True):
                setattr(operator, starting, place)
                place += len(numbers)
                setattr(operator, ending, place)
        for number, operator in enumerate(self.operators):
            operator.source = number in sources
            operator.chain = is_chain(topology, number, behind[number])
            operator.due_ns = operator.look_ns = NEVER_NS
