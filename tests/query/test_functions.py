"""Every function of the language says all of itself, everywhere it has to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.query.errors import QueryError
from penstock.query.expr import Call, Expr, coalesce, col
from penstock.query.functions import FUNCTIONS, Function
from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction
from penstock.query.reference import PAGES, modules, with_tables
from tests.reference_functions import REFERENCE

_ROOT = Path(__file__).parents[2]
_TEXT = col("text")


def test_every_function_has_a_meaning_in_the_reference() -> None:
    assert {*REFERENCE, "hash_of"} == set(FUNCTIONS)


def test_a_declaration_that_is_not_whole_names_what_is_missing() -> None:
    with pytest.raises(TypeError, match="Nothing does not say all of itself: name, operands, strict, result"):

        @declared
        @dataclass(frozen=True)
        class Nothing(Function):
            """Nothing."""

    with pytest.raises(TypeError, match=r"a docstring, @dataclass\(frozen=True\) missing"):

        @declared
        class Bare(NumberFunction):
            name = "bare"

    with pytest.raises(TypeError, match="the name 'abs', which is taken already"):

        @declared
        @dataclass(frozen=True)
        class Again(NumberFunction):
            """Again."""

            name = "abs"

    assert "bare" not in FUNCTIONS


def test_what_is_made_from_the_declarations_is_of_today() -> None:
    for path, text in modules().items():
        assert (_ROOT / path).read_text() == text, "run make reference"
    for page in PAGES:
        text = (_ROOT / page).read_text()
        assert with_tables(text) == text, "run make reference"


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (lambda: _TEXT.starts_with(5), "starts_with needs a constant string as prefix: got 5"),
        (lambda: _TEXT.trim(""), "trim needs a constant string as characters"),
        (lambda: _TEXT.substr(-1), "substr needs an integer of at least 0 as start"),
        (lambda: _TEXT.substr(True), "substr needs an integer of at least 0 as start"),
        (lambda: _TEXT.replace("", "x"), "replace needs a constant string as old"),
        (lambda: _TEXT.split_part(",", 0), "split_part needs an integer of at least 1 as part"),
        (lambda: _TEXT.regexp_match("("), "regexp_match got no regular expression"),
        (lambda: _TEXT.regexp_extract("(a)", 2), "needs a group that the pattern has: got group 2"),
        (lambda: _TEXT.parse_time("%Y-%q"), "parse_time got no format of a time"),
        (lambda: coalesce(), "coalesce needs at least one value"),
        (lambda: Call(FUNCTIONS["abs"](), (_TEXT, _TEXT)), "abs needs x: got 2 operands"),
    ],
)
def test_wrong_constants_are_told_where_they_are_written(write: object, told: str) -> None:
    with pytest.raises(QueryError) as error:
        write()  # type: ignore[operator]
    assert told in str(error.value)


def test_a_function_that_does_not_exist_is_told_with_the_closest() -> None:
    with pytest.raises(QueryError, match=r"expressions have no 'uper'.*did you mean 'upper'"):
        _TEXT.uper()  # type: ignore[attr-defined]
    assert not hasattr(_TEXT, "uper")
    assert isinstance(_TEXT.upper(), Expr)
