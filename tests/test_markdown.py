"""The Markdown files: wrapping changes no word of them, and every link leads somewhere."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from wrap_markdown import markdown_files, too_wide, wrapped  # noqa: E402

FILES = markdown_files(ROOT)
_LONG = "Every word of this sentence counts and there are many of them " * 3


def test_each_sentence_gets_a_line_of_its_own() -> None:
    text = "Read the group. A window, e.g. of 5 s, ends\n(it is whole). `late()` has it! And 3.5 stays.\n"
    assert wrapped(text).splitlines() == [
        "Read the group.",
        "A window, e.g. of 5 s, ends (it is whole).",
        "`late()` has it!",
        "And 3.5 stays.",
    ]


def test_long_sentences_are_broken_evenly_and_the_indent_of_lists_is_kept() -> None:
    begun, second, third = wrapped(f"- {_LONG.strip()}.\n  Then another.\n").splitlines()
    assert begun.startswith("- Every")
    assert second.startswith("  ")
    assert len(begun) <= 140
    assert abs(len(begun) - len(second)) < 20
    assert third == "  Then another."


@pytest.mark.parametrize("opening", ["-", "+", "*", "#", "3.", "4)", ">", "<div", "```", "==="])
def test_no_line_begins_with_what_opens_a_block(opening: str) -> None:
    text = f"{_LONG}and. {opening} is not what it looks like, {(opening + ' ') * 99}\n"
    assert _shown(wrapped(text)) == _shown(text)


@pytest.mark.parametrize(
    "text",
    [
        "| a. B | c |\n|---|---|\n| One. Two. | 3 |\n",
        "```\nOne. Two.\n```\n",
        "    One. Two.\n",
        "# One. Two.\n",
        "<p>\nOne. Two.\n</p>\n",
        "One.  \nTwo. Three\n",
        "> One. Two.\n",
    ],
    ids=["table", "fence", "code", "heading", "html", "shown break", "quote"],
)
def test_what_is_no_prose_stays(text: str) -> None:
    assert wrapped(text) == text


def test_a_piece_of_code_is_not_taken_apart() -> None:
    code = f"`{_LONG.strip()}`"
    lines = wrapped(f"It says {code}. More.\n").splitlines()
    assert lines == ["It says", f"{code}.", "More."]
    assert list(too_wide("\n".join(lines))) == [(2, len(lines[1]))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_wrapping_changes_nothing_that_is_shown_and_is_done_once(path: Path) -> None:
    text = path.read_text()
    new = wrapped(text)
    assert _shown(new) == _shown(text)
    assert wrapped(new) == new


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in _targets(path.read_text()):
        if re.match(r"[a-z]+:", target):
            continue  # another place
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), f"{target}: no such file"
        assert file.is_relative_to(ROOT), f"{target} leads out of the repository"
        if anchor:
            assert anchor in _anchors(file.read_text()), f"{target}: no such heading"


def _shown(text: str) -> str:
    """What a browser makes of it: blanks and ends of lines are alike, except in code."""
    html = MarkdownIt("commonmark").enable("table").render(text)
    parts = re.split(r"(<pre>.*?</pre>)", html, flags=re.DOTALL)
    return "".join(part if part.startswith("<pre>") else re.sub(r"\s+", " ", part) for part in parts)


def _targets(text: str) -> list[str]:
    """Where links and pictures lead."""
    inline = [token for token in MarkdownIt("commonmark").enable("table").parse(text) if token.children]
    inner = [child for token in inline for child in token.children or ()]
    return [str(child.attrs.get("href", child.attrs.get("src"))) for child in inner if child.attrs]


def _anchors(text: str) -> set[str]:
    """As the usual hosts name headings: small, without signs, a hyphen for each blank."""
    tokens = MarkdownIt("commonmark").parse(text)
    heads = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
