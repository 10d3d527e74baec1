"""How a pattern is matched: which events may be passed over, and where the search goes on after a match."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from penstock.query.errors import QueryError


class Contiguity(Enum):
    """Which events may lie between those of a match."""

    STRICT = "strict"  # none
    NEXT = "next"  # those that the later one could not have been: skip till next match
    ANY = "any"  # any: skip till any match


class AfterMatch(Enum):
    """Where the next match may start."""

    NO_SKIP = "no_skip"  # anywhere
    TO_NEXT = "to_next"  # behind the first event of this one
    PAST_LAST = "past_last"  # behind the last event of this one


Mode = TypeVar("Mode", bound=Enum)


def chosen_mode(kind: type[Mode], value: Any, what: str) -> Mode:
    """The mode of that name, or why there is none."""
    try:
        return kind(value.value if isinstance(value, kind) else value)
    except ValueError:
        names = ", ".join(f"'{mode.value}'" for mode in kind)
        raise QueryError(f"unknown {what}", detail=f"got {value!r}", hint=f"choose one of {names}") from None


def coupling(after: AfterMatch, consumed: bool) -> str | None:
    """Why the matches of a key depend on each other, if they do: then first events cannot be dealt out."""
    if consumed:
        return "consumed events are in no other match"
    if after is AfterMatch.PAST_LAST:
        return "a match skips the events up to its last"
    return None
