"""The settings of a run on one node, and what they come to for each output."""

from __future__ import annotations

import os
from dataclasses import dataclass

from penstock.memory.blocks import ChunkShape
from penstock.memory.layout import Layout
from penstock.query.errors import PenstockError
from penstock.scheduling.policy import Policy


@dataclass(frozen=True)
class Settings:
    """How a node runs a graph. The defaults gave the best Yahoo throughput on two cores."""

    workers: int = 0  # 0: one per core
    policy: str | Policy = "congestion"
    block_events: int = 65_536
    chunk_blocks: int = 1
    max_chunks: int = 4
    turn_blocks: int = 2  # a turn takes at most this many blocks' worth of events
    source_batch: int | None = None  # the most events of one read from a source
    prune_sources: bool = True  # leave out source columns that no query reads
    epoch_us: int = 1_000  # how long an idle worker sleeps before it looks again

    def __post_init__(self) -> None:
        at_least = {
            "workers": 0,
            "block_events": 1,
            "chunk_blocks": 1,
            "max_chunks": 2,
            "turn_blocks": 1,
            "epoch_us": 1,
        }
        for name, least in at_least.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise PenstockError(f"{name} must be at least {least}: got {value!r}")

    @property
    def threads(self) -> int:
        return self.workers or os.cpu_count() or 1

    @property
    def turn_limit(self) -> int:
        return self.turn_blocks * self.block_events

    def shape(self, layout: Layout, fan_out: int) -> ChunkShape:
        """The chunks that an output grows to."""
        return ChunkShape(layout, max(self.block_events, fan_out), self.chunk_blocks, fan_out)
