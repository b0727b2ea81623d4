"""Generates a database from statistics of its columns, for data sets whose databases are not available.

Values are drawn from the sample values, from the literals that the accepted queries compare the column with, and from
the range between minimum and maximum. Columns that refer to each other share their values, so that joins find rows.
Correlations between columns are unknown and therefore not kept. The same statistics and queries always make the same
database.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import cast

from sqlglot import exp

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import text_hash
from eval_pipeline_plugins.data_sets.sql.column_statistics import (
    ColumnStatistics,
    DatabaseStatistics,
    TableStatistics,
    Value,
)
from eval_pipeline_plugins.sql_equivalence.schema.parts import quoted
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement

MOST_ROWS = 1000
"""The most rows that a table gets."""
_LITERAL_SHARE, _SAMPLE_SHARE = 0.4, 0.4
"""How often a cell is one of the literals and one of the sample values; the rest lies between minimum and maximum."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.In, exp.Between, exp.Is)
_Place = tuple[str, str]
"""A table and a column, in lower case."""


def synthesise(found: DatabaseStatistics, queries: Iterable[str], target: Path) -> None:
    """Writes a SQLite database with these tables; each has its original number of rows, but at most `MOST_ROWS`.

    Raises:
        InputError: the statistics do not describe a valid database, e.g. because two tables have the same name.
    """
    rng = Random(text_hash(found.model_dump_json()))
    pools = _shared_pools(found, rng)
    literals = literals_by_column(queries)
    try:
        with closing(sqlite3.connect(target)) as connection:
            for table in found.tables:
                connection.execute(_create_table(table, found))
                marks = ", ".join("?" * len(table.columns))
                # Rows that repeat a primary key are left out.
                connection.executemany(
                    f"INSERT OR IGNORE INTO {quoted(table.name)} VALUES ({marks})", _rows(table, pools, literals, rng)
                )
            connection.commit()
    except (sqlite3.Error, OverflowError) as error:
        raise InputError(
            [Problem(str(target), None, found.name, f"the statistics do not describe a valid database: {error}")]
        ) from error


def literals_by_column(queries: Iterable[str]) -> dict[str, list[str]]:
    """Returns the literals that queries compare with a column, by the column's name in lower case.

    Wildcards are removed from LIKE patterns.
    """
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for sql in queries:
        try:
            statement = parse_statement(sql, "sqlite")
        except SqlSyntaxError:
            continue
        for node in statement.find_all(*_COMPARISONS):
            parts = list(node.iter_expressions())
            names = [part.name.lower() for part in parts if isinstance(part, exp.Column)]
            values = [part.name for part in parts if isinstance(part, exp.Literal)]
            if isinstance(node, exp.Like | exp.ILike):
                values = [value.replace("%", "").replace("_", "") for value in values]
            for name in names:
                found[name] |= dict.fromkeys(value for value in values if value)
    return {name: list(values) for name, values in found.items()}


def _create_table(table: TableStatistics, database: DatabaseStatistics) -> str:
    keys = {name.lower() for name in table.primary_key} & {column.name.lower() for column in table.columns}
    lines = [
        f"{quoted(c.name)} {c.type.upper()}{'' if c.null_fraction or c.name.lower() in keys else ' NOT NULL'}"
        for c in table.columns
    ]
    if keys and len(keys) == len(table.primary_key):
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted, table.primary_key))})")
    for column in table.columns:
        for reference in column.foreign_keys:
            if _is_parent(table, column, reference.reference_table, reference.reference_column, database):
                place = f"{quoted(reference.reference_table)} ({quoted(reference.reference_column)})"
                lines.append(f"FOREIGN KEY ({quoted(column.name)}) REFERENCES {place}")
    return f"CREATE TABLE {quoted(table.name)} ({', '.join(lines)})"


def _is_parent(
    table: TableStatistics, column: ColumnStatistics, name: str, key: str, database: DatabaseStatistics
) -> bool:
    """Returns whether a column refers to the primary key of another table, which has no fewer rows if both are keys."""
    parent = next((one for one in database.tables if one.name.lower() == name.lower()), None)
    if parent is None or parent is table or not _is_key(parent, key):
        return False
    return not _is_key(table, column.name) or (_rows_of(table), table.name) < (_rows_of(parent), parent.name)


def _is_key(table: TableStatistics, column: str) -> bool:
    return [name.lower() for name in table.primary_key] == [column.lower()]


def _rows_of(table: TableStatistics) -> int:
    return min(table.row_count, MOST_ROWS)


