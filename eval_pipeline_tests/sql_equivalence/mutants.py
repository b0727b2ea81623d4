"""Damaged copies of gold queries, by a seeded generator: what the ladder has to tell from the gold."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import sqlglot
from sqlglot import exp

from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_tests import outside

DEFOG = outside.SQL / "defog"
DIALECT = "sqlite"
_OPPOSITE = {exp.GT: exp.GTE, exp.GTE: exp.GT, exp.LT: exp.LTE, exp.LTE: exp.LT}
_OTHER_AGGREGATE = {exp.Sum: exp.Avg, exp.Avg: exp.Sum, exp.Max: exp.Min, exp.Min: exp.Max, exp.Count: exp.Max}


@dataclass(frozen=True)
class Gold:
    """An accepted query of defog."""

    database: Path
    question: str
    sql: str


@dataclass(frozen=True)
class Mutant:
    """A pair to compare; mostly `expected` is the gold, and `generated` its damaged copy."""

    operator: str
    database: Path
    expected: str
    generated: str


def golds() -> list[Gold]:
    """Every accepted query of defog."""
    found = []
    for file in sorted(DEFOG.glob("*_sqlite.csv")):
        with file.open() as lines:
            for row in csv.DictReader(lines):
                database = DEFOG / "sqlite" / f"{row['db_name']}.sqlite"
                parts = [part.strip() for part in row["query"].split(";")]
                found += [Gold(database, row["question"], part) for part in parts if part]
    return found


def mutants(each: int, seed: int = 0) -> list[Mutant]:
    """So many mutants of each operator, or all there are."""
    rng = Random(seed)
    of_operator: dict[str, list[Mutant]] = {name: [] for name in OPERATORS}
    for gold in filter(_parses, golds()):
        schema = SqlSchema.from_database(gold.database)
        for name, operator in OPERATORS.items():
            for expected, generated in operator(gold.sql, schema, rng):
                if expected != generated:
                    of_operator[name].append(Mutant(name, gold.database, expected, generated))
    chosen = []
    for made in of_operator.values():
        different = list(dict.fromkeys(made))
        chosen += rng.sample(different, min(each, len(different)))
    return chosen


def _parses(gold: Gold) -> bool:
    try:
        sqlglot.parse_one(gold.sql, dialect=DIALECT)
    except sqlglot.ParseError:  # one has an expression after LIMIT
        return False
    return True


Pairs = Iterator[tuple[str, str]]


def _changed(sql: str, change: Callable[[exp.Expr], Iterator[Callable[[], None]]]) -> Pairs:
    """The query with each change made to a copy of its own."""
    count = len(list(change(sqlglot.parse_one(sql, dialect=DIALECT))))
    for number in range(count):
        tree = sqlglot.parse_one(sql, dialect=DIALECT)
        list(change(tree))[number]()
        yield sql, tree.sql(dialect=DIALECT)


def _dropped_filter(sql: str, schema: SqlSchema, rng: Random) -> Pairs:
    def change(tree: exp.Expr) -> Iterator[Callable[[], None]]:
        for where in tree.find_all(exp.Where, exp.Having):
            parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
            for part in parts:

                def drop(where: exp.Expr = where, part: exp.Expr = part, parts: list[exp.Expr] = parts) -> None:
                    kept = [other.copy() for other in parts if other is not part]
                    where.set("this", exp.and_(*kept)) if kept else where.pop()

                yield drop

    return _changed(sql, change)


def _strictness(sql: str, schema: SqlSchema, rng: Random) -> Pairs:
    def change(tree: exp.Expr) -> Iterator[Callable[[], None]]:
        for node in tree.find_all(*_OPPOSITE):
            yield lambda node=node: node.replace(_OPPOSITE[type(node)](this=node.left, expression=node.right))
        for node in tree.find_all(exp.Between):
            yield lambda node=node: node.replace(
                exp.and_(
                    exp.GT(this=node.this.copy(), expression=node.args["low"].copy()),
                    exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()),
                )
            )

    return _changed(sql, change)


def _join_kind(sql: str, schema: SqlSchema, rng: Random) -> Pairs:
    def change(tree: exp.Expr) -> Iterator[Callable[[], None]]:
        for join in tree.find_all(exp.Join):
            if join.args.get("on") is not None:
                yield lambda join=join: join.set("side", None if join.side else "LEFT") or join.set("kind", None)

    return _changed(sql, change)


def _dropped_distinct(sql: str, schema: SqlSchema, rng: Random) -> Pairs:
    def change(tree: exp.Expr) -> Iterator[Callable[[], None]]:
        for node in tree.find_all(exp.Distinct):
            if isinstance(node.parent, exp.Select):
                yield lambda node=node: node.parent.set("distinct", None)
            else:
                yield lambda node=node: node.replace(node.expressions[0])

    return _changed(sql, change)


def _wrong_aggregate(sql: str, schema: SqlSchema, rng: Random) -> Pairs:
    def change(tree: exp.Expr) -> Iterator[Callable[[], None]]:
        for node in tree.find_all(*_OTHER_AGGREGATE):
            if isinstance(node.this, exp.Column | exp.Case | exp.Binary):
                yield lambda node=node: node.replace(_OTHER_AGGREGATE[type(node)](this=node.this))
            elif isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
                yield lambda node=node: node.replace(exp.Max(this=node.this.expressions[0]))

    return _changed(sql, change)


def _unsafe_not_in(sql: str, schema: SqlSchema, rng: Random) -> Pairs:
    """NOT EXISTS in the expected query, NOT IN over a column that may be NULL in the generated one."""
    tree = sqlglot.parse_one(sql, dialect=DIALECT)
    first = tree.args.get("from_") or tree.args.get("from")
    if not isinstance(tree, exp.Select) or first is None or not isinstance(first.this, exp.Table):
        return
    table = schema.table(first.this.name)
    if table is None:
        return
    others = [
        (other, key, mine)
        for other in schema.tables
        for key in other.columns
        if key.nullable
        for mine in table.columns
        if mine.type == key.type and mine.type != "BOOLEAN"
    ]
    if not others:
        return
    other, key, mine = rng.choice(others)
    left = f"{first.this.alias_or_name}.{mine.name}"
    exists = f"NOT EXISTS (SELECT 1 FROM {other.name} AS x9 WHERE x9.{key.name} = {left})"
    inside = f"{left} NOT IN (SELECT x9.{key.name} FROM {other.name} AS x9)"
    yield tuple(tree.copy().where(condition, dialect=DIALECT).sql(dialect=DIALECT) for condition in (exists, inside))


OPERATORS: dict[str, Callable[[str, SqlSchema, Random], Pairs]] = {
    "dropped_filter": _dropped_filter,
    "strictness": _strictness,
    "join_kind": _join_kind,
    "dropped_distinct": _dropped_distinct,
    "wrong_aggregate": _wrong_aggregate,
    "unsafe_not_in": _unsafe_not_in,
}
