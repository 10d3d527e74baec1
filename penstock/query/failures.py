"""What happens when a user's function fails: the run stops, or the event is set aside with the error."""

from __future__ import annotations

from enum import Enum

from penstock.query.errors import QueryError
from penstock.query.types import DataType, Field, Schema

#: What a failed event has besides its own columns: ``ValueError: too long``, and the step's id.
ERROR = Field("error", DataType.STRING)
STEP = Field("step", DataType.STRING)


class OnError(Enum):
    """What becomes of an event for which a function raises, or returns what does not fit."""

    STOP = "stop"  # the run ends and names the step, the function and the event
    SET_ASIDE = "set_aside"  # the event leaves by the step's failed output, and changes nothing else


def failed_schema(events: Schema, nulls_beside: tuple[str, ...] | None = None) -> Schema:
    """The columns of a failed output over these events.

    A timer that fails is no event: with ``nulls_beside`` all columns but these can be null.
    """
    for field in (ERROR, STEP):
        if field.name in events:
            raise QueryError(
                f"column '{field.name}' is taken by the failed output",
                hint=f"rename it before the step: .rename({field.name}='{field.name}_before')",
            )
    if nulls_beside is None:
        return Schema([*events, ERROR, STEP])
    fields = [Field(one.name, one.dtype, one.nullable or one.name not in nulls_beside) for one in events]
    return Schema([*fields, ERROR, STEP])