def _shared_pools(database: DatabaseStatistics, rng: Random) -> dict[_Place, Sequence[Value]]:
    """Returns the values of every column that refers to another or is referred to.

    A key column uses the first values, as many as its table has rows; other columns use values that all keys have.
    """
    columns = {
        (table.name.lower(), column.name.lower()): (table, column)
        for table in database.tables
        for column in table.columns
    }
    linked: dict[_Place, set[_Place]] = {}
    for place, (_, column) in columns.items():
        for reference in column.foreign_keys:
            other = (reference.reference_table.lower(), reference.reference_column.lower())
            if other in columns:
                group = linked.get(place, {place}) | linked.get(other, {other})
                linked |= dict.fromkeys(group, group)
    pools: dict[_Place, Sequence[Value]] = {}
    for group in {id(group): group for group in linked.values()}.values():
        members = sorted(group)
        keys = [table for table, column in map(columns.__getitem__, members) if _is_key(table, column.name)]
        widest = max((columns[member][1] for member in members), key=lambda column: column.unique_count)
        most = max(1, *(min(columns[member][1].unique_count, MOST_ROWS) for member in members), *map(_rows_of, keys))
        values = _distinct(widest, most, rng)
        common = min(map(_rows_of, keys), default=most)
        for member in members:
            table, column = columns[member]
            pools[member] = values[: _rows_of(table) if _is_key(table, column.name) else max(common, 1)]
    return pools


def _distinct(column: ColumnStatistics, wanted: int, rng: Random) -> list[Value]:
    """Returns this number of different values: samples first, then drawn ones, then numbered ones."""
    found: dict[Value, None] = dict.fromkeys(column.sample_values[:wanted])
    for _ in range(4 * wanted):
        if len(found) >= wanted:
            break
        found[_drawn(column, rng)] = None
    number = int(column.min_value) if isinstance(column.min_value, int | float) else 1
    while len(found) < wanted:
        found[number if _is_number(column) else f"{column.name} {number}"] = None
        number += 1
    return list(found)


def _rows(
    table: TableStatistics, pools: Mapping[_Place, Sequence[Value]], literals: Mapping[str, Sequence[str]], rng: Random
) -> Iterable[list[Value | None]]:
    count = _rows_of(table)
    cells = [
        _cells(table, column, pools, literals.get(column.name.lower(), ()), count, rng) for column in table.columns
    ]
    return [list(row) for row in zip(*cells, strict=True)]


def _cells(
    table: TableStatistics,
    column: ColumnStatistics,
    pools: Mapping[_Place, Sequence[Value]],
    literals: Sequence[str],
    count: int,
    rng: Random,
) -> list[Value | None]:
    pool = pools.get((table.name.lower(), column.name.lower()))
    if _is_key(table, column.name):
        return list(_distinct(column, count, rng) if pool is None else pool)
    if pool is not None:
        return [None if rng.random() < column.null_fraction else rng.choice(pool) for _ in range(count)]
    known = column.sample_values
    if column.unique_count <= len(known):  # all values are known, so no other may occur
        literals = ()
    fitting = [value for value in literals if not _is_number(column) or _number(value) is not None]
    return [
        None if rng.random() < column.null_fraction or not (known or fitting) else _cell(column, fitting, rng)
        for _ in range(count)
    ]


def _cell(column: ColumnStatistics, literals: Sequence[str], rng: Random) -> Value:
    known, dice = column.sample_values, rng.random()
    if literals and dice < _LITERAL_SHARE:
        return rng.choice(literals)  # the column's type makes a number of it where it is numeric
    if column.unique_count <= len(known) or (known and dice < _LITERAL_SHARE + _SAMPLE_SHARE):
        return rng.choice(known)
    return _drawn(column, rng)


def _drawn(column: ColumnStatistics, rng: Random) -> Value:
    """Returns a value between the column's minimum and maximum, or a variation of a sample value."""
    least, most = column.min_value, column.max_value
    if isinstance(least, int) and isinstance(most, int):
        return rng.randint(min(least, most), max(least, most))
    if isinstance(least, int | float) and isinstance(most, int | float):
        return round(rng.uniform(least, most), 4)
    first, last = _date(least), _date(most)
    if first and last and first <= last:
        day = (first + timedelta(days=rng.randint(0, (last - first).days))).isoformat()
        return day + cast(str, rng.choice(column.sample_values or (least,)))[10:]
    if isinstance(least, str) and isinstance(most, str) and least.isdigit() and most.isdigit() and len(most) <= 18:
        return str(rng.randint(*sorted((int(least), int(most))))).zfill(len(least))
    sample = rng.choice(column.sample_values) if column.sample_values else column.name
    return f"{sample} {rng.randint(1, MOST_ROWS)}"


def _date(value: Value | None) -> date | None:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _is_number(column: ColumnStatistics) -> bool:
    return isinstance(column.min_value, int | float)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
