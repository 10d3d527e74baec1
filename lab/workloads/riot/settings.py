"""What the RIoTBench data depends on, and the numbers that its topologies are configured with."""

from __future__ import annotations

from dataclasses import dataclass

#: The observations of a message, in the order of its SenML record, with their SenML units.
OBSERVATIONS = ("temperature", "humidity", "light", "dust", "airquality_raw")
UNITS = {"temperature": "far", "humidity": "per", "light": "per", "dust": "per", "airquality_raw": "per"}

#: Values outside become null in ETL. Lowest and highest are both allowed.
RANGES = {
    "temperature": (0.7, 35.1),
    "humidity": (20.3, 69.1),
    "light": (0.0, 5153.0),
    "dust": (83.36, 3322.67),
    "airquality_raw": (12.0, 49.0),
}


@dataclass(frozen=True)
class RiotSettings:
    """The city that the messages come from, and the trace of its messages.

    sensors: how many send; each message comes from one of them, all as often.
    known_share: the share of sensors in the metadata, which the Bloom filter and the annotation know.
    trace: messages before the trace starts again, as the benchmark replays one from memory.
    events_per_second: how many messages share one second of event time.
    base_ms: the event time of message 0.
    table_rows, range_rows: rows of training data in all, and in one training.
    """

    seed: int = 0
    sensors: int = 2_162
    known_share: float = 0.95
    trace: int = 20_000
    events_per_second: int = 1_000
    base_ms: int = 1_422_748_800_000
    table_rows: int = 10_000
    range_rows: int = 500

    def __post_init__(self) -> None:
        for name in ("sensors", "trace", "events_per_second", "table_rows", "range_rows"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive: riot got {getattr(self, name)}; write e.g. 1000")
        if not 0 <= self.known_share <= 1:
            raise ValueError(f"known_share must be a share: riot got {self.known_share}; write e.g. 0.95")
        if self.range_rows > self.table_rows:
            raise ValueError(
                f"a training cannot have more rows than there are: riot got range_rows {self.range_rows} "
                f"of {self.table_rows}; write e.g. 500 of 10_000"
            )

    def time_us(self, message: int) -> int:
        """The event time of a message."""
        return self.base_ms * 1_000 + message * 1_000_000 // self.events_per_second
