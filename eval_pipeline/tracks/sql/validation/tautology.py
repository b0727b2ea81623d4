"""Filters that hold for every row: the mark of an injected condition.

Conditions of joins are not looked at: there `ON 1 = 1` is a way to write a cross join.
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
"""What has no column in it and is no constant all the same."""
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
    """The filters, and the alternatives within filters, that hold whatever the row, as SQL.

    A condition that is true beside others that are not, `WHERE 1 = 1 AND x = 2`, filters as much as they do.
    """
    for clause in statement.find_all(*_CLAUSES):
        parts = [part for node in clause.this.walk(prune=_is_query) for part in _open_doors(node)]
        if not parts and _holds(clause.this):
            parts = [clause.this]
        yield from (part.sql(comments=False) for part in parts)


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _open_doors(node: exp.Expr) -> Iterator[exp.Expr]:
    """Of alternatives those that let every row through; all of them where they do so together."""
    if not isinstance(node, exp.Or | exp.Xor) or isinstance(node.parent, type(node)):
        return  # a chain is looked at once, from its top
    alternatives = list(node.flatten())
    yield from filter(_holds, alternatives)
    if _complement_each_other(alternatives):
        yield node


def _holds(condition: exp.Expr) -> bool:
    """Whether a condition is true for every row, NULLs apart."""
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
    """Whether a condition is true for no row."""
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
    """Whether nothing in it depends on the data or on the moment."""
    if condition.find(exp.Column, exp.Table, exp.AggFunc, *_MOVING):
        return False
    return not any(literal.is_string and literal.name.lower() == "now" for literal in condition.find_all(exp.Literal))


def _is_false(condition: exp.Expr) -> bool:
    """Whether a constant condition is plainly false; one that cannot be worked out counts as true."""
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
    """Whether a condition on columns is true by its form: `x = x`, `x LIKE '%'`, `length(x) >= 0`."""
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
    """As SQL without regard to the case and the quotes of names: `ID = "id"` compares a column with itself."""
    return node.sql(comments=False).lower().replace('"', "")


def _bare(side: exp.Expr) -> exp.Expr:
    """One side of a comparison without brackets and without what changes nothing, `+ 0` or `|| ''`."""
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
        case exp.SimilarTo():  # wildcards of the standard, regular expressions in DuckDB
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
    """Whether two alternatives leave nothing between them but NULL: `x = 1 OR x <> 1`."""
    parts = [_spelled_out(part.unnest()) for part in alternatives]
    kinds = {type(part) for part in parts}
    if exp.Not not in kinds and not any(_COMPLEMENTS.get(kind) in kinds for kind in kinds):
        return False  # long lists of `x = 1 OR x = 2` are not to be spelled out
    told = {_text(part) for part in parts}
    return any(_negation(part) in told for part in parts)


def _spelled_out(condition: exp.Expr) -> exp.Expr:
    """`NOT x IS NULL` for what some dialects parse as one negated comparison."""
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
