"""What a simulated run showed: latencies by query, throughput, utilisation, and the overheads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lab.sim.operators import SimGraph


@dataclass
class Overheads:
    """Counted by the drivers while they run."""

    operator_switches: int = 0  # a thread went on with another operator
    context_switches: int = 0  # a core went on with another thread, or a thread woke up
    context_switch_ns: int = 0
    decisions: int = 0  # plans made, by a scheduling policy or by a binding policy
    serial_ns: int = 0  # spent where only one thread at a time may be
    serial_wait_ns: int = 0  # spent waiting to get there
    rebinds: int = 0  # operators that changed their thread
    rebind_ns: int = 0  # what the threads spent on that, waiting at barriers not counted
    barriers: int = 0
    barrier_wait_ns: int = 0  # over all threads, including the barriers' own cost
    forwarded: int = 0  # tasks found in the wrong queue
    parked: int = 0  # tasks that came before their turn


@dataclass(frozen=True, eq=False)
class SimResult:
    """One run. Latencies are those of latency markers; a query is named after its last operator.

    Markers that had not arrived when the run ended count with the age they had then.
    """

    seconds: float
    born_ns: dict[str, NDArray[np.int64]]
    latency_ns: dict[str, NDArray[np.int64]]
    names: tuple[str, ...]
    processed: NDArray[np.int64]
    emitted: NDArray[np.int64]
    turns: NDArray[np.int64]
    busy_ns: NDArray[np.int64]
    nonempty_ns: NDArray[np.int64]
    thread_busy_ns: NDArray[np.int64]
    arrived: int
    read: int  # events that source operators took before the end of the arrivals
    overheads: Overheads
    rebinds: tuple[tuple[int, int], ...] = ()  # when (ns), and how many operators moved

    def latencies_ms(self, since_s: float = 0.0) -> NDArray[np.float64]:
        """Every query's latencies, of markers born after ``since_s``."""
        parts = [
            self.latency_ns[query][self.born_ns[query] >= since_s * 1e9] / 1e6 for query in self.latency_ns
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def under(self, limit_ms: float, since_s: float = 0.0) -> float:
        """The share of results that came within a deadline."""
        latencies = self.latencies_ms(since_s)
        return float((latencies < limit_ms).mean()) if len(latencies) else 1.0

    def quantile_ms(self, q: float, since_s: float = 0.0) -> float:
        return float(np.quantile(self.latencies_ms(since_s), q))

    def mean_ms(self, since_s: float = 0.0) -> float:
        return float(self.latencies_ms(since_s).mean())

    def mean_over_time(self, every_s: float = 1.0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds, and the mean latency (ms) of all results born in each interval (rebinding eq. 5)."""
        born_s = np.concatenate(list(self.born_ns.values())) / 1e9
        latency_ms = self.latencies_ms()
        interval = (born_s / every_s).astype(np.int64)
        count = np.bincount(interval)
        total = np.bincount(interval, latency_ms)
        some = count > 0
        seconds = np.flatnonzero(some).astype(np.float64) * every_s
        return seconds, total[some] / count[some]

    def distribution(self, width_ms: float = 10.0, up_to_ms: float = 90.0) -> dict[str, float]:
        """Shares of results by latency in steps of ``width_ms``; the last is open (rebinding fig. 3b)."""
        edges = np.arange(0.0, up_to_ms + width_ms / 2, width_ms)
        latencies = self.latencies_ms()
        bins = np.minimum((latencies / width_ms).astype(np.int64), len(edges) - 1)
        counts = np.bincount(bins, minlength=len(edges))[: len(edges)]
        labels = [f"{low:g}-{low + width_ms:g}" for low in edges[:-1]] + [f"{edges[-1]:g}+"]
        return dict(zip(labels, (counts / max(1, len(latencies))).tolist(), strict=True))

    @property
    def throughput(self) -> float:
        """Events per second that the source operators took."""
        return self.read / self.seconds

    @property
    def utilisation(self) -> NDArray[np.float64]:
        """ρ_w = 1 − T_emptyQ / T_w of each operator: the share of time that it had work (edgewise 3)."""
        return self.nonempty_ns / (self.seconds * 1e9)

    @property
    def utilisation_variation(self) -> float:
        """The coefficient of variation of the operators' utilisation (edgewise fig. 8)."""
        utilisation = self.utilisation
        mean = float(utilisation.mean())
        return float(utilisation.std()) / mean if mean else 0.0

    @property
    def thread_utilisation(self) -> NDArray[np.float64]:
        """The share of each thread's time at work: turns, overheads, waiting for the serial part."""
        return self.thread_busy_ns / (self.seconds * 1e9)


@dataclass
class Recorder:
    """Collects a run's figures; those of operators and threads only up to the end of the arrivals."""

    graph: SimGraph
    overheads: Overheads = field(default_factory=Overheads)
    rebinds: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        size = len(self.graph.operators)
        self.processed, self.emitted, self.turns = [0] * size, [0] * size, [0] * size
        self.busy_ns, self.nonempty_ns = [0] * size, [0] * size
        self._filled_ns = [-1] * size  # since when its queue or its turn has had something; −1: empty
        self._born: dict[int, list[int]] = {end: [] for end in self.graph.ends()}
        self._latency: dict[int, list[int]] = {end: [] for end in self.graph.ends()}
        self._frozen: dict[str, NDArray[np.int64]] = {}

    def turn(self, operator: int, taken: int, emitted: int, cost_ns: int) -> None:
        self.processed[operator] += taken
        self.emitted[operator] += emitted
        self.turns[operator] += 1
        self.busy_ns[operator] += cost_ns

    def fill(self, operator: int, now_ns: int) -> None:
        if self._filled_ns[operator] < 0:
            self._filled_ns[operator] = now_ns

    def empty(self, operator: int, now_ns: int) -> None:
        if self._filled_ns[operator] >= 0:
            self.nonempty_ns[operator] += now_ns - self._filled_ns[operator]
            self._filled_ns[operator] = -1

    def sample(self, end: int, born_ns: int, latency_ns: int) -> None:
        self._born[end].append(born_ns)
        self._latency[end].append(latency_ns)

    def new_samples(self, end: int, seen: int) -> list[int]:
        """The latencies of a query beyond the first ``seen``."""
        return self._latency[end][seen:]

    def freeze(self, now_ns: int, thread_busy_ns: list[int]) -> None:
        """Keeps the counters as they are now: what follows only drains."""
        nonempty = [
            total + (now_ns - since if since >= 0 else 0)
            for total, since in zip(self.nonempty_ns, self._filled_ns, strict=True)
        ]
        counters = {
            "processed": self.processed,
            "emitted": self.emitted,
            "turns": self.turns,
            "busy_ns": self.busy_ns,
            "nonempty_ns": nonempty,
            "thread_busy_ns": thread_busy_ns,
        }
        self._frozen = {name: np.array(values, np.int64) for name, values in counters.items()}

    def result(self, seconds: float, arrived: int) -> SimResult:
        names = tuple(operator.name for operator in self.graph.operators)
        sources = sorted(self.graph.arrivals)
        return SimResult(
            seconds=seconds,
            born_ns={names[end]: np.array(born, np.int64) for end, born in self._born.items()},
            latency_ns={names[end]: np.array(taken, np.int64) for end, taken in self._latency.items()},
            names=names,
            arrived=arrived,
            read=int(self._frozen["processed"][sources].sum()),
            overheads=self.overheads,
            rebinds=tuple(self.rebinds),
            **self._frozen,
        )
