"""The rules of the dispatcher: what it does beside the policy, for every policy alike, with a switch each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """What decides beside the policy. A result never depends on it.

    passes: an operator is given out together with all operators behind it, if they are few, nobody else
        writes to them and the policy puts them first.
    alone: where turns are so short that a second worker would cost more than it brings, one takes them all.
    together: a worker takes several short sources with one decision, also those whose time is near.
    patience: a source that was read empty waits for a beat that it has in common with the others, the longer
        the less time workers have; else for an epoch.
    staying: where there are more workers than sources, a source that has more stays with its worker.
    bounded: an operator in a pass takes no more events than it would by itself; else all that has come.
    """

    passes: bool = True
    alone: bool = True
    together: bool = True
    patience: bool = True
    staying: bool = True
    bounded: bool = False

    @classmethod
    def none(cls) -> Rules:
        """The policy decides every turn."""
        return cls(False, False, False, False, False)
