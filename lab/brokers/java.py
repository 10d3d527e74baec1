"""Servers written in Java: which Java runs them, and their jars, which Maven keeps in the user's cache."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.brokers.server import ServerError

_SCRIPTS = Path(__file__).parent.parent.parent / "scripts"


def java_program() -> Path:
    """The program that runs Java 17 or newer."""
    return Path(_answer_of("find-java.sh")) / "bin" / "java"


def jars_of(name: str) -> Path:
    """The folder with the jars of ``scripts/jars/NAME.xml``, fetched if they are not there yet."""
    return Path(_answer_of("install-jars.sh", name))


def _answer_of(script: str, *arguments: str) -> str:
    done = subprocess.run([_SCRIPTS / script, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerError(f"a server of the tests is missing: run make servers; {done.stderr.strip()}")
    return done.stdout.strip()
