"""What queues, rebinds and barriers cost on this machine, for the simulation of 24 threads.

Timed is the code that the engine runs: the installations' own steps, by one thread that nobody disturbs, and
threads that wake each other. Contention of 24 threads cannot be measured on two cores: a shared queue and a
barrier cost at least this much there. So the report also shows what results would be with other costs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from lab.sim.calibration import measure_machine
from lab.sim.machine import Machine
from penstock.binding.non_blocking import NonBlocking
from penstock.binding.tasks import BlockTask, TaskQueue

_OPERATORS = 300
_THREADS = 2


@dataclass(frozen=True)
class ServerCosts:
    """In ns, as ``Machine`` has them."""

    context_switch_ns: int
    serial_ns: int
    barrier_ns: int
    rebind_ns: int

    def machine(self, assumed: Machine) -> Machine:
        """The same machine with these costs."""
        return replace(assumed, **asdict(self))


def measure_server(repetitions: int = 15) -> ServerCosts:
    """Measures in about a second; the fastest repetition counts, since what disturbs one slows it down."""
    return ServerCosts(
        context_switch_ns=_fastest(lambda: measure_machine(1).context_switch_ns, 5),
        serial_ns=_fastest(queue_ns, repetitions),
        barrier_ns=2 * _fastest(barrier_ns, repetitions),  # a rebinding has two
        rebind_ns=_fastest(rebind_ns, repetitions),
    )


def queue_ns(tasks: int = _OPERATORS) -> float:
    """One push and one pop on a priority queue that holds a frame's tasks."""
    queue = TaskQueue()
    for number in range(tasks):
        queue.put(BlockTask(number, number, 0, number % 7))
    later = [BlockTask(number, number, 1, 7 + number % 7) for number in range(tasks)]
    began_ns = time.perf_counter_ns()
    for task in later:
        queue.put(task)
        queue.take()
    return (time.perf_counter_ns() - began_ns) / tasks


def rebind_ns(operators: int = _OPERATORS) -> float:
    """One rebind: requested, taken from the queue and stored by the old owner."""
    installation = NonBlocking(range(operators), [0] * operators, _THREADS)
    began_ns = time.perf_counter_ns()
    installation.request((1,) * operators, 0)
    for _ in range(operators):
        installation.step(0, 0)
    spent_ns = time.perf_counter_ns() - began_ns
    assert installation.owners == [1] * operators
    return spent_ns / operators


def barrier_ns(crossings: int = 50) -> float:
    """One crossing of a barrier by two threads that do nothing else."""
    barrier = threading.Barrier(_THREADS)

    def cross() -> None:
        for _ in range(crossings):
            barrier.wait()

    other = threading.Thread(target=cross)
    other.start()
    began_ns = time.perf_counter_ns()
    cross()
    spent_ns = time.perf_counter_ns() - began_ns
    other.join()
    return spent_ns / crossings


def _fastest(measure: Callable[[], float], repetitions: int) -> int:
    return round(min(measure() for _ in range(repetitions)))
