"""Rows that go out only when their batch counts: kept beside the checkpoint, sent once, each batch whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa

from penstock.connectors.writer import BatchWriter, Resumed
from penstock.query.errors import RunError
from penstock.state.files import Folder

_NAME = "name"
_ENDING = ".arrow"


class StagedBatches(BatchWriter):
    """Batches for a target that takes a batch and its number in one transaction.

    A batch's rows wait in a file until the manifest has the batch, since until then it may come again with
    other rows. Then they are sent. After a crash the target says which batch it got last, and what it lacks
    is sent from the files.

    Invariant: the files are those of batches that have not counted, or that the target may lack.
    """

    def __init__(self, kind: str, target: str, resumed: Resumed | None) -> None:
        self._kind, self._target = kind, target
        self._first = 0 if resumed is None else resumed.batch  # that has not counted
        self._folder: Folder | None = None
        self._waiting: dict[int, pa.Table] = {}  # by batch, what its file has

    @abstractmethod
    def take_over(self, name: str) -> int:
        """The number of the batch that the target got last under this name, -1 for none. Whoever else sends
        under this name fails from now on."""

    @abstractmethod
    def send(self, batch_id: int, rows: pa.Table) -> None:
        """Gives the target rows and number, both or neither."""

    def stage_in(self, folder: str) -> None:
        self._folder = Folder(folder)

    def begin(self) -> None:
        folder = self._stage()
        if not folder.exists(_NAME):
            folder.write(_NAME, uuid4().hex.encode())
        last = self.take_over(bytes(folder.read(_NAME)).decode())
        if last >= self._first:
            raise RunError(
                f"{self._target} has batch {last} of this sink already, and the checkpoint goes on with "
                f"batch {self._first}: was it rolled back? Start from an empty checkpoint, and remove there "
                "what is not to come twice"
            )
        for batch in self._staged(folder):
            if batch >= self._first:
                folder.remove(_file(batch))
            else:
                if batch > last:
                    with pa.ipc.open_file(pa.BufferReader(folder.read(_file(batch)))) as file:
                        self.send(batch, file.read_all())
                folder.remove(_file(batch))

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema) as file:
            file.write_table(rows)
        self._stage().write(_file(batch_id), sink.getvalue())
        self._waiting[batch_id] = rows

    def counted(self, batch_id: int) -> None:
        for batch in sorted(batch for batch in self._waiting if batch <= batch_id):
            self.send(batch, self._waiting[batch])
            self._stage().remove(_file(batch))
            del self._waiting[batch]

    def delivered(self) -> Mapping[str, Any]:
        return {"kind": self._kind}

    def _stage(self) -> Folder:
        if self._folder is None:
            raise RunError(
                f"this run has no place where rows for {self._target} could wait until they count; give "
                "at_once=True, which promises at least once"
            )
        return self._folder

    @staticmethod
    def _staged(folder: Folder) -> Iterable[int]:
        names = (name.removesuffix(_ENDING) for name in folder.names() if name.endswith(_ENDING))
        return sorted(int(name) for name in names if name.isdecimal())


def _file(batch: int) -> str:
    return f"{batch:012d}{_ENDING}"
