"""A function is known again by what it does: not by its lines, comments or docstring."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.query.errors import QueryError
from penstock.query.function_versions import code_digest, described, is_changed
from penstock.query.steps import FlatMapSpec, ProcessSpec, UnionSpec
from penstock.query.types import Schema


def made(text: str, name: str = "f") -> Any:
    """What a module of this text defines."""
    names: dict[str, Any] = {"__name__": "users"}
    exec(text, names)
    return names[name]


PLAIN = "def f(event):\n    return [event, 'x', 3]\n"


@pytest.mark.parametrize(
    "text",
    [
        "\n\n\ndef f(event):\n\n    # why\n    return [event, 'x', 3]\n",
        "def f(event):\n    'What it is for.'\n    return [event, 'x', 3]\n",
        "OTHER = 4\ndef f(event):\n    return [event, 'x', 3]\n",
    ],
)
def test_what_a_function_does_stays_the_same(text: str) -> None:
    assert code_digest(made(text)) == code_digest(made(PLAIN))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PLAIN, PLAIN.replace("3", "4")),
        (PLAIN, PLAIN.replace("'x'", "'y'")),
        (PLAIN, PLAIN.replace("(event)", "(event, more=1)")),
        ("def f(e):\n    return e.lower()", "def f(e):\n    return e.upper()"),
        ("LIMIT = 3\ndef f(e):\n    return e > LIMIT", "LIMIT = 4\ndef f(e):\n    return e > LIMIT"),
        (
            "def h(e):\n    return 1\ndef f(e):\n    return [h(x) for x in e]",
            "def h(e):\n    return 2\ndef f(e):\n    return [h(x) for x in e]",
        ),
        ("def f(e):\n    return e in {'a', 'b'}", "def f(e):\n    return e in {'a', 'c'}"),
        ("f = (lambda n: lambda e: e + n)(1)", "f = (lambda n: lambda e: e + n)(2)"),
        ("class f:\n    def on(self):\n        return 1", "class f:\n    def on(self):\n        return 2"),
        ("class f:\n    limit = 1", "class f:\n    limit = 2"),
    ],
)
def test_what_a_function_does_changes(before: str, after: str) -> None:
    assert code_digest(made(before)) != code_digest(made(after))
    assert code_digest(made(before)) == code_digest(made(before))


def test_a_function_that_calls_itself_has_an_end() -> None:
    text = "def f(n):\n    return g(n)\ndef g(n):\n    return f(n - 1) if n else 0"
    assert code_digest(made(text)) == code_digest(made(text))
    assert code_digest(made(text)) != code_digest(made(text.replace("else 0", "else 1")))


def test_partials_methods_and_objects_say_what_they_hold() -> None:
    def add(n: int, e: int) -> int:
        return n + e

    class Adder:
        def __init__(self, n: int, folder: Path) -> None:
            self.n, self.folder = n, folder

        def __call__(self, e: int) -> int:
            return self.n + e

    def pairs(make: Callable[[int], Any]) -> tuple[bool, bool]:
        return code_digest(make(1)) == code_digest(make(1)), code_digest(make(1)) == code_digest(make(2))

    assert pairs(lambda n: partial(add, n)) == (True, False)
    assert pairs(lambda n: Adder(n, Path("a"))) == (True, False)
    assert pairs(lambda n: Adder(n, Path("a")).__call__) == (True, False)
    assert code_digest(Adder(1, Path("a"))) == code_digest(Adder(1, Path("b")))  # no constant


class Count(ps.ProcessFunction):
    limit = 3

    def on_event(self, event: dict[str, Any], context: Any) -> list[Any]:
        return [self.limit]


def test_a_step_without_a_function_has_nothing_to_tell() -> None:
    assert described(UnionSpec()) is None


def test_a_version_speaks_for_the_code() -> None:
    specs = [FlatMapSpec(made(text)) for text in (PLAIN, PLAIN.replace("3", "4"))]
    before, after = (described(spec) for spec in specs)
    assert before is not None
    assert after is not None
    assert is_changed(before, after)
    assert not is_changed(before, before)
    assert not is_changed(before, {**after, "version": "2"})
    assert not is_changed({**before, "python": "cpython 2.7"}, after)


def test_process_functions_are_known_by_their_methods() -> None:
    told = described(ProcessSpec(("k",), Count(), Schema()))
    assert told is not None
    assert set(told) == {"code", "python"}


def test_a_version_that_is_none_is_refused() -> None:
    app = ps.App("a")
    events = app.source("events", ps.sources.Columns({"ts": [1]}, {"ts": "timestamp"}), event_time="ts")
    with pytest.raises(QueryError, match="a version is a number or a text"):
        events.flat_map(lambda event: [event], {"ts": "timestamp"}, version=1.5)  # type: ignore[arg-type]


def test_without_a_version_steps_keep_their_names() -> None:
    app = ps.App("a")
    events = app.source("events", ps.sources.Columns({"ts": [1]}, {"ts": "timestamp"}), event_time="ts")
    function = made(PLAIN)
    plain, second = (events.flat_map(function, {"ts": "timestamp"}, version=one) for one in (None, 2))
    app.sink("plain", plain, ps.sinks.Discard())
    app.sink("second", second, ps.sinks.Discard())
    assert len({node.id for node in app.graph() if isinstance(node.spec, FlatMapSpec)}) == 2
