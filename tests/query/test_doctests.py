"""The examples in docstrings and in the guide run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import penstock
from penstock import app as app_module
from penstock import query
from tests.query.stream.streams import Traffic

MODULES = [
    "penstock.app",
    *(module.name for module in pkgutil.walk_packages(query.__path__, "penstock.query.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    traffic = Traffic()
    names = {one: getattr(penstock, one) for one in penstock.__all__}
    names |= {"cars": traffic.cars, "tolls": traffic.tolls}
    result = doctest.testmod(module, extraglobs=names)
    assert result.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    assert (
        sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name)))
        > 15
    )
    assert app_module.__doc__
