"""Every declaration counts: whichever one is taken out, an import fails and says which."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from penstock.cep import catalogue
from penstock.kernels.functions import emitters
from penstock.operators.aggregates import accumulator
from penstock.operators.run import registry
from penstock.operators.windows import window_aggregates
from penstock.query.aggregates import AGGREGATES
from penstock.query.functions import FUNCTIONS
from penstock.query.steps.spec import STEPS, PartialStep
from penstock.query.windows import WINDOWS
from penstock.spark.native.functions import native

assert catalogue.check_all is registry.check_all  # all operators are loaded

#: The words of the language, and what is checked when what runs them is imported.
WORDS: list[tuple[dict[str, Any], tuple[Callable[[], None], ...]]] = [
    (FUNCTIONS, (emitters.check_all, native.check_all)),
    (AGGREGATES, (accumulator.check_all,)),
    (WINDOWS, (window_aggregates.check_all,)),
    (STEPS, (registry.check_all,)),
]

#: What is registered for words, by their classes.
REGISTERED: list[tuple[dict[Any, Any], Callable[[], None]]] = [
    (emitters._EMITTERS, emitters.check_all),
    (native._FORMS, native.check_all),
    (native._REASONS, native.check_all),
    (accumulator._KEEPERS, accumulator.check_all),
    (window_aggregates._OPERATORS, window_aggregates.check_all),
    (registry._OPERATORS, registry.check_all),
    (registry._ELSEWHERE, registry.check_all),
]

#: Imports all that runs words, with one line of one file left out.
_IMPORT = """
import importlib.machinery as machinery, sys
_, file, line = sys.argv
whole = machinery.SourceFileLoader.get_code
def get_code(loader, name):
    if not loader.path.endswith(file):
        return whole(loader, name)
    source = loader.get_data(loader.path).decode()
    assert source.count(line) == 1, (file, line)
    return compile(source.replace(line, ""), loader.path, "exec")
machinery.SourceFileLoader.get_code = get_code
import penstock.cep.catalogue
"""


def _undeclarable(kind: type[Any]) -> bool:
    """The steps that runtimes make of a user's step are no words of the language."""
    return issubclass(kind, PartialStep)


@pytest.mark.parametrize(
    ("words", "name", "check"),
    [
        pytest.param(words, name, check, id=f"{check.__module__.rpartition('.')[2]}-{name}")
        for words, checks in WORDS
        for name, kind in words.items()
        for check in checks
        if not _undeclarable(kind)
    ],
)
def test_a_word_that_is_not_declared_any_more_is_told(
    words: dict[str, Any], name: str, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = words[name]
    monkeypatch.delitem(words, name)
    if check is emitters.check_all and kind not in emitters._EMITTERS:
        check = native.check_all  # its family computes it; Spark knows it by itself
    with pytest.raises(TypeError, match=f"{kind.__name__}, which is not declared"):
        check()


@pytest.mark.parametrize(
    ("registered", "kind", "check"),
    [
        pytest.param(registered, kind, check, id=f"{check.__module__.rpartition('.')[2]}-{kind.__name__}")
        for registered, check in REGISTERED
        for kind in registered
        if registered is not registry._OPERATORS or kind in STEPS.values()
    ],
)
def test_what_is_not_registered_for_a_word_any_more_is_told(
    registered: dict[Any, Any], kind: Any, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(registered, kind)
    with pytest.raises(TypeError, match=r"register (one|an accumulator)"):
        check()


@pytest.mark.parametrize(
    ("file", "line", "told"),
    [
        (
            "query/steps/columns/filter.py",
            "@declared\n",
            "runs FilterSpec, which is not declared",
        ),
        ("query/aggregates/variance.py", "@declared\n", "Variance, which is not declared"),
        ("operators/columns/rows.py", "@runs(FilterSpec)\n", "no operator runs filter"),
    ],
)
def test_an_import_without_a_declaration_fails(file: str, line: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT, file, line], capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert told in done.stderr.splitlines()[-1]
