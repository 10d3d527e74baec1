"""One name means one thing: no class name twice; packages speak the words of the glossary."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_SNOOP = "Snoop's operator: a pattern, and ps.detection.X, the same as predicates of a splitter"

#: Class names that two classes have, each with the reason. The source and the sink of one outside system have
#: its name anyway: ps.sources.X and ps.sinks.X.
HOMONYMS = {
    "Aperiodic": _SNOOP,
    "Conjunction": _SNOOP,
    "Disjunction": _SNOOP,
    "Periodic": _SNOOP,
    "Sequence": _SNOOP,
}


def classes() -> dict[str, list[str]]:
    """Every class of the package and the laboratory, with the places where the name is defined."""
    places = defaultdict(list)
    for top in ("penstock", "lab"):
        for path in sorted((ROOT / top).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return places


def is_homonym(places: list[str]) -> bool:
    """Whether a name means two things, and not one outside system in the two files of its folder."""
    files = [re.sub(r"^penstock/connectors/\w+/(\w+)\.py:\d+$", r"\1", place) for place in places]
    return len(files) > 1 and sorted(files) != ["sink", "source"]


def test_no_class_name_means_two_things() -> None:
    homonyms = {name: places for name, places in classes().items() if is_homonym(places)}
    assert {name: places for name, places in homonyms.items() if name not in HOMONYMS} == {}
    assert set(HOMONYMS) <= set(homonyms), "a reason for a name that is not there twice any more"


def glossary() -> set[str]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.split("\n## Words\n")[1].split("\n## ")[0]
    words = set(re.findall(r"^\| ([a-z ]+) \|", section, re.MULTILINE)) - {"word"}
    assert len(words) > 20
    return words


@pytest.mark.parametrize(
    "package",
    [path.parent.relative_to(ROOT) for path in sorted((ROOT / "penstock").rglob("__init__.py"))],
    ids=str,
)
def test_a_package_says_with_the_words_of_the_glossary_what_it_is(package: Path) -> None:
    docstring = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    sentence = docstring.split("\n\n")[0].lower()
    assert any(re.search(rf"\b{word}(s|es)?\b", sentence) for word in glossary()), (
        f"{package} begins {sentence!r}: name what it is about with a word of docs/architecture.md, Words"
    )
