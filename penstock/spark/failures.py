"""What went wrong on Spark, in Penstock's words: errors of tasks and of the stream come wrapped in long
traces."""

from __future__ import annotations

import re

from penstock.query.errors import PenstockError, RunError

# The last line of a Python traceback that one of our own errors made, wherever it stands in the text.
_OURS = re.compile(r"^(?:\s*)penstock\.[\w.]*Error: (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)


def told_by_spark(error: BaseException) -> BaseException:
    """One clear error for whatever Spark raised; an error of Penstock's that travelled through it comes back
    as it was said."""
    if isinstance(error, PenstockError) or not isinstance(error, Exception):
        return error
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        return RunError(ours[-1].strip())
    python = [f"{kind}: {what}" for kind, what in _PYTHON.findall(text) if "py4j" not in kind]
    if python:
        return RunError(f"a task on Spark failed: {python[-1].strip()}")
    return RunError(f"Spark failed: {_root(text) or type(error).__name__}")


def _root(text: str) -> str:
    """The line of a JVM's trace that says what it all began with."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else "".join(lines[:1]).lstrip(": ")
