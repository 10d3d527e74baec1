"""Kernels are compiled once per shape: shared by constants, kept on disk, announced when compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import types

from penstock.compiled import cache
from penstock.compiled.cache import compile_kernel
from penstock.kernels.builder import KernelBuilder
from penstock.kernels.rows import row_kernel, store
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.expr import Expr, col, hash_of, lit, when
from penstock.query.types import DataType, Field, Schema

_LAYOUT = Layout(Schema(x="int64", y="float32?", s="string?", t="timestamp").fields)


def kernel_of(expr: Expr) -> tuple[object, KernelBuilder]:
    builder = KernelBuilder(_LAYOUT, StringPool())
    code = builder.emit(expr, DataType.BOOL)
    target = Layout([Field("out", DataType.BOOL, True)])
    return row_kernel("shape_rows", builder, target, [*store(target, "out", code), "o += uint64(1)"]), builder


def expression(number: int, fraction: float, text: str, unit: str, members: list[int]) -> Expr:
    late = col("t").truncate(unit) > lit(number, "timestamp")
    named = (col("s") == text) | col("s").starts_with(text) | col("s").is_in([text, "x"])
    large = when(col("y") * fraction > fraction, col("x") + number).otherwise(number) > number
    return late & named & large & col("x").is_in(members) & (hash_of(col("s")) % 7 == number)


def test_expressions_that_differ_only_in_constants_share_one_kernel() -> None:
    first, _ = kernel_of(expression(1, 2.5, "a", "1s", [1]))
    before = (cache.counts.compiled, cache.counts.loaded)
    second, _ = kernel_of(expression(1_000_000, -1.0, "longer", "1h", list(range(100))))
    same_constants, _ = kernel_of(expression(1, 1.0, "1", "1us", [1, 1]))
    assert first is second is same_constants
    assert (cache.counts.compiled, cache.counts.loaded) == before


def test_different_shapes_are_different_kernels() -> None:
    first, _ = kernel_of(col("x") > 1)
    second, _ = kernel_of(col("x") >= 1)
    assert first is not second


def test_tables_grow_with_the_dictionary() -> None:
    kernel, builder = kernel_of(col("s").starts_with("a"))
    strings = builder.strings
    out = (np.zeros(40, np.bool_), np.zeros(40, np.bool_))
    for size in (1, 40):
        codes = strings.codes([("a" if index % 2 else "b") + str(index) for index in range(size)])
        zeros = np.zeros(size, np.bool_)
        inp = (
            np.zeros(size, np.int64),
            np.zeros(size, np.float32),
            zeros,
            codes,
            zeros,
            np.zeros(size, np.int64),
        )
        assert kernel(inp, 0, size, out, 0, *builder.parameters.arguments()) == size  # type: ignore[operator]
        assert out[0][:size].tolist() == [index % 2 == 1 for index in range(size)]


_SCRIPT = """
import numba
from penstock.compiled import cache, notice
notice.on_compile = lambda name: print("compiling", name)
signature = numba.types.int64(numba.types.int64)
kernel = cache.compile_kernel("twice", "def twice(x):\\n    return 2 * x\\n", signature)
print(kernel(21), cache.counts.compiled, cache.counts.loaded)
"""


def test_a_second_process_loads_instead_of_compiling(tmp_path: Path) -> None:
    environment = {**os.environ, "PENSTOCK_CACHE": str(tmp_path / "kernels")}

    def run() -> list[str]:
        command = [sys.executable, "-c", _SCRIPT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=_ROOT)
        return done.stdout.splitlines()

    assert run() == ["compiling twice", "42 1 0"]
    assert run() == ["42 0 1"]
    assert (tmp_path / "kernels").stat().st_mode & 0o777 == 0o700


def test_processes_that_start_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    environment = {**os.environ, "PENSTOCK_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", _SCRIPT]
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
        for _ in range(3)
    ]
    assert all(process.communicate()[0].splitlines()[-1].startswith("42") for process in started)


def test_wrong_arguments_raise_instead_of_crashing() -> None:
    array = types.Array(types.int64, 1, "C")
    source = "def first(columns):\n    return columns[0][0]\n"
    kernel = compile_kernel("first", source, types.int64(types.Tuple((array,))))
    assert kernel((np.array([7]),)) == 7
    with pytest.raises((TypeError, ValueError)):
        kernel((np.array([7]), np.array([8])))


_ROOT = Path(__file__).parent.parent.parent
