"""SQL expressions inside of ``MATCH_RECOGNIZE`` as expressions over events and what is bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from sqlglot import exp

from penstock.query.errors import QueryError
from penstock.query.expr import Expr, coalesce, col, greatest, least, lit, when
from penstock.query.patterns.bound import bound, previous
from penstock.query.types import Schema


class ExpressionScope(Enum):
    """Where an expression stands: in DEFINE the row that is tested counts as bound already."""

    DEFINE = "DEFINE"
    MEASURES = "MEASURES"


def _remainder(a: Expr, b: Expr) -> Expr:
    """SQL's ``%`` has the sign of the left side, the language's that of the right side, as in Python."""
    left = a % b
    return when(((a < 0) & (left > 0)) | ((a > 0) & (left < 0)), left - b).otherwise(left)


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: lambda a, b: a / b,
    exp.Mod: _remainder,
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.And: lambda a, b: a & b,
    exp.Or: lambda a, b: a | b,
}
_AGGREGATES = {exp.Sum: "sum", exp.Min: "min", exp.Max: "max", exp.Avg: "avg", exp.Count: "count"}
_SUPPORTED = (
    "supported are columns, constants, + - * / %, comparisons, AND OR NOT, BETWEEN, IN, IS NULL, CASE, "
    "COALESCE, ABS, PREV, FIRST, LAST, COUNT, SUM, AVG, MIN, MAX"
)


class Reading:
    """Reads expressions of one clause; in DEFINE, ``variable`` is the one that is being defined."""

    def __init__(
        self, schema: Schema, variables: Sequence[str], scope: ExpressionScope, variable: str | None = None
    ) -> None:
        self._schema, self._variables = schema, variables
        self._scope, self._variable = scope, variable

    def expr(self, tree: Any) -> Expr:
        """The same in Penstock's words."""
        if type(tree) in _BINARY:
            return _expr(_BINARY[type(tree)](self.expr(tree.left), self.expr(tree.right)))
        match tree:
            case exp.Paren():
                return self.expr(tree.this)
            case exp.Column():
                return self._value(tree)
            case exp.Literal():
                return lit(tree.name if tree.is_string else _number(tree.name))
            case exp.Boolean():
                return lit(bool(tree.this))
            case exp.Not():
                return ~self.expr(tree.this)
            case exp.Neg():
                return -self.expr(tree.this)
            case exp.Abs():
                return self.expr(tree.this).abs()
            case exp.Is() if isinstance(tree.expression, exp.Null):
                return self.expr(tree.this).is_null()
            case exp.Between():
                return self.expr(tree.this).between(self.expr(tree.args["low"]), self.expr(tree.args["high"]))
            case exp.In() if all(isinstance(one, exp.Literal) for one in tree.expressions):
                values = [one.name if one.is_string else _number(one.name) for one in tree.expressions]
                return self.expr(tree.this).is_in(values)
            case exp.Coalesce():
                return coalesce(self.expr(tree.this), *map(self.expr, tree.expressions))
            case exp.Case() if tree.this is None:
                return self._case(tree)
            case exp.First() | exp.Last():
                return self._end(tree, "first" if isinstance(tree, exp.First) else "last")
            case exp.Anonymous() if str(tree.this).upper() == "PREV":
                return self._previous(tree)
        if type(tree) in _AGGREGATES:
            return self._aggregate(tree, _AGGREGATES[type(tree)])
        raise self._unsupported(tree)

    def _value(self, tree: Any) -> Expr:
        """A column: of the tested row, of the last row of another variable, of the last row of the match."""
        name, variable = self._column(tree)
        if self._scope is ExpressionScope.DEFINE:
            return col(name) if variable in (None, self._variable) else bound(variable)[name]
        return previous(name) if variable is None else bound(variable)[name]

    def _end(self, tree: Any, function: str) -> Expr:
        """FIRST and LAST; ``LAST(A.x, 1)`` in the definition of A is the A before the row that is tested."""
        extra = tree.expressions if tree.args.get("expressions") else []
        back = tree.args.get("expression") or (extra[0] if extra else None)
        name, variable = self._column(tree.this)
        own = self._scope is ExpressionScope.DEFINE and variable in (None, self._variable)
        if variable is None:
            raise self._unsupported(tree, "write FIRST(A.x): it needs a variable")
        if back is not None:
            if own and function == "last" and back.name == "1":
                return bound(variable)[name]
            raise self._unsupported(tree, "an offset is supported in LAST(A.x, 1), in the definition of A")
        if not own:
            return bound(variable).first(name) if function == "first" else bound(variable)[name]
        if function == "last":
            return col(name)
        return when(bound(variable).count() == 0, col(name)).otherwise(bound(variable).first(name))

    def _previous(self, tree: Any) -> Expr:
        if self._scope is not ExpressionScope.DEFINE or len(tree.expressions) != 1:
            raise self._unsupported(tree, "PREV(A.x) is supported in DEFINE, one row back")
        name, variable = self._column(tree.expressions[0])
        if variable not in (None, self._variable):
            raise self._unsupported(tree, f"in the definition of {self._variable} write PREV({name})")
        return previous(name)

    def _aggregate(self, tree: Any, function: str) -> Expr:
        inside = tree.this
        if not isinstance(inside, exp.Column):
            raise self._unsupported(tree, f"write {function.upper()}(A.x) of a variable's column")
        name: str | None = None
        variable: str | None = inside.table
        if not isinstance(inside.this, exp.Star):
            name, variable = self._column(inside)
        if not variable or variable not in self._variables or (name is None and function != "count"):
            raise self._unsupported(tree, f"write {function.upper()}(A.x) of a variable's column")
        nullable = name is not None and self._schema[name].nullable
        own = self._scope is ExpressionScope.DEFINE and variable == self._variable
        if nullable and (function == "count" or (own and function == "avg")):
            raise self._unsupported(tree, f"'{name}' may be null: count rows with COUNT({variable}.*)")
        events = bound(variable)
        if function == "count":
            return events.count() + 1 if own else events.count()
        assert name is not None
        so_far: Expr = getattr(events, function)(name)
        if not own:
            return so_far
        current = col(name)
        if function == "min":
            return least(so_far, current)
        if function == "max":
            return greatest(so_far, current)
        total = coalesce(events.sum(name), 0) + current
        if function == "avg":
            return total.cast("float64") / (events.count() + 1)
        return when(current.is_null(), so_far).otherwise(total) if nullable else total

    def _case(self, tree: Any) -> Expr:
        first, *others = [(self.expr(one.this), self.expr(one.args["true"])) for one in tree.args["ifs"]]
        chosen = when(*first)
        for condition, value in others:
            chosen = chosen.when(condition, value)
        default = tree.args.get("default")
        return chosen if default is None else chosen.otherwise(self.expr(default))

    def _column(self, tree: Any) -> tuple[str, str | None]:
        if not isinstance(tree, exp.Column) or isinstance(tree.this, exp.Star):
            raise self._unsupported(tree, "a column is needed here")
        if tree.table and tree.table not in self._variables:
            raise QueryError(
                f"'{tree.table}' is not a variable of the PATTERN",
                detail=f"in {tree.sql()}",
                hint=f"variables here: {', '.join(self._variables)}",
            )
        return self._schema[tree.name].name, tree.table or None

    def _unsupported(self, tree: Any, hint: str = _SUPPORTED) -> QueryError:
        where = self._scope.value + (f" of {self._variable}" if self._variable else "")
        text = tree.sql() if isinstance(tree, exp.Expression) else str(tree)
        if "MATCH_NUMBER" in text.upper() or "CLASSIFIER" in text.upper():
            hint = (
                "ALL ROWS PER MATCH gives the variable as column 'event', and match_start tells matches apart"
            )
        return QueryError(f"{text} is not supported in {where}", hint=hint)


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _expr(value: Any) -> Expr:
    assert isinstance(value, Expr)
    return value
