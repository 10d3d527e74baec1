"""Wraps the prose of Markdown files: a line for each sentence, and none over 140 characters.

    python scripts/wrap_markdown.py           writes the files of the repository anew where they differ
    python scripts/wrap_markdown.py --check   names them instead, and fails

Paragraphs are touched and nothing else: headings, tables, code and HTML stay as they are. Words, and so what
is shown, never change.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

WIDTH = 140

#: No sentence ends with these, although they have a stop.
_ABBREVIATIONS = {"e.g.", "i.e.", "etc.", "cf.", "vs.", "fig.", "eq.", "approx.", "..."}
_ENDS = re.compile(r"[.!?][)\]\"']*$")
_BEGINS = re.compile(r"[(\[\"'*_!]*[^\W\d_a-z]|[(\[\"'*_!]*[0-9`]")
#: What would begin something else if a line began with it: a list, a quote, a heading, code, HTML.
_OPENS_A_BLOCK = re.compile(r"([-+*]|#{1,6}|\d+[.)]|=+|-+|[>|<].*|~~~.*|```.*)$")

_PARSER = MarkdownIt("commonmark").enable("table")


def wrapped(text: str) -> str:
    """The text with its paragraphs wrapped."""
    lines = text.split("\n")
    for begin, end, indent in reversed(list(_paragraphs(text))):
        if any(line.endswith(("  ", "\\")) for line in lines[begin : end - 1]):
            continue  # a line break that is shown
        prose = " ".join([lines[begin][indent:], *(line.strip() for line in lines[begin + 1 : end])])
        rows = [row for sentence in _sentences(prose) for row in _rows(sentence, WIDTH - indent)]
        first = lines[begin][:indent] + rows[0]
        lines[begin:end] = [first, *(" " * indent + row for row in rows[1:])]
    return "\n".join(lines)


def too_wide(text: str) -> Iterator[tuple[int, int]]:
    """The lines of prose that are too wide, with their lengths; an address may make one so."""
    lines = text.split("\n")
    for begin, end, _ in _paragraphs(text):
        for number in range(begin, end):
            if len(lines[number]) > WIDTH and "](" not in lines[number]:
                yield number + 1, len(lines[number])


def _paragraphs(text: str) -> Iterator[tuple[int, int, int]]:
    """First line, line behind the last, and the column where the text begins; quotes are left out."""
    lines, quotes = text.split("\n"), 0
    tokens = _PARSER.parse(text)
    for token, content in pairwise(tokens):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "paragraph_open" and not quotes and token.map is not None:
            begin, end = token.map
            yield begin, end, lines[begin].index(content.content.split("\n")[0])


def _sentences(prose: str) -> list[list[str]]:
    """The words of each sentence."""
    words = _words(prose)
    sentences: list[list[str]] = [[]]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        sentences[-1].append(word)
        if following and _ends_sentence(word, following):
            sentences.append([])
    return sentences


def _ends_sentence(word: str, following: str) -> bool:
    is_stop = _ENDS.search(word) and word.lower().lstrip("(") not in _ABBREVIATIONS
    return bool(is_stop and _BEGINS.match(following) and not _OPENS_A_BLOCK.match(following))


def _rows(words: list[str], width: int) -> list[str]:
    """A sentence in as few lines as it takes, about equally long."""
    rows = _filled(words, width)
    while len(narrower := _filled(words, width := width - 4)) == len(rows) > 1:
        rows = narrower
    return rows


def _filled(words: list[str], width: int) -> list[str]:
    rows = [words[0]]
    for word in words[1:]:
        if len(rows[-1]) + 1 + len(word) > width and not _OPENS_A_BLOCK.match(word):
            rows.append(word)
        else:
            rows[-1] += " " + word
    return rows


def _words(prose: str) -> list[str]:
    """What stands between blanks; a piece of code is one word."""
    words: list[str] = []
    ticks = ""  # that have begun a piece of code and not ended it
    for piece in prose.split(" "):
        if ticks:
            words[-1] += " " + piece
        elif piece:
            words.append(piece)
        for run in re.findall(r"`+", piece):
            ticks = "" if run == ticks else ticks or run
    return words


def markdown_files(root: Path) -> list[Path]:
    """Those that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return [root / name for name in listed.stdout.splitlines() if (root / name).exists()]


def main(arguments: list[str]) -> int:
    root = Path(__file__).parent.parent
    is_check = "--check" in arguments
    named = [Path(argument).resolve() for argument in arguments if not argument.startswith("-")]
    failures = []
    for path in named or markdown_files(root):
        text = path.read_text()
        new = wrapped(text)
        if new != text and is_check:
            failures.append(f"{path.relative_to(root)}: not wrapped at sentences; `make format` does it")
        elif new != text:
            path.write_text(new)
        for line, length in too_wide(new):
            failures.append(f"{path.relative_to(root)}: line {line} has {length} characters")
    print(*failures, sep="\n", end="\n" if failures else "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
