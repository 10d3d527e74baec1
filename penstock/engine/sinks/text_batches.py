"""One file of text that takes every batch once: its length after each batch is kept beside it.

A batch is appended, then the new length is noted, and only then does the batch count. If the run fails in
between, the batch comes again, and the file is first cut back to where the batch began.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from penstock.engine.sinks.base import BatchWriter
from penstock.engine.sinks.durable import LogFile, replace_file
from penstock.engine.sinks.paths import prepare_file
from penstock.engine.sinks.text import TextFormat
from penstock.query.errors import RunError

EXACTLY_ONCE = (
    "exactly once: the file's length after every batch is kept beside it, and a batch that comes again is "
    "cut off first; while a run is down, the file may end in rows of the batch in which it failed"
)

_FORMAT = 1
_KEPT = 32  # batches whose lengths are remembered: as many can a checkpoint be set back by hand
_BEGINNING = -1  # stands for all batches before the first


class TextFileBatches(BatchWriter):
    """Appends batches to a file, each with two writes to disk: the lines, and the note of the length."""

    side_by_side = True

    def __init__(self, path: Path, text: TextFormat, overwrite: bool, resumed_from: int | None) -> None:
        self._path, self._text = path, text
        # The length of the file after each of the newest batches; always holds one before the next batch.
        self._lengths = {_BEGINNING: 0}
        goes_on = resumed_from is not None and self._find(resumed_from)
        if not goes_on:
            prepare_file(path, overwrite)
        self._file = LogFile(path)
        # First the note, then the cut: a file that is longer than its note says is cut again, a shorter one
        # would be an error. The header comes with the first batch: until then the file is empty, so that a
        # run which fails before it has a checkpoint can be started anew.
        self._note()
        self._file.cut(max(self._lengths.values()))

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        before = {batch: length for batch, length in self._lengths.items() if batch < batch_id}
        if not before:
            raise self._too_far_back(batch_id)
        start = before[max(before)]
        self._file.cut(start)
        lines = [self._text.lines(batch) for batch in rows.to_batches()]
        self._file.append(b"".join([b"" if start else self._text.header, *lines]))
        self._lengths = dict(sorted({**before, batch_id: self._file.length}.items())[-_KEPT:])
        self._note()

    def close(self, complete: bool) -> None:
        if complete and self._file.length == 0:
            self._file.append(self._text.header)
        self._file.close()

    @property
    def _notes(self) -> Path:
        return self._path.with_name(f".{self._path.name}.penstock.json")

    def _note(self) -> None:
        lengths = {str(batch): length for batch, length in self._lengths.items()}
        text = json.dumps({"format": _FORMAT, "lengths": lengths})
        replace_file(self._notes, lambda path: path.write_text(text))

    def _find(self, resumed_from: int) -> bool:
        """Takes the lengths of all batches before that one; False if the file is not one to go on with."""
        present = self._path.stat().st_size if self._path.is_file() else 0
        lengths = self._noted()
        if lengths is None or (resumed_from == 0 and max(lengths) > 0):
            return False
        self._lengths = {batch: length for batch, length in lengths.items() if batch < resumed_from}
        if not self._lengths:
            raise self._too_far_back(resumed_from)
        last = max(self._lengths)
        if present < self._lengths[last]:
            raise RunError(
                f"cannot go on with '{self._path}': it has {present:,} bytes, fewer than the "
                f"{self._lengths[last]:,} that batch {last} left; bring it back, or remove "
                f"'{self._notes}' to start a new file"
            )
        return True

    def _noted(self) -> dict[int, int] | None:
        try:
            noted = json.loads(self._notes.read_bytes())
            if noted["format"] != _FORMAT:
                raise ValueError(f"format {noted['format']!r}")
            return {int(batch): int(length) for batch, length in noted["lengths"].items()}
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise RunError(
                f"cannot go on with '{self._path}': '{self._notes}', which says how far it was written, "
                f"cannot be read ({error}); remove both to start a new file"
            ) from None

    def _too_far_back(self, batch_id: int) -> RunError:
        return RunError(
            f"cannot write batch {batch_id} into '{self._path}': it has grown since, and how long it was is "
            f"known from batch {min(self._lengths, default=batch_id)} on only; write to another path"
        )
