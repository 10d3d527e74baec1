"""Event and idle thresholds: adapted by the latency gradient, taken back when that hurt (enjima eq. 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.scheduling.policy import Floats, Integers

#: The block that the paper's thresholds are meant for.
_PAPER_BLOCK_EVENTS = 384


@dataclass(frozen=True)
class ThresholdRange:
    """Where a threshold starts, where it ends, and how far it may go at once."""

    initial: float
    largest: float
    largest_step: float

    def step(self, value: float, gradient: float) -> float:
        """Δ of eq. 5. As printed it is bounded upwards only; a falling latency would let it jump below 0."""
        change = max(-self.largest_step, min(gradient * value, self.largest_step))
        return change if 0 < value + change < self.largest else 0.0


_IDLE_NS = ThresholdRange(1e6, 4e6, 1e6)
_REST_NS = 10_000_000
_OVERDUE_NS = 5e6
_OF_BEAT = 0.5  # of a whole one an operator would just miss, whenever a little less has come


class Thresholds(NamedTuple):
    """The thresholds in force, those before the last change, and the gradient that led to it."""

    events: float
    idle_ns: float
    before: tuple[float, float] | None = None  # None: nothing to take back
    gradient: float = 0.0


@dataclass(frozen=True)
class Adaptation:
    """How both thresholds move. The paper's figures are for blocks of 384; ``for_block`` scales them."""

    events: ThresholdRange = ThresholdRange(1_000.0, 10_000.0, 1_000.0)
    idle_ns: ThresholdRange = ThresholdRange(1e6, 100e6, 10e6)
    #: Who has waited so much longer than its idle threshold goes before all others. Lowest output cost first
    #: leaves dear queries for last, and a query without turns shows no growing latency either.
    overdue_ns: float = math.inf
    #: The event threshold is no more than this share of what a beat brings to the operator; None: of any
    #: size. One that is met only where events have piled up decides nothing before that.
    of_beat: float | None = None
    #: How long a source rests from turn to turn where a thread of its own reads it, if it has few events.
    rest_ns: int = 0

    @classmethod
    def for_block(cls, block_events: int, capacity: int) -> Adaptation:
        """The event threshold grows with the block. The idle threshold stays below some milliseconds: waiting
        is the sources' part.

        ``capacity`` is the most events that can wait on an edge: no threshold may ask for more, and if
        readers waited for half of it, writers would soon wait for them (a fifth less of one Yahoo query).
        """
        scale, paper = block_events / _PAPER_BLOCK_EVENTS, cls()
        largest = min(paper.events.largest * scale, 0.75 * capacity)
        initial = min(paper.events.initial * scale, 0.25 * capacity)
        events = ThresholdRange(initial, largest, paper.events.largest_step * scale)
        return Adaptation(events, _IDLE_NS, _OVERDUE_NS, _OF_BEAT, _REST_NS)

    def initial(self) -> Thresholds:
        return Thresholds(self.events.initial, self.idle_ns.initial)

    def least_events(self, now: Thresholds, beat_events: Floats | None, busy: float = 1.0) -> Integers | int:
        """The event threshold of each operator, for which a beat brings so many events. Workers that have
        time need not save turns: it is lower the less ``busy`` they are."""
        if self.of_beat is None or beat_events is None:
            return math.ceil(now.events)
        share = busy * self.of_beat * now.events / self.events.initial
        return np.ceil(np.clip(share * beat_events, 1.0, now.events)).astype(np.int64)

    def idle_limit_ns(self, now: Thresholds, busy: float) -> float:
        """How long an operator has to be idle before any event is enough; the same holds for it."""
        return now.idle_ns if self.of_beat is None else busy * now.idle_ns

    def adapt(self, now: Thresholds, gradient: float) -> Thresholds:
        """One adjustment: back to what was before if the last one was followed by a larger gradient, else one
        step on."""
        if now.before is not None and gradient > now.gradient:
            events, idle_ns = now.before
            return Thresholds(events, idle_ns, None, gradient)
        events = now.events + self.events.step(now.events, gradient)
        idle_ns = now.idle_ns + self.idle_ns.step(now.idle_ns, gradient)
        changed = (events, idle_ns) != (now.events, now.idle_ns)
        return Thresholds(events, idle_ns, (now.events, now.idle_ns) if changed else None, gradient)
