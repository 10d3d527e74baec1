"""The run's dictionary of strings: every distinct string once, known to kernels by an int32 code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class StringPool:
    """Strings ↔ codes, for one run. Codes are given in order of first sight and never change.

    Codes must never reach a result: two runs may number the same strings differently.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._strings: list[str] = []
        self._lock = Lock()
        # UTF-8 of all strings, one after the other: string ``c`` is bytes [offsets[c], offsets[c + 1]).
        self._bytes: NDArray[np.uint8] = np.zeros(64, np.uint8)
        self._offsets: NDArray[np.int64] = np.zeros(16, np.int64)
        self._tabulated = 0  # strings whose bytes are in the two arrays

    def __len__(self) -> int:
        return len(self._strings)

    def code(self, text: str) -> int:
        """The code of one string; new strings are added."""
        code = self._codes.get(text)
        if code is None:
            with self._lock:
                code = self._codes.get(text)
                if code is None:
                    code = len(self._strings)
                    self._strings.append(text)
                    self._codes[text] = code  # last: whoever finds the code must find its string
        return code

    def text(self, code: int) -> str:
        return self._strings[code]

    def codes(self, texts: Iterable[str | None]) -> NDArray[np.int32]:
        """Codes of many strings; a null gets code 0, which its mask hides."""
        return np.fromiter((0 if text is None else self.code(text) for text in texts), np.int32)

    def encode(self, array: Any) -> NDArray[np.int32]:
        """Codes of an Arrow string array (plain or dictionary); work per distinct value, not per row."""
        if pa.types.is_dictionary(array.type):
            dictionary = array
        else:
            dictionary = array.dictionary_encode()
        mapping = self.codes(dictionary.dictionary.to_pylist())
        if len(mapping) == 0:
            return np.zeros(len(array), np.int32)
        indices: NDArray[np.int32] = dictionary.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return mapping[indices]

    def decode(self, codes: NDArray[np.int32], nulls: NDArray[np.bool_] | None = None) -> Any:
        """An Arrow string array of these codes."""
        count = len(self._strings)
        data, offsets = self.byte_tables()
        starts: Any = offsets
        texts: Any = data
        words: Any = pa.LargeStringArray.from_buffers(count, pa.py_buffer(starts), pa.py_buffer(texts))
        return words.take(pa.array(codes, mask=nulls)).cast(pa.string())

    def byte_tables(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The UTF-8 of all strings and the offsets: string ``c`` is ``bytes[offsets[c]:offsets[c + 1]]``.

        Valid for every code given out before the call; arrays handed out earlier stay as they were.
        """
        if self._tabulated < len(self._strings):
            with self._lock:
                self._tabulate()
        return self._bytes, self._offsets

    def _tabulate(self) -> None:
        size, first = len(self._strings), self._tabulated
        encoded = [text.encode("utf-8", "surrogatepass") for text in self._strings[first:size]]
        start = int(self._offsets[first])
        ends = start + np.cumsum([len(data) for data in encoded], dtype=np.int64)
        used = int(ends[-1]) if encoded else start
        self._offsets = _with_room(self._offsets, size + 1)
        self._bytes = _with_room(self._bytes, used)
        self._offsets[first + 1 : size + 1] = ends
        self._bytes[start:used] = np.frombuffer(b"".join(encoded), np.uint8)
        self._tabulated = size


def _with_room(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array itself, or a copy at least twice as large."""
    if size <= len(array):
        return array
    grown = np.zeros(max(size, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown


class StringTable:
    """A function of strings, tabulated by code, so that kernels look it up: ``array()[code]``.

    Grows with the pool; ``array`` must be fetched anew before each kernel call.
    """

    __slots__ = ("_array", "_function", "_known", "_pool")

    def __init__(self, pool: StringPool, function: Callable[[str], Any], dtype: np.dtype[Any]) -> None:
        self._pool = pool
        self._function = function
        self._array: NDArray[Any] = np.zeros(16, dtype)
        self._known = 0

    def array(self) -> NDArray[Any]:
        """The table, valid for every code given out before the call."""
        known = self._known
        size = len(self._pool)
        while known < size:  # the function may add strings itself (``lower`` does)
            if size > len(self._array):
                grown = np.zeros(max(size, 2 * len(self._array)), self._array.dtype)
                grown[:known] = self._array[:known]
                self._array = grown
            for code in range(known, size):
                self._array[code] = self._function(self._pool.text(code))
            known = size
            size = len(self._pool)
        self._known = known
        return self._array
