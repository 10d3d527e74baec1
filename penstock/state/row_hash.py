"""128 bits per row, equal for equal rows: two independent 64-bit hashes over the values of all columns.

Floats count by their bits, so -0.0 is not 0.0 and a NaN is itself; strings count by their text, whatever
their code is. The hashes never leave the process, so they may change with any version.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import xxhash
from numba import njit
from numpy.typing import NDArray

from penstock.compiled.fixed import part
from penstock.memory.arrow import ArrowArray
from penstock.state.groups import SchemaGroup, plain_codes

Hashes: TypeAlias = NDArray[np.uint64]

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def can_hash(schema: pa.Schema) -> bool:
    """Whether rows of these columns can be hashed: numbers, times, booleans and texts."""
    return all(_is_plain(field.type) or _is_text(field.type) for field in schema)


def row_hashes(group: SchemaGroup) -> tuple[Hashes, Hashes]:
    """Both hashes of each row; equal rows of different tables have different ones."""
    digests = b"".join(xxhash.xxh3_128_digest("\0".join(name).encode()) for name in group.names)
    seeds = np.frombuffer(digests, np.uint64).reshape(-1, 2)
    first, second = np.repeat(seeds[:, 0], group.counts), np.repeat(seeds[:, 1], group.counts)
    for array in group.rows.columns:
        _add_column(first, second, array)
    return first, second


def _is_plain(kind: Any) -> bool:
    return (pa.types.is_primitive(kind) or pa.types.is_boolean(kind)) and kind.bit_width <= 64


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _add_column(first: Hashes, second: Hashes, array: ArrowArray) -> None:
    if pa.types.is_dictionary(array.type):
        codes, nulls = plain_codes(array)
        words = _text_hashes(array.dictionary)
        if array.dictionary.null_count:
            hidden = array.dictionary.is_null().to_numpy(zero_copy_only=False)[codes]
            nulls = hidden if nulls is None else nulls | hidden
        if len(words[0]) == 0:
            words = (np.zeros(1, np.uint64), np.zeros(1, np.uint64))  # all rows are null
        _add_coded(first, second, *words, codes, _mask(nulls))
        return
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if _is_text(array.type):
        words = _text_hashes(array)
        _add_coded(first, second, *words, np.arange(len(array)), _mask(nulls))
        return
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    dtype = _WORDS[array.type.bit_width // 8]
    data = np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]
    _add_words(first, second, data, _mask(nulls))


def _mask(nulls: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    return np.zeros(0, np.bool_) if nulls is None else nulls


def _text_hashes(array: ArrowArray) -> tuple[Hashes, Hashes]:
    """Both hashes of each text of a plain string array; those of a null mean nothing."""
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, offsets, data = array.buffers()
    first, second = np.zeros(len(array), np.uint64), np.zeros(len(array), np.uint64)
    if len(array):
        ends = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
        text = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        _hash_texts(first, second, ends.astype(np.int64), text)
    return first, second


@part(forceinline=True)
def _mix_first(hashed: Any, word: Any) -> Any:
    hashed = (hashed ^ word) * np.uint64(0xFF51AFD7ED558CCD)
    hashed = (hashed ^ (hashed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return hashed ^ (hashed >> np.uint64(33))


@part(forceinline=True)
def _mix_second(hashed: Any, word: Any) -> Any:
    hashed = (hashed + word) * np.uint64(0x9E3779B97F4A7C15)
    hashed = (hashed ^ (hashed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return hashed ^ (hashed >> np.uint64(32))


@part(forceinline=True)
def _add_null(first: Any, second: Any) -> Any:
    """Like no value: the hash is turned before the word, a constant, goes in."""
    first = _mix_first(~first, np.uint64(0x9FB21C651E98DF25))
    return first, _mix_second(~second, np.uint64(0xA0761D6478BD642F))


@njit(nogil=True, cache=True)
def _add_words(first: Hashes, second: Hashes, words: NDArray[Any], nulls: NDArray[np.bool_]) -> None:
    for row in range(len(first)):
        if len(nulls) and nulls[row]:
            first[row], second[row] = _add_null(first[row], second[row])
        else:
            word = np.uint64(words[row])
            first[row] = _mix_first(first[row], word)
            second[row] = _mix_second(second[row], word)


@njit(nogil=True, cache=True)
def _add_coded(
    first: Hashes,
    second: Hashes,
    first_words: Hashes,
    second_words: Hashes,
    codes: NDArray[Any],
    nulls: NDArray[np.bool_],
) -> None:
    for row in range(len(first)):
        if len(nulls) and nulls[row]:
            first[row], second[row] = _add_null(first[row], second[row])
        else:
            first[row] = _mix_first(first[row], first_words[codes[row]])
            second[row] = _mix_second(second[row], second_words[codes[row]])


@njit(nogil=True, cache=True)
def _hash_texts(first: Hashes, second: Hashes, ends: NDArray[np.int64], text: NDArray[np.uint8]) -> None:
    for row in range(len(first)):
        place, end = ends[row], ends[row + 1]
        one = two = np.uint64(end - place)  # so that padding the last word with zeros is no ambiguity
        while place < end:
            word = np.uint64(0)
            for offset in range(min(8, end - place)):
                word |= np.uint64(text[place + offset]) << np.uint64(8 * offset)
            one, two = _mix_first(one, word), _mix_second(two, word)
            place += 8
        first[row], second[row] = one, two
