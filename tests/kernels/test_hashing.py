"""Hashing in kernels equals ``xxhash``, which equals Spark's ``xxhash64``."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels.hashing import hash_bytes, hash_f32, hash_f64, hash_i32, hash_i64
from penstock.memory.strings import StringPool

seeds = st.integers(0, 2**64 - 1)


@given(st.integers(-(2**31), 2**31 - 1), seeds)
def test_int32(value: int, seed: int) -> None:
    expected = xxhash.xxh64_intdigest(struct.pack("<i", value), seed)
    assert int(hash_i32(np.int32(value), np.uint64(seed))) == expected


@given(st.integers(-(2**63), 2**63 - 1), seeds)
def test_int64(value: int, seed: int) -> None:
    expected = xxhash.xxh64_intdigest(struct.pack("<q", value), seed)
    assert int(hash_i64(np.int64(value), np.uint64(seed))) == expected


@given(st.booleans(), seeds)
def test_bool_is_hashed_as_int32(value: bool, seed: int) -> None:
    expected = xxhash.xxh64_intdigest(struct.pack("<i", value), seed)
    assert int(hash_i32(np.bool_(value), np.uint64(seed))) == expected


@given(st.floats(width=32).filter(lambda x: x == x and x != 0), seeds)
def test_float32(value: float, seed: int) -> None:
    expected = xxhash.xxh64_intdigest(struct.pack("<f", value), seed)
    assert int(hash_f32(np.float32(value), np.uint64(seed))) == expected


@given(st.floats().filter(lambda x: x == x and x != 0), seeds)
def test_float64(value: float, seed: int) -> None:
    expected = xxhash.xxh64_intdigest(struct.pack("<d", value), seed)
    assert int(hash_f64(np.float64(value), np.uint64(seed))) == expected


def test_zeros_and_nans_have_one_hash_each() -> None:
    seed = np.uint64(42)
    odd_nan = np.array([0x7FF8_0000_0000_0001 | 1 << 63], np.uint64).view(np.float64)[0]
    assert hash_f64(-0.0, seed) == hash_f64(0.0, seed)
    assert hash_f64(odd_nan, seed) == hash_f64(math.nan, seed)
    assert int(hash_f64(math.nan, seed)) == xxhash.xxh64_intdigest(struct.pack("<d", math.nan), 42)
    assert int(hash_f32(np.float32(math.nan), seed)) == xxhash.xxh64_intdigest(
        struct.pack("<f", math.nan), 42
    )
    assert int(hash_f32(np.float32(-0.0), seed)) == xxhash.xxh64_intdigest(struct.pack("<f", 0.0), 42)


@given(st.binary(max_size=100), st.integers(0, 7), seeds)
def test_bytes(data: bytes, before: int, seed: int) -> None:
    buffer = np.frombuffer(b"\xff" * before + data + b"\xff" * 3, np.uint8)
    hashed = hash_bytes(buffer, before, before + len(data), np.uint64(seed))
    assert int(hashed) == xxhash.xxh64_intdigest(data, seed)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 8, 31, 32, 33, 63, 64, 65])
def test_strings_of_a_pool(size: int) -> None:
    pool = StringPool()
    pool.code("before")
    pool.byte_tables()  # so that the rest is added to tables that exist
    code = pool.code("ä" * size)
    pool.code("behind")
    data, offsets = pool.byte_tables()
    hashed = hash_bytes(data, offsets[code], offsets[code + 1], np.uint64(42))
    assert int(hashed) == xxhash.xxh64_intdigest(("ä" * size).encode(), 42)
