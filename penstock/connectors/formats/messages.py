"""Messages, each of which is one record of a line format whatever line ends are in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from penstock.connectors.formats.lines import LINE_BYTES, BadLine, LineParser, Parsed, count_lines

NO_VALUE = "the message has no value"
EMPTY = "the message is empty"


class MessageParser:
    """Parses messages with the parser of a line format: many at once, unless one of them is no plain line."""

    def __init__(self, parser: LineParser) -> None:
        self._parser = parser

    def parse(self, payloads: Sequence[bytes | None]) -> Parsed:
        """The events of all; what is bad is told by its place among the payloads."""
        try:
            chunk = b"\n".join(payloads) + b"\n"  # type: ignore[arg-type]
        except TypeError:  # one of them is None
            return self._one_by_one(payloads)
        if len(chunk) > LINE_BYTES and len(payloads) > 1:  # more than the quick way takes
            return self._in_halves(payloads)
        if b"\r" not in chunk and count_lines(chunk) == len(payloads):
            parsed = self._parser.parse(chunk)
            if parsed.records == len(payloads):
                return parsed
        return self._one_by_one(payloads)

    def _in_halves(self, payloads: Sequence[bytes | None]) -> Parsed:
        middle = len(payloads) // 2
        first, second = self.parse(payloads[:middle]), self.parse(payloads[middle:])
        columns = tuple(map(np.concatenate, zip(first.columns, second.columns, strict=True)))
        moved = (replace(bad, record=bad.record + middle, line=bad.line + middle) for bad in second.bad)
        count, records = first.count + second.count, len(payloads)
        return Parsed(columns, count, records, records, [*first.bad, *moved])

    def _one_by_one(self, payloads: Sequence[bytes | None]) -> Parsed:
        lines: list[bytes] = []
        places: list[int] = []
        bad: list[BadLine] = []
        for place, payload in enumerate(payloads):
            # In JSON a line end is a space like any other.
            line = (payload or b"").strip(b"\r\n").replace(b"\n", b" ").replace(b"\r", b" ")
            if payload is None:
                bad.append(BadLine(place, place, "", NO_VALUE))
            elif self._parser.is_blank(line):
                bad.append(BadLine(place, place, "", EMPTY))
            else:
                lines.append(line)
                places.append(place)
        parsed = self._parser.parse(b"".join(line + b"\n" for line in lines))
        for entry in parsed.bad:
            place = places[entry.record]
            bad.append(BadLine(place, place, entry.text, entry.reason))
        bad.sort(key=lambda entry: entry.record)
        return Parsed(parsed.columns, parsed.count, len(payloads), len(payloads), bad)
