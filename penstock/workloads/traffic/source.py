"""Simulated traffic as a source: every car reports 25 times a second."""

from __future__ import annotations

from penstock.connectors.memory.generator import Generator
from penstock.query.types import Schema
from penstock.workloads.traffic.settings import TrafficSettings
from penstock.workloads.traffic.simulation import FIELDS, TrafficSimulation


class Traffic(Generator):
    """Cars on a road network, reproducible by seed; with ``real_time``, a second of traffic takes a second.

    The simulation is one stream of frames, so the source has one partition and its events are in order.
    """

    def __init__(
        self,
        settings: TrafficSettings | None = None,
        *,
        seconds: float | None = None,
        real_time: bool = False,
    ) -> None:
        self.settings = settings or TrafficSettings()
        simulation = TrafficSimulation(self.settings)
        self._second_frame = simulation.rows_before(1)
        frames = None if seconds is None else round(seconds * self.settings.frames_per_second)
        super().__init__(
            simulation.fill,
            Schema.of(dict(FIELDS)),
            limit=None if frames is None else simulation.rows_before(frames),
            rate=self.settings.cars * self.settings.frames_per_second if real_time else None,
            ordered=True,
        )

    def warm_up(self) -> None:
        """Moves the cars once, which compiles most of the simulation, and goes back to the start."""
        self._try(self._second_frame)
        super().warm_up()
