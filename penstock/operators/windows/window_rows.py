"""The rows that windows emit: keys, bounds, results and Penstock's own columns, in an order of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.cache import Kernel, compile_kernel
from penstock.kernels.builder import HEADER, KernelBuilder, column_types
from penstock.memory.layout import ORDER, TIME, Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import Finished
from penstock.query.expr import col, hash_of
from penstock.state.keys import KeyWords, Words

Ints = NDArray[np.int64]

#: What ``xxhash64`` of nothing is: Spark's seed. All state of an operator without keys goes by it.
NO_KEY_HASH = 42


class WindowRows:
    """Makes rows of ``layout`` from keys as words, window bounds and results."""

    def __init__(self, layout: Layout, keys: KeyWords, strings: StringPool) -> None:
        self._layout = layout
        self._keys = keys
        self.hash = KeyHash(keys, strings)

    def order(self, words: Words, ends: Ints) -> tuple[Ints, NDArray[np.intp]]:
        """The keys' hashes, and the order in which to emit: by end, then by hash.

        Neither depends on how entries or strings happen to be numbered.
        """
        hashes = self.hash(words)
        return hashes, np.lexsort((hashes, ends))

    def columns(
        self, words: Words, starts: Ints, ends: Ints, hashes: Ints, results: Mapping[str, Finished]
    ) -> Columns:
        """Columns of the layout; ``results`` has every field that is neither a key nor a bound."""
        known: dict[str, Finished] = {
            "window_start": (starts, None),
            "window_end": (ends, None),
            TIME: (ends - 1, None),
            ORDER: (hashes, None),
        }
        decoded = iter(self._keys.decode(words))
        for field in self._keys.fields:
            known[field.name] = (next(decoded), next(decoded) if field.nullable else None)
        known.update(results)
        columns: list[NDArray[Any]] = []
        for field in self._layout.fields:
            data, nulls = known[field.name]
            columns.append(np.ascontiguousarray(data, field.dtype.numpy))
            if field.nullable:
                columns.append(np.zeros(len(data), np.bool_) if nulls is None else nulls)
        return tuple(columns)


class KeyHash:
    """Spark's ``xxhash64`` of keys that are given as words."""

    def __init__(self, keys: KeyWords, strings: StringPool) -> None:
        self._keys = keys
        self._kernel: Kernel | None = None
        if keys.fields:
            layout = Layout(keys.fields)
            builder = KernelBuilder(layout, strings)
            hashed = builder.emit(hash_of(*(col(field.name) for field in keys.fields)))
            lines = [
                "def hash_keys(inp, count, out, ints, floats, tables):",
                *(f"    {line}" for line in builder.preamble()),
                "    for k in range(count):",
                *(f"        {line}" for line in builder.lines),
                f"        out[k] = {hashed.value}",
            ]
            signature = types.void(
                column_types(layout.dtypes),
                types.int64,
                types.Array(types.int64, 1, "C"),
                *builder.parameters.types,
            )
            self._parameters = builder.parameters
            self._kernel = compile_kernel("hash_keys", HEADER + "\n".join(lines) + "\n", signature)

    def __call__(self, words: Words) -> Ints:
        return self.of_columns(self._keys.decode(words), len(words))

    def of_columns(self, columns: Columns, count: int) -> Ints:
        """The hashes of ``count`` keys, given as ``KeyWords.decode`` gives them."""
        if self._kernel is None:
            return np.full(count, NO_KEY_HASH, np.int64)
        hashes = np.empty(count, np.int64)
        self._kernel(columns, count, hashes, *self._parameters.arguments())
        return hashes
