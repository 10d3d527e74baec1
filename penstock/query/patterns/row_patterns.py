"""The text of a row pattern, ``A B+? (C | D){2,3}``, as a pattern.

The SQL parser leaves this part of ``MATCH_RECOGNIZE`` as it is written; the grammar is that of SQL:2016.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.query.errors import QueryError
from penstock.query.expr import Expr
from penstock.query.patterns.patterns import Event, Pattern

_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|\{[^{}]*\}|\S)")
_COUNTS = re.compile(r"\{\s*(\d*)\s*(?:(,)\s*(\d*)\s*)?\}")
_MARKS = {"+": (1, None), "*": (0, None), "?": (0, 1)}


def row_pattern(text: str, conditions: Mapping[str, Expr]) -> Pattern:
    """The pattern that a text describes; a name without a condition fits every event.

    >>> row_pattern("A (B | C)+? D{2,3}", {})
    A >> (B | C)+? >> D{2,3}
    """
    return _Parser(text, conditions).whole()


class _Parser:
    """A pattern is alternatives of sequences of repeated things."""

    def __init__(self, text: str, conditions: Mapping[str, Expr]) -> None:
        self._text, self._conditions = text, conditions
        self._tokens: list[str] = _TOKEN.findall(text)
        self._at = 0

    def whole(self) -> Pattern:
        found = self._alternatives()
        if self._at < len(self._tokens):
            raise self._error(f"'{self._tokens[self._at]}' does not belong there")
        return found

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, token: str) -> bool:
        if self._next.upper() != token:
            return False
        self._at += 1
        return True

    def _alternatives(self) -> Pattern:
        found = self._sequence()
        while self._take("|"):
            found = found | self._sequence()
        return found

    def _sequence(self) -> Pattern:
        found = self._repeated()
        while self._next and self._next not in "|),":
            found = found >> self._repeated()
        return found

    def _repeated(self) -> Pattern:
        one = self._single()
        counts = _MARKS.get(self._next)
        if counts is None and self._next.startswith("{"):
            counts = self._counts(self._next)
        if counts is None:
            return one
        self._at += 1
        again = one.times(*counts)
        return again.reluctant() if self._take("?") else again

    def _counts(self, text: str) -> tuple[int, int | None]:
        found = _COUNTS.fullmatch(text)
        if found is None or not (found[1] or found[3]):
            raise self._error(f"'{text}' is not a number of times", "write {2}, {2,}, {,3} or {2,3}")
        least = int(found[1] or 0)
        return least, (least if found[2] is None else int(found[3]) if found[3] else None)

    def _single(self) -> Pattern:
        if self._take("("):
            return self._closed(self._alternatives())
        if self._next.upper() == "PERMUTE" and self._tokens[self._at + 1 : self._at + 2] == ["("]:
            self._at += 2
            found = self._alternatives()
            while self._take(","):
                found = found & self._alternatives()
            return self._closed(found)
        name = self._next
        if not name.isidentifier():
            what = f"'{name}' is not supported" if name else "it ends too early"
            raise self._error(what, "names, ( ), |, PERMUTE and + * ? {n,m} are")
        self._at += 1
        return Event(name, self._conditions.get(name))

    def _closed(self, found: Pattern) -> Pattern:
        if not self._take(")"):
            raise self._error("a ')' is missing")
        return found

    def _error(self, what: str, hint: str | None = None) -> QueryError:
        return QueryError(f"cannot read PATTERN: {what}", detail=f"got ({self._text})", hint=hint)
