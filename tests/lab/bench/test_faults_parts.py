"""The parts of the laboratory of faults: the comparison, the damage, the table, the hooks, one start."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lab.bench.faults import run as faults_run
from lab.bench.faults.clock import ShiftedClock
from lab.bench.faults.damage import Damage, damage, kinds_of_files
from lab.bench.faults.disk import SmallDisk
from lab.bench.faults.inputs import FORMATS, write_inputs
from lab.bench.faults.outputs import compared, counted, differences, written
from lab.bench.faults.run import AppRun, Ending, HungError, Role
from lab.bench.faults.second import at_once
from lab.bench.faults.table import Outcome, Table
from lab.bench.faults.world import World

ROWS = [{"k": 1, "x": None, "g": "Bä"}, {"k": 2, "x": 0.5, "g": "a"}, {"k": 2, "x": 0.5, "g": "a"}]


# -- the comparison ----------------------------------------------------------------------------------------


def write(output: Path, kind: str) -> None:
    """The rows as each sink leaves them."""
    lines = [json.dumps({name: value for name, value in row.items() if value is not None}) for row in ROWS]
    (output / "q").mkdir(parents=True)
    match kind:
        case "parquet":
            for number, rows in enumerate((ROWS[:2], ROWS[2:])):
                pq.write_table(pa.Table.from_pylist(rows), output / "q" / f"batch-{number}.parquet")
            (output / "q" / ".half.parquet.tmp").write_bytes(b"no Parquet")
        case "csv":
            (output / "q.csv").write_text("k,x,g\n1,,Bä\n2,0.5,a\n2,0.5,a\n")
        case "jsonl":
            (output / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        case "spark":
            (output / "q" / "000000").mkdir()
            (output / "q" / "000000" / "part-0.json").write_text("\n".join(lines))
        case _:
            (output / "q" / "000000-one.json").write_text("\n".join(map(json.dumps, ROWS)))


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "spark", "callback"])
def test_the_rows_of_every_sink_are_those_that_are_expected(kind: str, tmp_path: Path) -> None:
    write(tmp_path, kind)
    assert written(tmp_path, "q", kind) == counted(ROWS, kind)
    assert differences(tmp_path, {"q": counted(ROWS, kind)}, {"q": kind}) == []


def test_rows_that_are_missing_or_too_many_are_counted() -> None:
    found = compared("q", Counter(a=1, b=2), Counter(a=3, c=1), at_least_once=False)
    assert found is not None
    assert (found.missing, found.unexpected, found.rows) == (2, 3, 5)


def test_a_row_may_come_again_where_that_is_promised_but_no_other_may_come() -> None:
    assert compared("q", Counter(a=1), Counter(a=3), at_least_once=True) is None
    found = compared("q", Counter(a=1), Counter(a=1, c=1), at_least_once=True)
    assert found is not None
    assert found.unexpected == 1


def test_output_that_cannot_be_read_lacks_all_rows(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"k": 1}\n{"k"')
    (found,) = differences(tmp_path, {"q": Counter(a=3)}, {"q": "jsonl"})
    assert found.missing == 3


# -- damage ------------------------------------------------------------------------------------------------


def tree(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("what", list(Damage))
def test_damage_changes_what_it_says_and_nothing_else(what: Damage, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]
    for file in files:
        file.write_text(f"the content of {file.name}")
    before = tree(tmp_path)
    changed = damage(what, files[0], files, random.Random(1))
    after = tree(tmp_path)
    assert set(changed) == {path for path in before if before[path] != after.get(path)}
    assert len(changed) == (2 if what is Damage.SWAP else 1)


def test_damage_is_drawn_by_the_seed(tmp_path: Path) -> None:
    found = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        (folder / "a").write_bytes(bytes(range(200)))
        damage(Damage.BIT_FLIP, folder / "a", [], random.Random("seed"))
        found.append((folder / "a").read_bytes())
    assert found[0] == found[1] != bytes(range(200))


def test_files_alike_cannot_be_swapped(tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        file.write_text("alike")
    assert damage(Damage.SWAP, files[0], files, random.Random(1)) == []


def test_files_of_a_run_are_known_by_kind_and_the_users_own_are_left_alone(tmp_path: Path) -> None:
    names = {
        "checkpoint/state/manifests/7.json": "manifests",
        "checkpoint/state/data/v7.state": "state",
        "checkpoint/spark/offsets/.3.crc": "Spark's logs",
        "checkpoint/lock": "rest of the checkpoint",
        "out/counts/batch-1.parquet": "Parquet output",
        "out/first.csv": "CSV output",
        "out/best/000001/part-0.json": None,
        "input/cars/000.csv": "input that was read",
        "input/cars/023.csv": None,
    }
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = {
        str(path.relative_to(tmp_path)): kind
        for kind, paths in kinds_of_files(tmp_path).items()
        for path in paths
    }
    assert found == {name: kind for name, kind in names.items() if kind is not None}


# -- the table ---------------------------------------------------------------------------------------------


def test_the_table_has_a_line_a_fault_and_a_column_an_outcome() -> None:
    table = Table()
    for outcome in (Outcome.RECOVERED, Outcome.RECOVERED, Outcome.WRONG):
        table.add("kill", outcome)
    table.add("damage: state", Outcome.REFUSED)
    assert table.plain() == {"damage: state": {"refused": 1}, "kill": {"recovered": 2, "wrong": 1}}
    assert table.total(Outcome.WRONG) == 1
    assert table.total(Outcome.WRONG, of="damage") == 0
    assert [line.split(" | ")[0].strip() for line in table.text().splitlines()] == [
        "",
        "damage: state",
        "kill",
    ]


# -- the hooks ---------------------------------------------------------------------------------------------


def test_a_clock_jumps_in_the_processes_that_have_it(tmp_path: Path) -> None:
    clock = ShiftedClock(tmp_path)
    clock.shift(86_400 * 1_000)
    program = "import time, os; print(time.time() - os.stat('/proc/self').st_ctime)"
    told = subprocess.check_output([sys.executable, "-c", program], env=clock.environment(os.environ))
    assert abs(float(told) - 86_400 * 1_000) < 3_600


def test_a_full_disk_fails_writes_where_none_can_be_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    disk = SmallDisk(tmp_path / "disk", tmp_path / "notes")
    program = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('a')"

    def writes(folder: Path) -> str:
        command = [sys.executable, "-c", program, str(folder / "file")]
        environment = disk.environment(os.environ)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else done.stderr.splitlines()[-1]

    assert not disk.is_mounted
    disk.fill(0)
    assert "No space left on device" in writes(tmp_path / "disk")
    assert writes(tmp_path) == ""
    disk.free()
    assert writes(tmp_path / "disk") == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_small_disk_fills_up_and_goes_away_with_all_that_is_on_it(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "disk", tmp_path / "notes")
    if not disk.is_mounted:
        pytest.skip("nothing can be mounted here")
    try:
        disk.fill(0)
        with pytest.raises(OSError, match="No space left"):
            (tmp_path / "disk" / "file").write_bytes(bytes(100_000))
        disk.free()
        (tmp_path / "disk" / "file").write_bytes(bytes(100_000))
    finally:
        disk.remove()
    assert not list((tmp_path / "disk").iterdir())


# -- one start ---------------------------------------------------------------------------------------------


@dataclass
class Said:
    """In place of a plan: a program that says something and then waits for ever, or ends."""

    program: str

    def command(self) -> list[str]:
        return [sys.executable, "-u", "-c", f"import signal, sys\n{self.program}"]


def start(program: str, folder: Path) -> AppRun:
    return AppRun(Said(program), folder / "log", os.environ)  # type: ignore[arg-type]


def test_a_run_is_known_by_what_it_says(tmp_path: Path) -> None:
    run = start("print('batch 0'); print('batch 1'); print('finishing'); print('complete')", tmp_path)
    assert run.until_ended() is Ending.COMPLETE
    assert run.batches == [0, 1]


@pytest.mark.parametrize(
    ("program", "ending"),
    [
        ("print('penstock: so', file=sys.stderr); sys.exit(3)", Ending.REFUSED),
        ("raise KeyError('so')", Ending.BROKEN),
        ("print('stopped')", Ending.BROKEN),
        ("signal.raise_signal(signal.SIGKILL)", Ending.KILLED),
    ],
)
def test_a_run_that_is_not_complete_says_why(program: str, ending: Ending, tmp_path: Path) -> None:
    assert start(program, tmp_path).until_ended() is ending


def test_a_run_that_says_nothing_new_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults_run, "PATIENCE_S", 0.2)
    run = start("print('batch 0'); signal.signal(signal.SIGUSR1, lambda *_: None); signal.pause()", tmp_path)
    try:
        with pytest.raises(HungError, match="batch 0"):
            run.until_batches(2)
    finally:
        run.end()
    assert not run.lives


def test_a_killed_run_leaves_no_process(tmp_path: Path) -> None:
    run = start("print('batch 0'); signal.pause()", tmp_path)
    assert run.until_batches(1)
    assert run.kill(Role.DRIVER) == 1
    assert run.until_ended() is Ending.KILLED
    assert run.processes(Role.ALL) == []


# -- two runs at once --------------------------------------------------------------------------------------

_ONE_AT_A_TIME = """
import fcntl, os, time
lock, refused = open('{folder}/lock', 'w'), '{folder}/refused'
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open(refused, 'w').close()
    sys.exit(3)
