"""A folder on any file system that pyarrow can write, in which files appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from penstock.state.errors import StateError

_TEMPORARY = "tmp-"

#: Writes a file of a folder if there is none of that name, in one step whatever others do; whether it did.
Create = Callable[["Folder", str, Any], bool]


class Folder:
    """A folder, by a local path or a URI that pyarrow knows (``s3://``, ``hdfs://``, ``gs://``), or by its
    path in a given file system.

    Local files are on disk, and so are their names, when ``write`` returns. Elsewhere that is the file
    system's promise, and ``create`` is what creates a file once only: pyarrow has no such call.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        files: fs.FileSystem | None = None,
        create: Create | None = None,
    ) -> None:
        self._create = create
        text = local_path(root)
        self._files: fs.FileSystem
        if files is not None:
            self._files, self.path = files, text
        elif "://" in text:
            self._files, self.path = fs.FileSystem.from_uri(text)
        else:
            self._files, self.path = fs.LocalFileSystem(), os.path.abspath(text)
        self._local = isinstance(self._files, fs.LocalFileSystem)

    def inside(self, name: str) -> Folder:
        """A folder in this one; it need not exist."""
        return Folder(f"{self.path.rstrip('/')}/{name}", self._files, self._create)

    def write(self, name: str, data: Any) -> None:
        """Writes a file under a temporary name and renames it; one of that name is replaced. The folder is
        created, if it does not exist.
        """
        temporary, final = self._at(f"{_TEMPORARY}{uuid4().hex}-{name}"), self._at(name)
        if self._local:
            self._write_temporary(temporary, data)
            os.replace(temporary, final)
            sync(self.path)
            return
        self._files.create_dir(self.path, recursive=True)
        with self._files.open_output_stream(temporary) as stream:
            stream.write(data)
        if self.exists(name):  # not every file system renames over a file
            self._files.delete_file(final)
        self._files.move(temporary, final)

    def write_fleeting(self, name: str, parts: Iterable[Any]) -> None:
        """Writes parts into a new file that nobody needs after a crash: it is not synced, and appears as it
        grows. The folder is created, if it does not exist.
        """
        if not self._local:
            self._files.create_dir(self.path, recursive=True)
            with self._files.open_output_stream(self._at(name)) as stream:
                for part in parts:
                    stream.write(part)
            return
        create_folder(self.path)
        with open(self._at(name), "xb") as file:
            for part in parts:
                file.write(part)

    def create(self, name: str, data: Any) -> bool:
        """Writes a file if there is none of that name; whether it did. Of any number of writers one does, and
        nobody ever sees a part of the file.
        """
        if not self._local:
            if self._create is None:
                raise cannot_fence(self.path)
            return self._create(self, name, data)
        temporary, final = self._at(f"{_TEMPORARY}{uuid4().hex}-{name}"), self._at(name)
        self._write_temporary(temporary, data)
        try:
            os.link(temporary, final)
        except FileExistsError:
            # On a network's file system the answer to a call that did it may get lost, and the call repeated.
            if not os.path.samefile(temporary, final):
                return False
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        sync(self.path)
        return True

    def read(self, name: str) -> Any:
        """The whole file as a buffer; a local one is mapped, not copied. Raises ``FileNotFoundError``."""
        if self._local:
            if os.path.getsize(self._at(name)) == 0:
                return pa.py_buffer(b"")  # nothing cannot be mapped
            with pa.memory_map(self._at(name)) as mapped:
                return mapped.read_buffer()
        with self._files.open_input_file(self._at(name)) as stream:
            return stream.read_buffer()

    def exists(self, name: str) -> bool:
        found: Any = self._files.get_file_info(self._at(name))
        return bool(found.type == fs.FileType.File)

    def names(self) -> list[str]:
        """All files in it, temporary ones too; none if it does not exist."""
        selected = fs.FileSelector(self.path, allow_not_found=True)
        found: Any = self._files.get_file_info(selected)
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def names_below(self) -> list[str]:
        """All files in it and in the folders below it, by their paths from here; no temporary ones."""
        selected = fs.FileSelector(self.path, allow_not_found=True, recursive=True)
        found: Any = self._files.get_file_info(selected)
        start = len(self.path.rstrip("/")) + 1
        files = (info for info in found if info.type == fs.FileType.File)
        return sorted(info.path[start:] for info in files if not is_temporary(info.base_name))

    def remove_temporary(self) -> None:
        """Removes what writers left that were killed. Only for who knows that nobody writes here."""
        for name in self.names():
            if is_temporary(name):
                self.remove(name)

    @property
    def is_local(self) -> bool:
        """Whether it is in this machine's file system."""
        return self._local

    def remove(self, name: str) -> None:
        """Removes a file; one that is gone already is no mistake."""
        try:
            self._files.delete_file(self._at(name))
        except FileNotFoundError:
            return

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _write_temporary(self, path: str, data: Any) -> None:
        try:
            _write_through(path, data)
        except FileNotFoundError:
            create_folder(self.path)
            _write_through(path, data)


def unfenced(folder: Folder, name: str, data: Any) -> bool:
    """Creates a file where that is no single step: of two who do it at the same time, both may believe that
    they did."""
    if folder.exists(name):
        return False
    folder.write(name, data)
    return True


def cannot_fence(where: str) -> StateError:
    return StateError(
        "this checkpoint cannot keep two runs apart",
        f"where '{where}' is, a file cannot be created on condition that there is none yet, so two runs "
        "could both go on and destroy each other's output",
        "take a local folder, s3://, gs:// or hdfs://, or, if you see to it that there is one run at a time, "
        "write ps.Spark(unfenced=True)",
    )


def _write_through(path: str, data: Any) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def local_path(root: str | os.PathLike[str]) -> str:
    """The path of a local folder that was given as an address; whatever else it is, as it was given.

    >>> local_path("file:///a%20b/c"), local_path("file:/a"), local_path("s3://bucket/a"), local_path("a")
    ('/a b/c', '/a', 's3://bucket/a', 'a')
    """
    text = os.fspath(root)
    if text.startswith("file:/"):
        return unquote(urlsplit(text).path)
    return text


def create_folder(path: str | os.PathLike[str]) -> None:
    """Creates a local folder and those above it that are missing; their names are on disk then."""
    missing = []
    folder = Path(path).absolute()
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync(path: str | os.PathLike[str]) -> None:
    """A file's content, or a folder's entries, on disk: without it a crash may forget a rename."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(path: str | os.PathLike[str]) -> None:
    """A local folder with all that is in it, and its name, on disk. What is not there is on disk too."""
    for folder, _, files in os.walk(path):
        for name in files:
            sync(os.path.join(folder, name))
        sync(folder)
    sync(Path(path).absolute().parent)


def final_name(name: str) -> str:
    """What a file will be called, or would have been, if it is a temporary one.

    >>> final_name("tmp-1f-7.json"), final_name("7.json")
    ('7.json', '7.json')
    """
    return name.split("-", 2)[2] if is_temporary(name) else name


def is_temporary(name: str) -> bool:
    return name.startswith(_TEMPORARY) and name.count("-") >= 2
