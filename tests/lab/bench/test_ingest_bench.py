"""The ingest benchmark compares like with like: three systems, the same files, the same answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.bench.ingest.bench import same
from lab.bench.ingest.inputs import FileKind, write
from lab.bench.ingest.systems import duck, penstock, polars


@pytest.mark.parametrize("kind", list(FileKind))
def test_all_systems_give_the_same_answer(kind: FileKind, tmp_path: Path) -> None:
    given = write(kind, tmp_path, 5_000)
    answers = [system(given)[1] for system in (penstock(1), duck(1), polars())]
    assert answers[0].num_rows > 0
    assert same(answers[0], answers[1])
    assert same(answers[0], answers[2])
    assert not same(answers[0], answers[1].slice(1))


@pytest.mark.parametrize("kind", [kind for kind in FileKind if kind is not FileKind.PARQUET])
def test_one_record_in_a_thousand_is_bad_where_it_should_be(kind: FileKind, tmp_path: Path) -> None:
    given = write(kind, tmp_path, 4_100, bad=True)
    assert (given.events, given.bad) == (4_096, 4)
    penstock(1)(given)  # which counts the bad records, and raises unless they are as many