while not os.path.exists(refused):
    time.sleep(0.01)
print('batch 0'); print('complete')
"""


class Twice(World):
    """Whose runs are programs of which one goes on, once another was refused."""

    def start(self, **changes: Any) -> AppRun:
        self.starts += 1
        folder = self.folder / str(self.starts)
        folder.mkdir()
        return start(_ONE_AT_A_TIME.format(folder=self.folder), folder)


def test_of_two_starts_at_once_the_one_that_goes_on_is_waited_for(tmp_path: Path) -> None:
    world = Twice(tmp_path / "round", random.Random(1), {}, 1.0)
    world.choose = random.Random(6)  # in a new checkpoint
    at_once(world)
    assert [fault.outcome for fault in world.faults] == [Outcome.REFUSED]
    assert (world.starts, world.second_starts_admitted) == (2, 0)


# -- a round -----------------------------------------------------------------------------------------------


def test_a_round_is_drawn_by_its_seed(tmp_path: Path) -> None:
    one, other = (World(tmp_path / name, random.Random("seed"), {}, 1.0) for name in ("one", "other"))
    assert (one.plan.batch_events, one.plan.cars_as) == (other.plan.batch_events, other.plan.cars_as)
    assert one.choose.random() == other.choose.random()


@pytest.mark.parametrize("cars_as", FORMATS)
def test_inputs_are_the_same_each_time(cars_as: str, tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_inputs(tmp_path / name, cars_as)
    one, other = (
        {path.relative_to(tmp_path / name): data for path, data in tree(tmp_path / name).items()}
        for name in ("one", "other")
    )
    assert one == other
    assert len(one) == 48
