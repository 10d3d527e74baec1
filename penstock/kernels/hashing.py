"""Spark's ``xxhash64``, bit for bit, for kernels: the unsigned hash of one value seeds the next.

Values are hashed as Spark does: booleans and int32 as 4 little-endian bytes, int64 and timestamps as 8,
floats by their bits with -0.0 as 0.0 and one NaN, strings as UTF-8. Seeds and results are uint64;
``np.int64(h)`` is what Spark shows.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import intrinsic

#: What Spark starts from.
SEED = np.uint64(42)

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_FOUR, _EIGHT = np.uint64(4), np.uint64(8)
_R1, _R7, _R11, _R12, _R18 = np.uint64(1), np.uint64(7), np.uint64(11), np.uint64(12), np.uint64(18)
_R23, _R27, _R31, _R64 = np.uint64(23), np.uint64(27), np.uint64(31), np.uint64(64)
_S29, _S32, _S33 = np.uint64(29), np.uint64(32), np.uint64(33)
_LOW32 = np.uint64(0xFFFFFFFF)


@intrinsic
def float64_bits(typingctx, value):  # type: ignore[no-untyped-def]
    """The bits of a float64 as uint64."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), codegen


@intrinsic
def float32_bits(typingctx, value):  # type: ignore[no-untyped-def]
    """The bits of a float32 as uint32."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(types.uint32))

    return types.uint32(types.float32), codegen


@njit(error_model="numpy")
def canonical_f64(value):  # type: ignore[no-untyped-def]
    """The bits of a float64 as int64, equal for all NaNs and for both zeros: what keys are compared by."""
    if value != value:
        return np.int64(0x7FF8000000000000)
    if value == 0.0:
        return np.int64(0)
    return np.int64(float64_bits(value))  # type: ignore[call-arg]


@njit(error_model="numpy")
def canonical_f32(value):  # type: ignore[no-untyped-def]
    """The bits of a float32 as a non-negative int64, equal for all NaNs and for both zeros."""
    if value != value:
        return np.int64(0x7FC00000)
    if value == np.float32(0.0):
        return np.int64(0)
    return np.int64(float32_bits(value))  # type: ignore[call-arg]


@njit(error_model="numpy")
def hash_i32(value, seed):  # type: ignore[no-untyped-def]
    """Of 4 bytes: int32 and bool."""
    h = seed + _P5 + _FOUR
    h ^= (np.uint64(np.int64(value)) & _LOW32) * _P1
    h = _rotate(h, _R23) * _P2 + _P3
    return _avalanche(h)


@njit(error_model="numpy")
def hash_i64(value, seed):  # type: ignore[no-untyped-def]
    """Of 8 bytes: int64 and timestamp."""
    h = seed + _P5 + _EIGHT
    h ^= _rotate(np.uint64(value) * _P2, _R31) * _P1
    h = _rotate(h, _R27) * _P1 + _P4
    return _avalanche(h)


@njit(error_model="numpy")
def hash_f32(value, seed):  # type: ignore[no-untyped-def]
    return hash_i32(canonical_f32(value), seed)


@njit(error_model="numpy")
def hash_f64(value, seed):  # type: ignore[no-untyped-def]
    return hash_i64(canonical_f64(value), seed)


@njit(error_model="numpy")
def hash_bytes(buffer, start, stop, seed):  # type: ignore[no-untyped-def]
    """Of ``buffer[start:stop]``: the UTF-8 of a string."""
    position = start
    if stop - start >= 32:
        v1, v2, v3, v4 = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while stop - position >= 32:
            v1 = _stripe(v1, _word64(buffer, position))
            v2 = _stripe(v2, _word64(buffer, position + 8))
            v3 = _stripe(v3, _word64(buffer, position + 16))
            v4 = _stripe(v4, _word64(buffer, position + 24))
            position += 32
        h = _rotate(v1, _R1) + _rotate(v2, _R7) + _rotate(v3, _R12) + _rotate(v4, _R18)
        h = _merge(_merge(_merge(_merge(h, v1), v2), v3), v4)
    else:
        h = seed + _P5
    h += np.uint64(stop - start)
    while stop - position >= 8:
        h ^= _rotate(_word64(buffer, position) * _P2, _R31) * _P1
        h = _rotate(h, _R27) * _P1 + _P4
        position += 8
    if stop - position >= 4:
        h ^= _word32(buffer, position) * _P1
        h = _rotate(h, _R23) * _P2 + _P3
        position += 4
    while position < stop:
        h ^= np.uint64(buffer[position]) * _P5
        h = _rotate(h, _R11) * _P1
        position += 1
    return _avalanche(h)


@njit(error_model="numpy")
def _rotate(value, bits):  # type: ignore[no-untyped-def]
    return (value << bits) | (value >> (_R64 - bits))


@njit(error_model="numpy")
def _avalanche(h):  # type: ignore[no-untyped-def]
    h = (h ^ (h >> _S33)) * _P2
    h = (h ^ (h >> _S29)) * _P3
    return h ^ (h >> _S32)


@njit(error_model="numpy")
def _stripe(lane, word):  # type: ignore[no-untyped-def]
    return _rotate(lane + word * _P2, _R31) * _P1


@njit(error_model="numpy")
def _merge(h, lane):  # type: ignore[no-untyped-def]
    return (h ^ (_rotate(lane * _P2, _R31) * _P1)) * _P1 + _P4


@njit(error_model="numpy")
def _word64(buffer, position):  # type: ignore[no-untyped-def]
    word = np.uint64(0)
    for index in range(8):
        word |= np.uint64(buffer[position + index]) << np.uint64(8 * index)
    return word


@njit(error_model="numpy")
def _word32(buffer, position):  # type: ignore[no-untyped-def]
    word = np.uint64(0)
    for index in range(4):
        word |= np.uint64(buffer[position + index]) << np.uint64(8 * index)
    return word
