"""Finds filters that hold for every row, which are typical of an injected condition.

Conditions of joins are not checked, because `ON 1 = 1` is a common way to write a cross join.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.simplify import simplify

_CLAUSES = (exp.Where, exp.Having, exp.Qualify, exp.PreWhere)
_MOVING = (
    *(exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentDatetime),
    *(exp.Rand, exp.Placeholder, exp.Parameter, exp.Window),
)
"""Expressions that have no column but are not constant either."""
_REFLEXIVE = (exp.EQ, exp.GTE, exp.LTE, exp.NullSafeEQ, exp.Is, exp.Like, exp.ILike, exp.RegexpLike, exp.Glob)
_IRREFLEXIVE = (exp.NEQ, exp.LT, exp.GT, exp.NullSafeNEQ)
_NEUTRAL: dict[type[exp.Expr], str] = {exp.Add: "0", exp.Sub: "0", exp.Mul: "1", exp.Div: "1", exp.DPipe: ""}
_NEVER_NEGATIVE = (exp.Length, exp.Abs, exp.Count, exp.CountIf)
_COMPLEMENTS: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}


def tautologies(statement: exp.Expr) -> Iterator[str]:
    """Yields as SQL the filters, and alternatives within filters, that hold for every row.

    A true condition that is combined by AND with others, as in `WHERE 1 = 1 AND x = 2`, has no effect and is allowed.
    """
    for clause in statement.find_all(*_CLAUSES):
        parts = [part for node in clause.this.walk(prune=_is_query) for part in _open_doors(node)]
        if not parts and _holds(clause.this):
            parts = [clause.this]
        yield from (part.sql(comments=False) for part in parts)


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _open_doors(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the alternatives that are true for every row; all of them if only together they are."""
    if not isinstance(node, exp.Or | exp.Xor) or isinstance(node.parent, type(node)):
        return  # a chain is checked once, from its top
    alternatives = list(node.flatten())
    yield from filter(_holds, alternatives)
    if _complement_each_other(alternatives):
        yield node


def _holds(condition: exp.Expr) -> bool:
    """Returns whether a condition is true for every row, ignoring NULLs."""
    if _is_constant(condition):
        return not _is_false(condition)
    match condition:
        case exp.Paren():
            return _holds(condition.this)
        case exp.Not():
            return _never_holds(condition.this)
        case exp.And():
            return all(_holds(part) for part in condition.flatten())
        case exp.Or():
            return any(_holds(part) for part in condition.flatten())
    return _holds_by_form(condition)


def _never_holds(condition: exp.Expr) -> bool:
    """Returns whether a condition is true for no row."""
    if _is_constant(condition):
        return _is_false(condition)
    match condition:
        case exp.Paren():
            return _never_holds(condition.this)
        case exp.Not():
            return _holds(condition.this)
        case exp.And():
            return any(_never_holds(part) for part in condition.flatten())
        case exp.Or():
            return all(_never_holds(part) for part in condition.flatten())
    return isinstance(condition, _IRREFLEXIVE) and _same(condition.this, condition.expression)


def _is_constant(condition: exp.Expr) -> bool:
    """Returns whether an expression depends neither on the data nor on the time of the query."""
    if condition.find(exp.Column, exp.Table, exp.AggFunc, *_MOVING):
        return False
    return not any(literal.is_string and literal.name.lower() == "now" for literal in condition.find_all(exp.Literal))


def _is_false(condition: exp.Expr) -> bool:
    """Returns whether a constant condition is clearly false; one that cannot be evaluated counts as true."""
    try:
        found = simplify(condition.copy()).unnest()
    except (SqlglotError, TypeError, ValueError, ArithmeticError):
        return False
    if isinstance(found, exp.Boolean):
        return not found.this
    if isinstance(found, exp.Literal):
        return found.name in {"", "0"}
    return isinstance(found, exp.Null)


