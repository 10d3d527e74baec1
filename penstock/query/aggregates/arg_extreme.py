"""What ``arg_min`` and ``arg_max`` have in common."""

from __future__ import annotations

from penstock.query.aggregates.aggregate import AggregateFunction, needs_number
from penstock.query.expr import Expr
from penstock.query.inference import Typed


class ArgExtreme(AggregateFunction):
    """One expression where another is the least or the greatest; events where one of both is null are passed
    over."""

    in_order = True  # of equal ones the earliest
    of_none = None

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        needs_number(self.name, operands[1], types[1], or_time=True)
        return Typed(types[0].dtype, types[0].nullable or types[1].nullable)
