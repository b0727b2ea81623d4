"""Compares the syntax trees of two queries: their tables, filters and aggregates."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp

from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
from eval_pipeline.sql_equivalence.syntax.tables_in import base_tables
from eval_pipeline.tracks.sql.words import AGGREGATES, FILTERS, TABLES


@lru_cache(maxsize=4096)
def parsed(sql: str, dialect: str) -> exp.Expr | None:
    """Returns the syntax tree of a query, which must not be changed; None if it does not parse."""
    try:
        return parse_statement(sql, dialect)
    except SqlSyntaxError:
        return None


def differences(generated: str, expected: str, dialect: str) -> frozenset[str]:
    """Returns which of tables, filters and aggregates differ; empty if one of the queries does not parse.

    Filters are compared by operator, negation, columns and literals; their order and aliases of tables are ignored.
    """
    one, other = parsed(generated, dialect), parsed(expected, dialect)
    if one is None or other is None:
        return frozenset()
    compared = (
        (TABLES, base_tables(one), base_tables(other)),
        (FILTERS, _filters(one), _filters(other)),
        (AGGREGATES, _aggregates(one), _aggregates(other)),
    )
    return frozenset(name for name, left, right in compared if left != right)


def _aggregates(statement: exp.Expr) -> Counter[str]:
    return Counter(f"{node.key}{' distinct' * _distinct(node)}" for node in statement.find_all(exp.AggFunc))


def _distinct(node: exp.Expr) -> bool:
    return isinstance(node.this, exp.Distinct)


def _filters(statement: exp.Expr) -> Counter[tuple[object, ...]]:
    return Counter(
        (
            atom.key,
            _is_negated(atom),
            tuple(sorted(c.name.lower() for c in atom.find_all(exp.Column))),
            *_literals(atom),
        )
        for clause in statement.find_all(exp.Where, exp.Having, exp.Qualify)
        for atom in atoms(clause.this)
    )


def _is_negated(atom: exp.Expr) -> bool:
    """Returns whether an odd number of NOTs applies to a condition within its clause; `NOT LIKE` counts separately."""
    negated, above = bool(atom.args.get("negate")), atom.parent
    while isinstance(above, exp.Not | exp.Paren | exp.Connector):
        negated ^= isinstance(above, exp.Not)
        above = above.parent
    return negated


def _literals(atom: exp.Expr) -> Iterator[str]:
    yield from sorted(literal.this.lower() for literal in atom.find_all(exp.Literal))


def atoms(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the conditions that AND, OR, NOT and parentheses connect."""
    if isinstance(condition, exp.Connector):
        yield from atoms(condition.left)
        yield from atoms(condition.right)
    elif isinstance(condition, exp.Paren | exp.Not):
        yield from atoms(condition.this)
    else:
        yield condition
