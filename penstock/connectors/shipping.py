"""Large parts of a source, kept in a file that every process opens for itself when it needs them."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast
from uuid import uuid4

import pyarrow as pa

from penstock.memory.arrow import ArrowArray
from penstock.query.errors import RunError
from penstock.state.files import Folder

#: What is smaller travels with the source itself.
LARGE_BYTES = 1 << 20
# Sources of which one process keeps the parts open.
_OPEN = 16

T = TypeVar("T")


@dataclass(frozen=True)
class MappedColumns:
    """Columns in an Arrow file, mapped into memory by whoever reads them."""

    folder: str
    name: str

    @classmethod
    def written(cls, columns: Mapping[str, ArrowArray], folder: str) -> MappedColumns:
        """Writes the columns into the folder."""
        table = pa.table(dict(columns))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(list(columns.values()), schema=table.schema))
        return cls(os.fspath(folder), _write(folder, "arrow", sink.getvalue()))

    @property
    def arrays(self) -> dict[str, ArrowArray]:
        return _mapped(self.folder, self.name)


@dataclass(frozen=True)
class StoredObject(Generic[T]):
    """A pickled object, in a file if it is large. A process that needs it loads it, once.

    To unpickle is to run what is there: a file is only opened if it is byte for byte what was written, which
    its digest says. That travels with the source itself.
    """

    folder: str
    name: str
    data: bytes | None
    digest: str = ""  # of a file

    @classmethod
    def of(cls, value: T, folder: str) -> StoredObject[T] | None:
        """Pickles the object; None if that cannot stand for it.

        Functions of a script cannot be found by their names in another process: they travel by value.
        """
        try:
            data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError):
            return None
        if b"__main__" in data:
            return None
        if len(data) < LARGE_BYTES:
            return cls("", "", data)
        return cls(os.fspath(folder), _write(folder, "pickle", data), None, _digest(data))

    @property
    def value(self) -> T:
        return cast(T, _loaded(self))


def _write(folder: str, ending: str, data: Any) -> str:
    name = f"source-{uuid4().hex}.{ending}"
    Folder(folder).write(name, data)
    return name


@lru_cache(_OPEN)
def _mapped(folder: str, file: str) -> dict[str, ArrowArray]:
    table = pa.ipc.open_file(_read(folder, file)).read_all()
    return {name: table.column(name).chunk(0) for name in table.column_names}  # written as one


@lru_cache(_OPEN)
def _loaded(stored: StoredObject[Any]) -> Any:
    if stored.data is not None:
        return pickle.loads(stored.data)
    data = bytes(_read(stored.folder, stored.name))  # a copy: what is checked cannot change any more
    if _digest(data) != stored.digest:
        raise RunError(
            f"a source's data was changed: '{stored.name}' in '{stored.folder}' is not what was written; "
            "keep the checkpoint where only you can write, and start the run again"
        )
    return pickle.loads(data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(folder: str, name: str) -> Any:
    try:
        return Folder(folder).read(name)
    except OSError as error:
        raise RunError(
            f"cannot read a source's data: {error}; the folder '{folder}' must be one that every worker sees"
        ) from None
