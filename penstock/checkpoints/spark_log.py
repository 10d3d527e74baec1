"""Spark's logs of a run, made anew from the manifest at each start: the manifest alone decides what counted.

CHECKPOINT/spark/offsets/N     where each source stands after batch N, written when it is planned
CHECKPOINT/spark/commits/N     written when it is done
CHECKPOINT/spark/sources/I/…   what a source of Spark's writes down itself, such as the files that it found

Spark syncs none of it. The manifest has the texts of what the next batch is planned by. What sources write
down cannot be made anew: it is synced before a manifest relies on it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

from penstock.checkpoints.positions import Progress
from penstock.checkpoints.source_log import SourceLog, planned_entries
from penstock.state.errors import StateError
from penstock.state.files import Folder, sync
from penstock.state.manifest import Manifest

_OFFSETS, _COMMITS, _SOURCES = "offsets", "commits", "sources"
_METADATA = "metadata"
_NAME = re.compile(rf"({_OFFSETS}|{_COMMITS})/(\d+)")


def planned_as_batches(manifest: Manifest, sources: Sequence[str]) -> Manifest:
    """A manifest that a node has made, with the logs that Spark would have by then; any other as it is.

    ``sources`` in the order in which Spark is given them: all are Penstock's own, of which Spark knows a list
    of positions.
    """
    batches = manifest.batches
    if manifest.logs or not batches:
        return manifest
    known = Progress.from_json(manifest.progress).sources
    lines = [
        json.dumps({"p": [known[source][number].position for number in range(len(known[source]))]})
        for source in sources
    ]
    planned = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}
    text = "\n".join(["v1", json.dumps(planned), *lines])
    # Spark also asks where the last batch began: it is as if nothing had been read in it.
    logs = {f"{_OFFSETS}/{number}": text for number in range(max(0, batches - 2), batches)}
    logs[f"{_COMMITS}/{batches - 1}"] = 'v1\n{"nextBatchWatermarkMs":0}'
    return replace(manifest, logs=logs)


class SparkLog:
    """The log in ``root``, a folder that Spark and pyarrow both can write."""

    def __init__(self, root: str) -> None:
        self._root = Folder(root)
        self._offsets = self._root.inside(_OFFSETS)
        self._sources = self._root.inside(_SOURCES)
        self._planned = (-1, "")  # the batch whose offsets were read last, and their text
        self._synced: dict[str, set[str]] = {}  # by folder of a source, the names that are on disk

    # -- a batch ---------------------------------------------------------------------------------------------

    def reached_ms(self, batch_id: int) -> int:
        """How far event time had come, as Spark knew when it planned the batch."""
        return int(json.loads(self._text(batch_id).splitlines()[1]).get("batchWatermarkMs", 0))

    def counted(self, batch_id: int, before: Mapping[str, str], reached_ms: int) -> dict[str, str]:
        """What a manifest says of the log after a batch, given what the one before it said; what sources
        have written down for it is on disk then."""
        self._sync_sources()
        logs = {
            f"{_OFFSETS}/{batch_id}": self._text(batch_id),
            f"{_COMMITS}/{batch_id}": f'v1\n{{"nextBatchWatermarkMs":{reached_ms}}}',
        }
        # Some sources are asked once more for the last batch, which began where the one before it ended.
        last = f"{_OFFSETS}/{batch_id - 1}"
        return logs | ({last: before[last]} if last in before else {})

    def _text(self, batch_id: int) -> str:
        if self._planned[0] != batch_id:
            self._planned = (batch_id, self._offsets.read(str(batch_id)).to_pybytes().decode())
        return self._planned[1]

    def _sync_sources(self) -> None:
        if not self._root.is_local:
            return
        with suppress(FileNotFoundError):  # most apps have no such sources
            for folder in os.listdir(self._sources.path):
                path = f"{self._sources.path}/{folder}"
                if folder not in self._synced:
                    for above in (self._sources.path, self._root.path, os.path.dirname(self._root.path)):
                        sync(above)
                names = {name for name in os.listdir(path) if not name.endswith(".tmp")}
                new = names - self._synced.get(folder, set())
                for name in new:
                    sync(f"{path}/{name}")
                if new:
                    sync(path)
                self._synced[folder] = names

    # -- a start ---------------------------------------------------------------------------------------------

    def check(self, manifest: Manifest | None) -> None:
        """Raises unless the run can go on from a version, None if there is none. Changes nothing."""
        batches = 0 if manifest is None else manifest.batches
        # A batch is in the commit log after its manifest was, which is synced.
        done = max(
            (int(name) for name in self._root.inside(_COMMITS).names() if name.isdecimal()), default=-1
        )
        if done >= batches:
            raise StateError(
                "the checkpoint is not whole",
                f"its state is made of {batches} batches, Spark's log in '{self._root.path}' has come to "
                f"batch {done}",
                "manifests of the state are gone: restore all from one copy, go on from what is left with "
                "'penstock checkpoint rollback', or start from an empty checkpoint",
            )
        if manifest is not None:
            self.check_sources(manifest)

    def check_sources(self, manifest: Manifest) -> None:
        """Raises unless it is known where Spark's sources stood, and what they have written down is whole."""
        batches = manifest.batches
        if not batches:
            return
        offsets = manifest.logs.get(f"{_OFFSETS}/{batches - 1}")
        if offsets is None or not all(map(_NAME.fullmatch, manifest.logs)):
            raise StateError(
                "the checkpoint is not whole",
                f"version {manifest.version} does not say where Spark stood after batch {batches - 1}",
                "it was not made by a run on Spark: start from an empty checkpoint",
            )
        for number, last in planned_entries(offsets):
            self._source(number).check(last)

    def renew(self, manifest: Manifest) -> None:
        """Makes the log say what the manifest says: a batch that it does not know is planned anew."""
        self.clear()
        self._planned, self._synced = (-1, ""), {}  # a run may begin its stream again
        offsets = manifest.logs.get(f"{_OFFSETS}/{manifest.batches - 1}")
        if offsets is None:
            for number in self._source_numbers():
                self._source(number).forget()
        else:
            for number, last in planned_entries(offsets):
                self._source(number).cut(last)
        # No two queries of a session may have one id, and nothing depends on which it is.
        self._root.write_fleeting(_METADATA, [json.dumps({"id": str(uuid4())}).encode()])
        for name, text in manifest.logs.items():
            folder, _, file = name.partition("/")
            self._root.inside(folder).write_fleeting(file, [text.encode()])

    def clear(self) -> None:
        """Removes all that can be made anew."""
        for folder in (self._root.inside(_OFFSETS), self._root.inside(_COMMITS)):
            for name in folder.names():
                folder.remove(name)
        for name in (_METADATA, f".{_METADATA}.crc"):
            self._root.remove(name)

    def _source(self, number: int) -> SourceLog:
        return SourceLog(self._sources.inside(str(number)))

    def _source_numbers(self) -> list[int]:
        folders = {name.partition("/")[0] for name in self._sources.names_below()}
        return sorted(int(name) for name in folders if name.isdecimal())
