"""What users are told when Spark cannot be used."""

from __future__ import annotations

from penstock.query.errors import PenstockError


class SparkError(PenstockError):
    """Spark cannot be used. Says what happened, the detail, and a hint that would help."""

    def __init__(self, what: str, *, detail: str, hint: str) -> None:
        self.what, self.detail, self.hint = what, detail, hint
        super().__init__(f"{what}: {detail}; {hint}")
