"""A disk on which the process dies at a chosen step: before it, halfway through a write, or after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.connectors.files import durable


class Crash(BaseException):
    """The process is gone: nothing of it runs any more, and no code of ours may catch this."""


class CrashingDisk:
    """Stands for the module ``os`` in the code that writes; counts its steps and dies at one of them."""

    def __init__(self, step: int | None, after: bool) -> None:
        self._left, self._after = step, after
        self.steps = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        return self._step(found) if name in ("fsync", "replace", "ftruncate", "write") else found

    def _step(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any) -> Any:
            self.steps += 1
            dies = self.steps == self._left
            if dies and not self._after:
                if call is os.write:
                    descriptor, data = args
                    os.write(descriptor, data[: len(data) // 2])
                raise Crash
            result = call(*args)
            if dies:
                raise Crash
            return result

        return step


@contextmanager
def crashing(step: int | None, after: bool) -> Iterator[CrashingDisk]:
    """Dies at that step of the code inside, counted from 1; None: never."""
    disk = CrashingDisk(step, after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "os", disk)
        yield disk
