"""Extras: what a feature needs beyond the package itself, and one clear sentence where it is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from importlib import import_module
from typing import Any, NamedTuple

from penstock.query.errors import PenstockError


class Extra(StrEnum):
    """The extras of the package, ``pip install 'penstock[spark]'``."""

    SPARK = "spark"
    MQTT = "mqtt"
    KAFKA = "kafka"
    POSTGRES = "postgres"
    SERVICE = "service"
    VIEW = "view"
    DEGREE = "degree"
    NETWORK = "network"


@contextlib.contextmanager
def needed(extra: Extra, feature: str, otherwise: str = "") -> Iterator[None]:
    """Around imports of what an extra brings: a missing package is told with the command that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "penstock", "lab"):
            raise
        hint = f"pip install 'penstock[{extra}]'" + (f", or {otherwise}" if otherwise else "")
        raise PenstockError(
            f"{feature} needs a package that is not installed: '{package}' is missing; {hint}"
        ) from None


class Lazy(NamedTuple):
    """A public name that is loaded when it is first asked for."""

    extra: Extra
    module: str
    name: str


def lazy_names(public: str, names: Mapping[str, Lazy]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a public module whose other names need nothing beyond the package."""

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{public}' has no attribute '{name}'")
        lazy = names[name]
        with needed(lazy.extra, f"{public.replace('penstock', 'ps', 1)}.{name}"):
            return getattr(import_module(lazy.module), lazy.name)

    return load
