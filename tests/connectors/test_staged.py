"""Rows that wait until their batch counts: sent once, whatever dies between any two steps."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.connectors.staged import StagedBatches
from penstock.connectors.writer import Resumed
from penstock.query.errors import RunError


class Died(BaseException):
    """The process is gone."""


class Target:
    """What outlives a run: rows with the number of the batch that was given last."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.last: dict[str, int] = {}
        self.dies_after_send = False


class Batches(StagedBatches):
    def __init__(self, target: Target, resumed: Resumed | None, folder: Path) -> None:
        super().__init__("test", "the target", resumed)
        self._to = target
        self._known_as = ""
        self.stage_in(str(folder))

    def take_over(self, name: str) -> int:
        self._known_as = name
        return self._to.last.get(name, -1)

    def send(self, batch_id: int, rows: pa.Table) -> None:
        self._to.rows += rows.column("n").to_pylist()
        self._to.last[self._known_as] = batch_id
        if self._to.dies_after_send:
            raise Died


def table(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def test_rows_are_there_when_their_batch_counts_and_not_before(tmp_path: Path) -> None:
    target = Target()
    writer = Batches(target, None, tmp_path)
    writer.begin()
    writer.write_batch(3, table(1))
    writer.write_batch(3, table(2, 3))
    assert target.rows == []
    writer.counted(3)
    assert target.rows == [2, 3]
    writer.counted(7)
    assert target.rows == [2, 3]
    assert [path.name for path in tmp_path.iterdir()] == ["name"]


@pytest.mark.parametrize(("step", "batch"), list(product(["written", "committed", "sent"], range(3))))
def test_a_run_that_dies_anywhere_is_gone_on_with_exactly_once(step: str, batch: int, tmp_path: Path) -> None:
    target, committed = Target(), 0
    writer = Batches(target, None, tmp_path)
    writer.begin()
    for number in range(3):
        writer.write_batch(number, table(10 * number, 10 * number + 1))
        if (step, number) == ("written", batch):
            break  # the manifest does not have it, and the next run cuts other batches
        committed = number + 1
        if (step, number) == ("committed", batch):
            break
        target.dies_after_send = (step, number) == ("sent", batch)
        try:
            writer.counted(number)
        except Died:
            break
    target.dies_after_send = False
    writer = Batches(target, Resumed(committed, writer.delivered()), tmp_path)
    writer.begin()
    rest = [10 * number + digit for number in range(committed, 3) for digit in range(2)]
    if rest:
        writer.write_batch(committed, table(*rest))
        writer.counted(committed)
    assert target.rows == [0, 1, 10, 11, 20, 21]


def test_a_checkpoint_that_was_rolled_back_is_refused(tmp_path: Path) -> None:
    target = Target()
    writer = Batches(target, None, tmp_path)
    writer.begin()
    writer.write_batch(5, table(1))
    writer.counted(5)
    with pytest.raises(
        RunError, match="has batch 5 of this sink already, and the checkpoint goes on with batch 4"
    ):
        Batches(target, Resumed(4, None), tmp_path).begin()


def test_without_a_place_to_wait_it_is_refused() -> None:
    class Placeless(Batches):
        def __init__(self) -> None:
            StagedBatches.__init__(self, "test", "the target", None)

    with pytest.raises(RunError, match="no place where rows for the target could wait until they count"):
        Placeless().begin()
