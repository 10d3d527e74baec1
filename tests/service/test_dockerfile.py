"""The Dockerfile, as far as no engine is needed: what it copies, installs and starts is there."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

#: What may stand in a Dockerfile, of which this one needs no more.
INSTRUCTIONS = {
    "FROM",
    "RUN",
    "WORKDIR",
    "COPY",
    "USER",
    "VOLUME",
    "STOPSIGNAL",
    "ENTRYPOINT",
    "CMD",
}


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def of(instructions: list[tuple[str, str]], word: str) -> list[str]:
    return [rest for name, rest in instructions if name == word]


def test_it_begins_with_an_image_and_every_instruction_is_one(instructions: list[tuple[str, str]]) -> None:
    assert instructions[0][0] == "FROM"
    assert {word for word, _ in instructions} <= INSTRUCTIONS
    for word, rest in instructions:
        assert rest, f"{word} says nothing"
        shlex.split(rest)  # quotes are closed


def test_what_it_copies_is_there_and_not_ignored(instructions: list[tuple[str, str]]) -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [path for rest in of(instructions, "COPY") for path in shlex.split(rest)[:-1]]
    for path in copied:
        assert (ROOT / path).exists(), path
        assert path in allowed, f"{path} does not reach the engine"
    named = {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "penstock"}
    assert named <= set(copied), "what the build needs"


def test_its_python_is_one_that_the_project_takes(instructions: list[tuple[str, str]]) -> None:
    version = re.fullmatch(r"python:(\d+)\.(\d+)-slim", of(instructions, "FROM")[0])
    assert version is not None
    least = PROJECT["requires-python"].removeprefix(">=").split(".")
    assert [int(part) for part in version.groups()] >= [int(part) for part in least]
    assert f"Programming Language :: Python :: {version[1]}.{version[2]}" in PROJECT["classifiers"]


def test_it_installs_extras_and_starts_a_command_that_exist(instructions: list[tuple[str, str]]) -> None:
    extras = re.findall(r"'\.\[(\w+)\]'", " ".join(of(instructions, "RUN")))
    assert extras
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    command = json.loads(of(instructions, "ENTRYPOINT")[0])
    assert command[0] in PROJECT["scripts"]
    assert command[1:] == ["run"]


def test_it_does_not_run_as_root(instructions: list[tuple[str, str]]) -> None:
    words = [word for word, _ in instructions]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert of(instructions, "USER")[-1] != "root"
