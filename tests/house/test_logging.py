"""The library tells through loggers: a host decides what is shown, and by default warnings are."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "penstock"

#: Modules that talk to a terminal.
_TERMINAL = {"cli.py", "demo.py", "view.py"}
LIBRARY = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if "__pycache__" not in path.parts and str(path.relative_to(PACKAGE)) not in _TERMINAL
)

_HOT_KEY = """
import penstock as ps
from penstock.routing.control import RoutingControl

app = ps.App("hot")
rows = {"ts": list(range(3_000)), "k": [7 if n % 5 else n for n in range(3_000)]}
numbers = app.source("numbers", ps.sources.Columns(rows, {"ts": "timestamp", "k": "int64"}), event_time="ts")
app.sink("out", numbers.deduplicate("k", name="first"), ps.sinks.Discard())
eager = RoutingControl(chi=0.1, cooldown=0)
app.run(on=ps.Node(tasks=2, block_events=512, rebalance=eager, rebalance_every_s=0.0))
"""


def test_the_library_prints_nothing_and_each_module_has_its_own_logger() -> None:
    for path in LIBRARY:
        text = path.read_text()
        if "print(" not in text and "getLogger" not in text:
            continue
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
            called = ast.unparse(call.func)
            assert called != "print", f"{path}:{call.lineno}: use logging.getLogger(__name__)"
            if called.endswith("getLogger"):
                assert ast.unparse(call) == "logging.getLogger(__name__)", f"{path}:{call.lineno}"


def _told(before: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", before + _HOT_KEY],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    return "".join(line for line in done.stderr.splitlines(True) if "compiling '" not in line)  # told once


def test_who_configures_nothing_sees_warnings() -> None:
    assert _told("").startswith("step 'first': key 7 has ")


def test_a_host_can_silence_and_format_what_is_told() -> None:
    assert _told("import logging\nlogging.getLogger('penstock').setLevel('ERROR')\n") == ""
    formatted = _told("import logging\nlogging.basicConfig(format='%(levelname)s %(name)s: %(message)s')\n")
    assert formatted.startswith("WARNING penstock.engine.keyed.splitter: step 'first': key 7 has ")
