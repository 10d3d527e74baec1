"""Extras: what a feature needs beyond the package itself, and one clear sentence where it is missing."""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
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
    STORES = "stores"
    SERVICE = "service"
    VIEW = "view"
    FRAMES = "frames"
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


def unknown_attribute(public: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a public module does not have, with the closest that it has."""
    by_lower = {one.lower(): one for one in known if not one.startswith("_")}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    meant = f"; did you mean '{by_lower[close[0]]}'?" if close else ""
    return AttributeError(f"module '{public}' has no attribute '{name}'{meant}")


def lazy_names(public: str, names: Mapping[str, Lazy]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a public module whose other names need nothing beyond the package."""

    def load(name: str) -> Any:
        if name not in names:
            raise unknown_attribute(public, name, sys.modules[public].__dir__())
        lazy = names[name]
        with needed(lazy.extra, f"{public.replace('penstock', 'ps', 1)}.{name}"):
            return getattr(import_module(lazy.module), lazy.name)

    return load
