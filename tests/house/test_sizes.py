"""A file is one idea, and a folder a room: neither grows beyond what a reader takes in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES = 500
MOST_MODULES = 25

FILES = [
    path
    for top in ("penstock", "lab", "tests", "examples", "scripts")
    for path in sorted((ROOT / top).rglob("*.py"))
]


def test_no_file_is_longer_than_a_reader_follows() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_no_folder_has_more_modules_than_a_reader_overlooks() -> None:
    rooms = Counter(str(path.parent.relative_to(ROOT)) for path in FILES if path.name != "__init__.py")
    assert {room: count for room, count in rooms.items() if count > MOST_MODULES} == {}
