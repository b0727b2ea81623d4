"""A fuzzer that knows nothing of the ladder: many databases of shapes drawn at random, in SQLite, as it comes.

It asks for ten times as many databases as the ladder does, from other seeds, and compares results by itself.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from random import Random
from typing import Any

from eval_pipeline_plugins.sql_equivalence.generated.checks import Checks
from eval_pipeline_plugins.sql_equivalence.generated.databases import DatabaseMaker
from eval_pipeline_plugins.sql_equivalence.generated.memory import for_sqlite
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline_plugins.sql_equivalence.generated.shapes import Shape
from eval_pipeline_plugins.sql_equivalence.generated.values import family_of
from eval_pipeline_plugins.sql_equivalence.queries.pair import QueryPair
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

DATABASES = 800
_SEEDS = 77_000_000
_STEPS, _MOST_STEPS = 1_000, 5_000
"""Steps of SQLite between looks at their number, and looks after which the queries on a database are stopped."""
_MOST_ENDLESS = 3
_AFFINITIES = {
    "int": "INTEGER",
    "float": "REAL",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "DATETIME",
    "blob": "BLOB",
}


def refuted_by_brute_force(generated: str, expected: str, schema: SqlSchema, databases: int = DATABASES) -> int | None:
    """The number of the first database on which the two queries give stable results that differ; None without one."""
    pair = QueryPair(generated, expected, schema, "sqlite")
    named = {table.name.lower() for table in pair.named.tables}
    maker = DatabaseMaker(pair.schema, pair.mined(), Checks(pair.schema), named, wide_integers=True)
    with closing(sqlite3.connect(":memory:")) as connection:
        steps = count()
        connection.set_progress_handler(lambda: next(steps) >= _MOST_STEPS, _STEPS)
        _create(connection, pair.schema)
        endless = 0
        for number in range(databases):
            steps = count()
            rng = Random(_SEEDS + number)
            database = maker._made(rng, _shape(rng))
            try:
                if _differ(connection, database, (generated, expected), rng):
                    return number
            except sqlite3.OperationalError:  # a mutant of a recursive query may never end
                endless += 1
                if endless == _MOST_ENDLESS:
                    return None
    return None


def _shape(rng: Random) -> Shape:
    most = rng.choice((2, 4, 8, 14))
    return Shape(
        (max(most // 2, 1), most),
        nulls=rng.choice((0.0, 0.0, 0.1, 0.4)),
        width=rng.choice((1, 2, 3, 6, 12)),
        duplicates=rng.choice((0.0, 0.2, 0.6)),
        empty=rng.random() < 0.05,
        groups=rng.random() < 0.3,
        exact=rng.random(),
        rich=rng.choice((0.0, 0.3, 0.8)),
        long=rng.random() < 0.3,
        different=rng.random() < 0.2,
        keys_meet=rng.random() < 0.4,
    )


def _create(connection: sqlite3.Connection, schema: SqlSchema) -> None:
    for table in schema.tables:
        columns = ", ".join(f'"{column.name}" {_AFFINITIES.get(family_of(column), "TEXT")}' for column in table.columns)
        connection.execute(f'CREATE TABLE "{table.name}" ({columns})')


def _differ(connection: sqlite3.Connection, database: GeneratedDatabase, queries: tuple[str, str], rng: Random) -> bool:
    found = list(_results(connection, database, queries))
    if not found or _same(*found):
        return False
    for turn in range(6):  # what changes with the order of rows, or of a scan, is nobody's mistake
        shuffled = {name: rng.sample(rows, len(rows)) for name, rows in database.items()}
        connection.execute(f"PRAGMA reverse_unordered_selects = {turn % 2}")
        again = list(_results(connection, shuffled, queries))
        connection.execute("PRAGMA reverse_unordered_selects = 0")
        if not again or any(Counter(one) != Counter(other) for one, other in zip(found, again, strict=True)):
            return False
    return True


def _results(
    connection: sqlite3.Connection, database: GeneratedDatabase, queries: tuple[str, str]
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of both, or nothing where one does not run."""
    for name, rows in database.items():
        connection.execute(f'DELETE FROM "{name}"')
        for row in rows:
            places = ", ".join("?" * len(row))
            connection.execute(f'INSERT INTO "{name}" VALUES ({places})', [for_sqlite(cell) for cell in row])
    try:
        yield from [[_rounded(row) for row in connection.execute(query)] for query in queries]
    except sqlite3.Error as error:
        if "interrupted" in str(error):
            raise
        return


def _rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(float(f"{cell:.7g}") if isinstance(cell, float) else cell for cell in row)


def _same(generated: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    """Columns as they stand, rows as a multiset: without the keys of an order nobody can tell ties."""
    return Counter(generated) == Counter(expected)
