"""State that cannot be used: what happened, the detail, and a hint that would help."""

from __future__ import annotations

from penstock.query.errors import PenstockError

#: A hint where a version of a checkpoint cannot be used.
GO_BACK = (
    "restore it from a copy, or go back with 'penstock checkpoint rollback CHECKPOINT --to VERSION', after "
    "'penstock checkpoint show CHECKPOINT', which lists the versions"
)


class StateError(PenstockError):
    """A checkpoint that is missing, damaged or of another app. Nothing was changed when it is raised.

    >>> str(StateError("no checkpoint", "version 7 in 'ckpt'", "versions there: 5, 6"))
    "no checkpoint: version 7 in 'ckpt'; versions there: 5, 6"
    """

    def __init__(self, what: str, detail: str, hint: str) -> None:
        self.what, self.detail, self.hint = what, detail, hint
        super().__init__(f"{what}: {detail}; {hint}")

    def __reduce__(self) -> tuple[type[StateError], tuple[str, str, str]]:
        return StateError, (self.what, self.detail, self.hint)  # it may cross from a task to the driver
