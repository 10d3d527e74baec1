"""Imports point downwards only, Spark stays in its folder, and the package is light to import."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "penstock"

#: Each may import those below it and itself. Names on one line are of one rank and may not import each other.
LAYERS: list[tuple[str, ...]] = [
    ("__main__",),
    ("cli",),
    ("demo", "warm"),
    ("view",),
    ("service", "testing"),
    ("__init__",),
    ("app",),
    ("sources", "sinks", "detection"),
    ("workloads",),
    ("spark",),
    ("engine",),
    ("checkpoints",),
    ("connectors",),
    ("cep",),
    ("scaling",),
    ("placement",),
    ("routing",),
    ("binding",),
    ("scheduling",),
    ("operators",),
    ("kernels",),
    ("state",),
    ("memory",),
    ("metrics",),
    ("compiled",),
    ("query",),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def layer_of(path: Path) -> str:
    top = path.relative_to(PACKAGE).parts[0]
    return top.removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, wherever in the file, except for the type checker only."""
    tree = ast.parse(path.read_text())
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the whole name of the module"
            module = node.module or ""
            if module == "penstock":  # ``from penstock import sources`` may name a module or a public name
                for name in node.names:
                    yield (f"penstock.{name.name}" if name.name in RANK else "penstock.__init__"), node.lineno
            else:
                yield module, node.lineno


def test_every_part_of_the_package_has_a_layer() -> None:
    assert {layer_of(path) for path in FILES} <= set(RANK)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    own = layer_of(path)
    for module, line in imported(path):
        assert module.split(".")[0] != "lab", f"{path}:{line}: the package stands without its laboratory"
        if module != "penstock" and not module.startswith("penstock."):
            continue
        other = module.split(".")[1] if "." in module else "__init__"
        assert other == own or RANK[other] > RANK[own], f"{path}:{line}: {own} must not import {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_spark_is_imported_in_its_folder_only(path: Path) -> None:
    if layer_of(path) == "spark":
        return
    for module, line in imported(path):
        assert module.split(".")[0] not in ("pyspark", "py4j"), f"{path}:{line} imports {module}"


def test_only_benchmarks_need_the_laboratory(tmp_path: Path) -> None:
    (tmp_path / "penstock").symlink_to(PACKAGE)  # as it is installed: nothing stands beside it
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = (
            "import sys\n"
            "import os\n"
            "beside = [p for p in sys.path if p and not os.path.isdir(os.path.join(p, 'lab'))]\n"
            f"sys.path = [{str(tmp_path)!r}, *beside]\n"
            "from penstock.cli import main\n"
            f"sys.exit(main({list(arguments)!r}))"
        )
        return subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    told = penstock("bench", "yahoo", "--json")
    assert told.returncode == 2
    assert told.stderr.startswith("penstock: benchmarks are not part of the installed package")
    assert penstock("demo", "--help").returncode == 0


# -- what importing and running loads --------------------------------------------------

_BLOCK_SPARK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j"):
            raise ImportError(f"{name} must not be imported here")
sys.meta_path.insert(0, Block())
"""

_RUN = """
import penstock as ps
from penstock import col, count, tumbling

app = ps.App("no-spark")
numbers = app.source("numbers", ps.sources.Columns({"ts": list(range(1000)), "n": list(range(1000))},
                     ps.Schema(ts="timestamp", n="int64")), event_time="ts")
result = ps.sinks.Memory()
app.sink("out", numbers.filter(col("n") % 2 == 0).window(tumbling("100us")).agg(n=count()), result)
app.run(on=ps.Node(workers=1))
assert [row["n"] for row in result.rows()] == [50] * 10, result.rows()
"""


def run(script: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_no_compiler_and_no_spark() -> None:
    loaded = run("import sys, penstock; print(*sys.modules)").split()
    assert not {"pyspark", "py4j", "numba", "pandas", "pyarrow", "matplotlib"} & set(loaded)


def test_writing_and_explaining_queries_loads_no_compiler() -> None:
    script = """
import sys, penstock as ps
from tests.query.stream.streams import Traffic
t = Traffic()
t.sink("out", t.cars.filter(ps.col("speed") > 3).window(ps.tumbling("1s")).agg(n=ps.count()))
assert t.app.explain() and t.app.explain("mermaid")
print(*sys.modules)
"""
    assert not {"numba", "pyspark"} & set(run(script).split())


def test_the_engine_runs_without_spark() -> None:
    run(_BLOCK_SPARK + _RUN)
