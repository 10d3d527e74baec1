"""Types and schemas."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.query.types import DataType, Field, Schema, parse_type
from tests.query.stream.streams import fails


def test_a_schema_keeps_the_order_and_the_question_marks() -> None:
    schema = Schema(ts="timestamp", speed="float64?")
    assert schema.names == ("ts", "speed")
    assert schema["speed"] == Field("speed", DataType.FLOAT64, True)
    assert "ts" in schema
    assert "lane" not in schema
    assert len(schema) == 2
    assert [field.name for field in schema] == ["ts", "speed"]
    assert repr(schema) == "Schema(ts: timestamp, speed: float64?)"


def test_schemas_are_values() -> None:
    one, same = Schema(a="int32"), Schema([Field("a", DataType.INT32)])
    assert one == same
    assert hash(one) == hash(same)
    assert one != Schema(a="int32?")
    assert Schema({"a": "int32"}) == one
    assert Schema.of({"a": "int32"}) == one
    assert Schema.of(one) is one
    assert one != "a: int32"


@pytest.mark.parametrize("dtype", list(DataType))
def test_every_type_has_a_fixed_width(dtype: DataType) -> None:
    assert dtype.numpy.itemsize in (1, 4, 8)
    assert parse_type(dtype) == (dtype, False)
    assert parse_type(dtype.value + "?") == (dtype, True)
    assert str(dtype) == repr(dtype) == dtype.value


def test_timestamps_and_strings_are_integers_in_memory() -> None:
    assert DataType.TIMESTAMP.numpy == np.int64
    assert DataType.STRING.numpy == np.int32


def test_errors() -> None:
    fails(lambda: Schema(a="int16"), "unknown type 'int16'", "for column 'a'", "int32")
    fails(lambda: Schema(a="int32??"), "unknown type 'int32??'")
    fails(lambda: Schema(a=int), "unknown type <class 'int'>")  # type: ignore[arg-type]
    fails(lambda: Schema([Field("a", DataType.INT32)], a="int32"), "duplicate column 'a'")
    fails(lambda: Schema(["a"]), "not a column", "'a'")  # type: ignore[list-item]
    fails(lambda: Schema({"": "int32"}), "name must be text")
    fails(lambda: Schema({3: "int32"}), "name must be text")  # type: ignore[dict-item]
    fails(lambda: Schema.of([("a", "int32")]), "not a schema")  # type: ignore[arg-type]
    fails(
        lambda: Schema(speed="float64")["sped"],
        "unknown column 'sped'",
        "did you mean 'speed'?",
        "columns here",
    )
    assert "did you mean" not in str(fails(lambda: Schema(speed="float64")["x"], "columns here: speed"))
