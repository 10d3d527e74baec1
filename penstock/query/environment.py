"""Values that stand in the environment, such as passwords: a program holds their names only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypeVar

from penstock.query.errors import QueryError, RunError


@dataclass(frozen=True)
class Env:
    """A value of the environment, read by the process that needs it when it needs it.

    What is written down or sent to other processes, and what errors show, is the name. On Spark the
    processes of the executors must have it in their environment.

    >>> Env("KAFKA_PASSWORD")
    env('KAFKA_PASSWORD')
    """

    name: str

    def __post_init__(self) -> None:
        if not self.name or "=" in self.name:
            hint = "e.g. ps.env('KAFKA_PASSWORD')"
            raise QueryError("not a name in the environment", detail=f"got {self.name!r}", hint=hint)

    @property
    def value(self) -> str:
        """What stands there now."""
        value = os.environ.get(self.name)
        if value is None:
            raise RunError(f"the environment has no {self.name}: set it before the run starts")
        return value

    def __repr__(self) -> str:
        return f"env({self.name!r})"


def env(name: str) -> Env:
    """What stands under this name in the environment: for passwords and other secrets.

    >>> env("DB_PASSWORD").name
    'DB_PASSWORD'
    """
    return Env(name)


Given = TypeVar("Given")


def value_of(value: Given | Env) -> Given | str:
    """The value itself, or what stands in the environment."""
    return value.value if isinstance(value, Env) else value
