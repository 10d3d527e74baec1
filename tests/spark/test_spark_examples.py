"""The examples on Spark print what they say; they use the session that is there already."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.test_examples import ON_SPARK, promised


@pytest.mark.parametrize("example", ON_SPARK, ids=lambda path: path.stem)
def test_an_example_on_spark_prints_what_it_says(
    spark: SparkSession,
    example: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip() == promised(example)
    assert not list(tmp_path.glob("penstock-example-*"))
