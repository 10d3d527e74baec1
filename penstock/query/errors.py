"""What goes wrong, said in three parts: what happened, the detail, and a hint that would help."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType, TracebackType


@dataclass(frozen=True)
class Origin:
    """The line of the user's file that wrote a step."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


UNKNOWN_ORIGIN = Origin("<unknown>", 0)


def caller_origin() -> Origin:
    """The innermost frame outside the package: the line that the user has to look at."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # by module, not by file: code that dataclasses make is ours too and has no file
        if frame.f_globals.get("__name__", "").partition(".")[0] != "penstock":
            return Origin(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return UNKNOWN_ORIGIN


class PenstockError(Exception):
    """Base of every error that Penstock raises on purpose."""


class QueryError(PenstockError):
    """A query that cannot run. Raised while it is built, never while data flows.

    Without an origin given it takes the user's line that is being run.

    >>> str(QueryError("unknown column 'sped'", step="filter", hint="try: speed", origin=UNKNOWN_ORIGIN))
    "unknown column 'sped': step 'filter'; try: speed"
    """

    def __init__(
        self,
        what: str,
        *,
        step: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.what, self.step, self.detail, self.hint = what, step, detail, hint
        self.origin = origin or caller_origin()
        super().__init__(what)

    def at(self, step: str) -> QueryError:
        """The same error, told which step it happened in. The innermost step wins."""
        self.step = self.step or step
        return self

    def __str__(self) -> str:
        details = [f"step '{self.step}'" if self.step else "", self.detail or ""]
        detail = " ".join(part for part in details if part)
        text = self.what + (f": {detail}" if detail else "")
        if self.hint:
            text += f"; {self.hint}"
        if self.origin != UNKNOWN_ORIGIN:
            text += f" (written at {self.origin})"
        return text


class Writing:
    """``with Writing("filter", name) as writing:`` tells every error inside which step it happened in.

    A step is called by the name its user gave it, else by the method that makes it.
    """

    def __init__(self, method: str, name: object = None) -> None:
        self.step = name if isinstance(name, str) and name else method
        self.origin = caller_origin()

    def __enter__(self) -> Writing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(error, QueryError):
            error.at(self.step)


class RunError(PenstockError):
    """A run that had to stop: names the step, the function and the first offending event."""


class FunctionError(RunError):
    """A user's function failed; ``what`` says how, without step, function and event."""

    what = ""
