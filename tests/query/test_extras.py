"""The package alone: what it imports, and what is said where an extra is missing."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import textwrap
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

_ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
sys.path.insert(0, {root!r})
import penstock as ps
"""

_NODE = """
app = ps.App("alone")
data = {"ts": list(range(100)), "n": list(range(100))}
source = ps.sources.Columns(data, ps.Schema(ts="timestamp", n="int64"))
numbers = app.source("numbers", source, event_time="ts")
a, b = ps.event("a", ps.col("n") % 10 == 3), ps.event("b", ps.col("n") % 10 == 7)
matches, counts = ps.sinks.Memory(), ps.sinks.Memory()
app.sink("matches", numbers.match(a >> b, {"n": a["n"]}, within="10us", degree=2), matches)
app.sink("counts", numbers.window(ps.tumbling("10us")).agg(n=ps.count()), counts)
assert "numbers" in app.explain()
app.run(on=ps.Node(workers=1))
assert len(counts.rows()) == len(matches.rows()) == 10
"""


def packages_of(requirements: list[str]) -> set[str]:
    """The importable names of the packages that some requirements bring, with what those bring."""
    top_of: dict[str, set[str]] = {}
    for module, names in importlib.metadata.packages_distributions().items():
        for name in names:
            top_of.setdefault(normal(name), set()).add(module)
    pending, seen = [normal(r) for r in requirements], set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for further in importlib.metadata.requires(name) or []:
            if "extra ==" not in further:
                pending.append(normal(further))
    return set().union(*(top_of.get(name, set()) for name in seen))


def normal(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


@pytest.fixture(scope="module")
def absent() -> list[str]:
    """What an installation without extras does not have."""
    extras = [r for name, rs in _PROJECT["optional-dependencies"].items() if name != "all" for r in rs]
    lab = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["lab"]
    bare = packages_of(_PROJECT["dependencies"])
    return sorted(
        packages_of([r for r in extras + lab if normal(r) not in ("jax", "optax")]) - bare | {"lab"}
    )


def alone(code: str, absent: list[str]) -> str:
    script = _ALONE.format(absent=set(absent), root=str(ROOT)) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_node_needs_no_extra(absent: list[str]) -> None:
    assert {"pyspark", "pandas", "rich", "scipy", "matplotlib"} <= set(absent)
    assert not {"numba", "numpy", "pyarrow"} & set(absent)
    alone(_NODE, absent)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("ps.Spark()", "ps.Spark needs .*: 'p\\w+' is missing; pip install 'penstock\\[spark\\]', or run"),
        ("ps.sources.Spark", "ps.sources.Spark needs .*'penstock\\[spark\\]'"),
        (
            "ps.sources.Mqtt('t')",
            "an MQTT source needs .*: 'paho' is missing; pip install 'penstock\\[mqtt\\]'",
        ),
        (
            "ps.sinks.Memory().to_polars()",
            "Memory.to_polars needs .*: 'polars' is missing; pip install 'penstock\\[frames\\]'",
        ),
        ("ps.detection.QueueingPlanner", "ps.detection.QueueingPlanner needs .*'penstock\\[degree\\]'"),
    ],
)
def test_a_missing_extra_is_told_in_one_sentence(code: str, told: str, absent: list[str]) -> None:
    script = f"""
    try:
        {code}
    except ps.PenstockError as error:
        print(error)
    """
    assert re.match(told, alone(script, absent)), alone(script, absent)


def test_the_command_line_tells_of_a_missing_extra_too(absent: list[str]) -> None:
    script = """
    import contextlib, io
    from penstock.cli import main
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = main(["demo"])
    print(code, said.getvalue())
    """
    assert "2 penstock: the demo's view needs" in alone(script, absent)


def wheel(folder: Path) -> Path:
    """The wheel as it is built from here."""
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / done.stdout.split()[-1]


def test_the_wheel_has_what_users_run_and_no_laboratory(tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel(tmp_path)) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        assert "penstock/workloads/traffic/source.py" in archive.namelist()
    assert {top for top in tops if not top.endswith(".dist-info")} == {"penstock"}


@pytest.mark.slow
def test_an_installation_without_extras_is_small_and_runs_a_node(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    before = megabytes(environment)
    lock = [f"{wheel(tmp_path)}", "--constraint", str(versions(tmp_path))]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *lock], check=True)
    assert megabytes(environment) - before < 500
    script = "import penstock as ps\n" + _NODE
    done = subprocess.run([python, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def versions(folder: Path) -> Path:
    """The lock file's versions, without its hashes."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.rstrip(" \\") for line in lines if re.match(r"[\w.-]+==", line)]
    constraints = folder / "versions.txt"
    constraints.write_text("\n".join(pins))
    return constraints


def megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
