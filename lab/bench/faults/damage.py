"""Damage to files: every kind of file of a run, and what may become of one."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

#: What the files of a run are called in the table, by their paths below its folder; the first that fits.
_KINDS = (
    (r"checkpoint/state/manifests/.*", "manifests"),
    (r"checkpoint/state/data/.*", "state"),
    (r"checkpoint/spark/.*", "Spark's logs"),
    (r"checkpoint/(sources|spark-sources)/.*", "sources' notes"),
    (r"checkpoint/shipped/.*", "shipped objects"),
    (r"checkpoint/.*", "rest of the checkpoint"),
    (r"out/.*\.parquet", "Parquet output"),
    (r"out/[^/]*\.csv", "CSV output"),
    (r"out/[^/]*\.jsonl", "JSON lines output"),
    (r"out/\.[^/]*", "notes beside the output"),
    (r"input/.*", "input that was read"),
)
#: Output that is the user's own: Penstock neither reads nor knows it.
_OF_THE_USER = r"out/(best|ticks)/.*"


class Damage(StrEnum):
    """What happens to a file."""

    BIT_FLIP = "bit flip"
    TRUNCATION = "truncation"
    EMPTYING = "emptying"
    DELETION = "deletion"
    SWAP = "swap"  # of the contents of two files of a kind


def kinds_of_files(root: Path) -> dict[str, list[Path]]:
    """The files of a run that a fault may meet, by kind."""
    found: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if not path.is_file() or re.fullmatch(_OF_THE_USER, name):
            continue
        kind = next((kind for pattern, kind in _KINDS if re.fullmatch(pattern, name)), "others")
        if kind != "input that was read" or int(path.stem) == 0:
            found.setdefault(kind, []).append(path)
    return found


def damage(what: Damage, path: Path, beside: list[Path], choose: random.Random) -> list[Path]:
    """Does it; returns the files that are no longer what they were, none where it is not possible."""
    match what:
        case Damage.SWAP:
            others = [other for other in beside if other != path and _differ(other, path)]
            if not others:
                return []
            other = choose.choice(others)
            mine, its = path.read_bytes(), other.read_bytes()
            _overwrite(path, its)
            _overwrite(other, mine)
            return [path, other]
        case Damage.DELETION:
            path.unlink()
            return [path]
        case _:
            data = path.read_bytes()
            if not data:
                return []
            _overwrite(path, _CHANGES[what](data, choose))
            return [path]


def _flipped(data: bytes, choose: random.Random) -> bytes:
    place = choose.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << choose.randrange(8)]) + data[place + 1 :]


_CHANGES: dict[Damage, Callable[[bytes, random.Random], bytes]] = {
    Damage.BIT_FLIP: _flipped,
    Damage.TRUNCATION: lambda data, choose: data[: choose.randrange(len(data))],
    Damage.EMPTYING: lambda data, choose: b"",
}


def _overwrite(path: Path, data: bytes) -> None:
    """As a broken disk does it: the times of the file stay."""
    stat = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _differ(one: Path, other: Path) -> bool:
    return one.read_bytes() != other.read_bytes()
