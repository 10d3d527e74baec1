"""What the laboratory's app has written, compared with the rows of a run that nobody disturbed."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

#: How often a query has each row; rows are texts.
Rows = Counter[str]


@dataclass(frozen=True)
class Difference:
    """How one query's output differs from what it should be."""

    query: str
    missing: int
    unexpected: int
    example: str

    @property
    def rows(self) -> int:
        return self.missing + self.unexpected

    def __str__(self) -> str:
        return f"'{self.query}': {self.missing} missing, {self.unexpected} unexpected, e.g. {self.example}"


def counted(rows: Iterable[Mapping[str, Any]], kind: str) -> Rows:
    """Rows as a sink of this kind would hold them; their order means nothing."""
    return Counter(_text(row, kind) for row in rows)


def written(output: Path, query: str, kind: str) -> Rows:
    """What a sink holds. Raises ``ValueError`` or ``OSError`` where that cannot be read."""
    match kind:
        case "parquet":
            files = sorted((output / query).glob("[!._]*.parquet"))
            return counted((row for file in files for row in pq.read_table(file).to_pylist()), kind)
        case "csv":
            path = output / f"{query}.csv"
            with path.open(newline="", encoding="utf-8") as file:
                return counted(csv.DictReader(file), kind)
        case "jsonl":
            return counted(_lines([output / f"{query}.jsonl"]), kind)
        case "spark":
            return counted(_lines(sorted((output / query).glob("*/[!._]*.json"))), kind)
        case _:
            return counted(_lines(sorted((output / query).glob("*.json"))), kind)


def differences(output: Path, expected: Mapping[str, Rows], sinks: Mapping[str, str]) -> list[Difference]:
    """Every query whose output is not what it should be."""
    found: list[Difference] = []
    for query, kind in sinks.items():
        try:
            rows = written(output, query, kind)
        except (ValueError, OSError, csv.Error) as error:  # of pyarrow's too
            found.append(Difference(query, expected[query].total(), 0, f"it cannot be read: {error}"))
            continue
        difference = compared(query, expected[query], rows, at_least_once=kind == "callback")
        if difference is not None:
            found.append(difference)
    return found


def compared(query: str, expected: Rows, found: Rows, *, at_least_once: bool) -> Difference | None:
    """None where both have the same rows; ``at_least_once``: a row that is expected may come again."""
    missing, unexpected = expected - found, found - expected
    if at_least_once:
        unexpected = Counter({row: count for row, count in unexpected.items() if row not in expected})
    if not missing and not unexpected:
        return None
    example = min(missing or unexpected)
    return Difference(query, missing.total(), unexpected.total(), example)


def _lines(paths: Iterable[Path]) -> Iterable[dict[str, Any]]:
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(f"'{path}' has a line that is no object")
            yield row


def _text(row: Mapping[str, Any], kind: str) -> str:
    if kind == "csv":  # which has texts only, and nothing for null
        row = {str(name): "" if value is None else str(value) for name, value in row.items()}
    if kind == "spark":  # which leaves nulls out
        row = {name: value for name, value in row.items() if value is not None}
    return json.dumps(row, sort_keys=True, ensure_ascii=False)
