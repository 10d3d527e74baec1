"""Cores shared by threads: exact times and exact counts."""

from __future__ import annotations

from lab.sim.clock import SimulatedClock
from lab.sim.machine import Lock, Machine, Processor, Serial
from lab.sim.results import Overheads


def finishing_times(machine: Machine, works_ns: list[int]) -> tuple[list[int], Overheads]:
    """All threads come at time 0, each with one burst."""
    clock, overheads = SimulatedClock(), Overheads()
    processor = Processor(clock, machine, len(works_ns), overheads)
    times = [0] * len(works_ns)

    def note(thread: int) -> None:
        times[thread] = clock.now_ns

    for thread, work_ns in enumerate(works_ns):
        processor.run(thread, work_ns, note, thread)
    clock.run(10**9)
    return times, overheads


def test_with_a_core_each_nobody_waits() -> None:
    times, overheads = finishing_times(Machine(cores=2, context_switch_ns=5), [100, 30])
    assert times == [105, 35]
    assert (overheads.context_switches, overheads.context_switch_ns) == (2, 10)


def test_threads_share_a_core_in_slices() -> None:
    # a: 0-10, b: 10-20, a: 20-30, b: 30-35 (done), a: 35-40 (done)
    times, overheads = finishing_times(Machine(cores=1, slice_ns=10), [25, 15])
    assert times == [40, 35]
    assert overheads.context_switches == 5


def test_every_switch_takes_its_time() -> None:
    # a: 2-12, b: 14-24, a: 26-36, b: 38-43, a: 45-50
    times, overheads = finishing_times(Machine(cores=1, slice_ns=10, context_switch_ns=2), [25, 15])
    assert times == [50, 43]
    assert overheads.context_switch_ns == 10


def test_a_thread_alone_on_its_core_is_not_switched_at_the_end_of_its_slice() -> None:
    times, overheads = finishing_times(Machine(cores=2, slice_ns=10, context_switch_ns=1), [100, 5, 5])
    assert times == [101, 6, 12]
    assert overheads.context_switches == 3


def test_a_thread_with_more_to_do_goes_on_without_a_switch_until_its_slice_ends() -> None:
    clock, overheads, ended = SimulatedClock(), Overheads(), []
    processor = Processor(clock, Machine(cores=1, slice_ns=10, context_switch_ns=1), 2, overheads)

    def again(left: int) -> None:
        ended.append(clock.now_ns)
        if left:
            processor.run(0, 4, again, left - 1)

    processor.run(0, 4, again, 3)
    processor.run(1, 7, lambda: ended.append(-clock.now_ns))
    clock.run(100)
    # 0: 1-5, 5-9, 9-11 of the third burst, then the slice is over; 1: 12-19; 0: 20-22, 22-26
    assert ended == [5, 9, -19, 22, 26]
    assert overheads.context_switches == 3


def test_what_is_serial_is_used_by_one_at_a_time() -> None:
    overheads = Overheads()
    serial = Serial(Machine(handover_ns=3), overheads)
    assert serial.use(100, 10) == 10  # nobody has it
    assert serial.use(100, 10) == 23  # waits for 10, is handed it, then 10
    assert serial.use(123, 10) == 10  # just free
    assert serial.use(200, 0) == 0  # does not need it
    assert (overheads.serial_ns, overheads.serial_wait_ns) == (33, 10)


def test_the_fixed_part_of_a_turn_is_serial_where_it_holds_the_interpreter() -> None:
    serial = Serial(Machine(holds_interpreter=True), Overheads())
    assert serial.turn_ns(0, cost_ns=100, fixed_ns=20.0) == 100
    assert serial.turn_ns(0, cost_ns=100, fixed_ns=20.0) == 120
    assert Serial(Machine(), Overheads()).turn_ns(0, cost_ns=100, fixed_ns=20.0) == 100


def test_of_turns_taken_together_only_the_first_pays_for_the_taking() -> None:
    serial = Serial(Machine(serial_ns=7), Overheads())
    assert serial.turn_ns(0, cost_ns=100, fixed_ns=20.0) == 107
    assert serial.turn_ns(107, cost_ns=100, fixed_ns=20.0, decides=False) == 100


def test_a_lock_is_given_to_those_who_wait_in_the_order_they_came() -> None:
    lock, has = Lock(), []
    for name in "abc":
        lock.take(has.append, name)
    assert has == ["a"]
    lock.give_up()
    lock.take(has.append, "d")
    assert has == ["a", "b"]
    for _ in range(3):
        lock.give_up()
    assert has == ["a", "b", "c", "d"]
    lock.take(has.append, "e")
    assert has == ["a", "b", "c", "d", "e"]