def _holds_by_form(condition: exp.Expr) -> bool:
    """Returns whether a condition on columns is always true: `x = x`, `x LIKE '%'`, `length(x) >= 0`."""
    if condition.args.get("negate"):
        return False
    match condition:
        case exp.Between():
            return _same(condition.this, condition.args["low"]) and _same(condition.this, condition.args["high"])
        case exp.In():
            return any(
                _same(condition.this, item) for item in condition.expressions if not isinstance(item, exp.Literal)
            )
    if isinstance(condition, _REFLEXIVE) and _same(condition.this, condition.expression):
        return True
    return _matches_everything(condition) or _is_never_negative(condition)


def _same(left: exp.Expr, right: exp.Expr) -> bool:
    left, right = _bare(left), _bare(right)
    if type(left) is not type(right) or isinstance(left, exp.Query | exp.Null) or left.find(*_MOVING):
        return False
    return left == right or (_text(left) == _text(right) and not left.find(exp.Literal))


def _text(node: exp.Expr) -> str:
    """Returns SQL that ignores case and quotes of names, so that `ID = "id"` compares a column with itself."""
    return node.sql(comments=False).lower().replace('"', "")


def _bare(side: exp.Expr) -> exp.Expr:
    """Returns one side of a comparison without parentheses and operations without effect, such as `+ 0` or `|| ''`."""
    side = side.unnest()
    neutral = _NEUTRAL.get(type(side))
    if neutral is not None and isinstance(side.expression, exp.Literal) and side.expression.name == neutral:
        return _bare(side.this)
    return side


def _matches_everything(condition: exp.Expr) -> bool:
    pattern = condition.args.get("expression")
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return False
    match condition:
        case exp.Like() | exp.ILike():
            return bool(pattern.name) and not pattern.name.strip("%")
        case exp.SimilarTo():  # standard wildcards, but regular expressions in DuckDB
            return pattern.name in {"%", ".*"}
        case exp.Contains() | exp.StartsWith() | exp.EndsWith():
            return not pattern.name
        case exp.Glob():
            return bool(pattern.name) and not pattern.name.strip("*")
        case exp.RegexpLike() | exp.RegexpILike():
            return pattern.name.removeprefix("^").removesuffix("$") in {"", ".*"}
    return False


def _is_never_negative(condition: exp.Expr) -> bool:
    if not isinstance(condition, exp.GTE | exp.GT) or not isinstance(condition.this, _NEVER_NEGATIVE):
        return False
    bound = condition.expression.unnest()
    if isinstance(condition, exp.GTE) and isinstance(bound, exp.Literal):
        return bound.name == "0"
    return isinstance(bound, exp.Neg)


def _complement_each_other(alternatives: Sequence[exp.Expr]) -> bool:
    """Returns whether two alternatives together cover everything but NULL, as in `x = 1 OR x <> 1`."""
    parts = [_spelled_out(part.unnest()) for part in alternatives]
    kinds = {type(part) for part in parts}
    if exp.Not not in kinds and not any(_COMPLEMENTS.get(kind) in kinds for kind in kinds):
        return False  # saves time for long lists of `x = 1 OR x = 2`
    told = {_text(part) for part in parts}
    return any(_negation(part) in told for part in parts)


def _spelled_out(condition: exp.Expr) -> exp.Expr:
    """Rewrites to `NOT x IS NULL` what some dialects parse as one negated comparison."""
    if not condition.args.get("negate"):
        return condition
    positive = condition.copy()
    positive.set("negate", None)
    return exp.Not(this=positive)


def _negation(condition: exp.Expr) -> str:
    if isinstance(condition, exp.Not):
        return _text(condition.this.unnest())
    if not isinstance(condition, exp.Binary) or type(condition) not in _COMPLEMENTS:
        return _text(exp.Not(this=condition.copy()))
    opposite = _COMPLEMENTS[type(condition)]
    return _text(opposite(this=condition.this.copy(), expression=condition.expression.copy()))
