"""Python code that every process of a run executes at its start: driver, planner and workers alike."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: Files with a function ``arm``, which Python runs at its start. They load nothing of Penstock by themselves:
#: each process would pay for it before it does its own work.
HOOKS = "PENSTOCK_FAULT_HOOKS"

_SITE = f"""
import importlib.util, os
for _path in filter(None, os.environ.get("{HOOKS}", "").split(os.pathsep)):
    _spec = importlib.util.spec_from_file_location("penstock_" + os.path.basename(_path)[:-3], _path)
    _module = importlib.util.module_from_spec(_spec)
    __import__("sys").modules[_spec.name] = _module
    _spec.loader.exec_module(_module)
    _module.arm()
"""


def hooked(environment: Mapping[str, str], folder: Path, *hooks: str | None) -> dict[str, str]:
    """The environment of processes that execute ``arm`` of these files first; ``folder`` is for ours.

    Calls may be nested: hooks add up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(_SITE)
    paths = [str(folder), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    armed = [*filter(None, environment.get(HOOKS, "").split(os.pathsep)), *filter(None, hooks)]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        HOOKS: os.pathsep.join(dict.fromkeys(armed)),
    }
