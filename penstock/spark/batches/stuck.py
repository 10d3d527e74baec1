"""Where a batch stays that does not end: processes that run tasks note which step's turn goes on and on, and
a run that is being stopped reads it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
import time
from collections.abc import Iterable
from uuid import uuid4
from weakref import WeakKeyDictionary

from penstock.engine.seat.inline import InlineEngine
from penstock.engine.turns.long_turns import LongTurns, left_behind
from penstock.query.errors import RunError
from penstock.state.files import Folder

_LOOK_S = 1.0  # a turn that goes on from one look to the next is noted, at each look anew
_SUFFIX = ".turn"


class TurnNotes:
    """The notes in the folder of results on their way, which tasks and the driver share."""

    def __init__(self, folder: str) -> None:
        self._folder = Folder(folder)

    def forget(self) -> None:
        """What was noted so far: whoever still hangs notes it again."""
        for name in self._names():
            self._folder.remove(name)

    def steps(self) -> list[str]:
        """The steps that hang; waits for the next look of all processes."""
        until_s = time.monotonic() + 3 * _LOOK_S
        while not (names := self._names()) and time.monotonic() < until_s:
            time.sleep(_LOOK_S / 10)
        steps: set[str] = set()
        for name in names:
            with contextlib.suppress(OSError, ValueError):  # it ends just now
                steps.update(json.loads(self._folder.read(name).to_pybytes()))
        return sorted(steps)

    def _names(self) -> list[str]:
        return [name for name in self._folder.names() if name.endswith(_SUFFIX)]


class Grace:
    """The time that a batch at hand has when its run is stopped; None: any."""

    def __init__(self, grace_s: float | None) -> None:
        self._grace_s = grace_s
        self._until_s = math.inf

    def begin(self) -> None:
        """The first call counts."""
        if self._grace_s is not None and self._until_s == math.inf:
            self._until_s = time.monotonic() + self._grace_s

    def acquire(self, lock: threading.Lock) -> bool:
        """Takes the lock if it comes free in time."""
        if self._until_s == math.inf:
            return lock.acquire()
        return lock.acquire(timeout=max(0.0, self._until_s - time.monotonic()))

    def error(self, sinks: Iterable[str], notes: TurnNotes) -> RunError:
        """The error that names what hangs: sinks that are being written, or else steps in tasks."""
        names = [f"the sink of query '{query}'" for query in sorted(sinks)]
        names = names or [f"step '{step}'" for step in notes.steps()] or ["the batch at hand"]
        return RunError(left_behind(" and ".join(names), self._grace_s or 0.0))


def watch(engine: InlineEngine, folder: str | None) -> None:
    """From now on turns of this engine that do not end are noted in the folder."""
    if folder is None:
        return
    with _LOCK:
        _WATCHED[engine] = (LongTurns(engine.vertices), Folder(folder))
        if _LOOKING.get("process") != os.getpid():
            _LOOKING["process"] = os.getpid()
            threading.Thread(target=_look, name="penstock-long-turns", daemon=True).start()


_LOCK = threading.Lock()
_WATCHED: WeakKeyDictionary[InlineEngine, tuple[LongTurns, Folder]] = WeakKeyDictionary()
_LOOKING: dict[str, int] = {}  # the process whose thread looks: none comes along with a fork


def _look() -> None:
    name = f"{uuid4().hex}{_SUFFIX}"
    noted: set[str] = set()
    while True:
        time.sleep(_LOOK_S)
        hung: dict[str, tuple[Folder, list[str]]] = {}
        with _LOCK:
            for turns, folder in _WATCHED.values():
                steps = [vertex.operator.node.id for vertex in turns.look()]
                if steps:
                    hung.setdefault(folder.path, (folder, []))[1].extend(steps)
        for folder, steps in hung.values():
            with contextlib.suppress(OSError):  # the folder may be gone with its run
                folder.remove(name)
                folder.write_fleeting(name, [json.dumps(steps).encode()])
                noted.add(folder.path)
        for path in noted - hung.keys():
            with contextlib.suppress(OSError):
                Folder(path).remove(name)
        noted &= hung.keys()
