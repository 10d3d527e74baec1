"""Every example runs by itself and prints what its first lines say that it prints."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: Those on Spark share the session of the tests for Spark: ``tests/spark/test_spark_examples.py``.
ON_SPARK = [path for path in EXAMPLES if "ps.Spark(" in path.read_text()]


def promised(example: Path) -> str:
    """What the example says it prints: the last part of its docstring, under the command."""
    text = ast.get_docstring(ast.parse(example.read_text())) or ""
    _, command, output = text.partition(f"$ python examples/{example.name}\n")
    assert command, f"{example.name} does not say how it is run and what it prints"
    return output.strip()


@pytest.mark.parametrize(
    "example", [path for path in EXAMPLES if path not in ON_SPARK], ids=lambda path: path.stem
)
def test_an_example_prints_what_it_says(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == promised(example)
    # a cache that is empty yet is filled, and that is said
    assert [line for line in done.stderr.splitlines() if not line.startswith("compiling ")] == []
    assert not list(tmp_path.iterdir()), "an example leaves nothing in the folder it is started in"


def test_examples_use_public_names_only() -> None:
    for example in EXAMPLES:
        for node in ast.walk(ast.parse(example.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "penstock":
                assert node.module in ("penstock", "penstock.detection", "penstock.testing"), (
                    f"{example.name}: {node.module}"
                )


def test_the_readme_lists_every_example() -> None:
    listed = re.findall(r"^\| \[`(\w+\.py)`\]", (ROOT / "examples" / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [path.name for path in EXAMPLES]
