"""Evaluates CHECK constraints on generated rows, using SQLite."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.sqlite_guard import GuardedSqlite
from eval_pipeline_plugins.sql_equivalence.generated.memory import LIMITS, for_sqlite
from eval_pipeline_plugins.sql_equivalence.generated.references import Row, column_places
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable, quoted
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, shared_statements

_MOST_KNOWN = 10_000
"""How many rows of a table have their result cached."""


def parsed_check(check: str) -> exp.Expr:
    """Returns a condition as a syntax tree, which must not be changed. Raises a SqlError if it cannot be parsed."""
    try:
        (statement,) = shared_statements(f"SELECT {check}")
        condition: exp.Expr = statement.expressions[0]
    except (SqlSyntaxError, ValueError) as error:
        raise SqlError(ErrorClass.SYNTAX, f"the CHECK {check} cannot be read") from error
    return condition


class Checks:
    """The CHECK constraints of a schema's tables.

    One that SQLite does not understand counts as violated by every row, so that no generated row can violate it. As few
    values are drawn for the columns in CHECKs, results are cached.
    """

    def __init__(self, schema: SqlSchema) -> None:
        """Prepares the constraints. Raises a SqlError if one cannot be parsed."""
        self._of_tables = {table.name: _conditions(table, table.checks) for table in schema.tables if table.checks}
        self._of_columns: dict[tuple[str, str], _Conditions] = {}
        for table in schema.tables:
            for column, checks in _of_single_columns(table):
                self._of_columns[table.name, column] = _conditions(table, checks)

    def keeps(self, table: SqlTable, row: Row) -> bool:
        """Returns whether a row satisfies all constraints of its table."""
        return table.name not in self._of_tables or self._of_tables[table.name].hold(row)

    def of_column(self, table: SqlTable, column: str) -> Callable[[Any], bool] | None:
        """Returns a test for values by the constraints on this column alone; None if there are none.

        Args:
            table: table of the column.
            column: its name in lower case.
        """
        conditions = self._of_columns.get((table.name, column))
        if conditions is None:
            return None
        (place,) = column_places(table, [column])
        before, after = (None,) * place, (None,) * (len(table.columns) - place - 1)
        return lambda value: conditions.hold((*before, value, *after))


class _Conditions:
    """Some CHECK constraints of one table, evaluated together; NULL is no violation."""

    def __init__(self, table: SqlTable, checks: Sequence[str]) -> None:
        cells = ", ".join(f"? AS {quoted(column.name)}" for column in table.columns)
        conditions = " AND ".join(f"coalesce(({_for_sqlite(check)}), 1)" for check in checks)
        self._query = f"SELECT {conditions} FROM (SELECT {cells}) AS {quoted(table.name)}"
        self._read = column_places(table, sorted(set().union(*(columns_read(table, check) for check in checks))))
        self._known: dict[Row, bool] = {}

    def hold(self, row: Row) -> bool:
        key = tuple(row[place] for place in self._read)
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = self._asked(row)
        return self._known[key]

    def _asked(self, row: Row) -> bool:
        import sqlite3

        try:
            found = _sqlite().connection.execute(self._query, tuple(map(for_sqlite, row))).fetchone()
        except sqlite3.Error:
            return False
        return bool(found[0])


@lru_cache(maxsize=512)
def _conditions(table: SqlTable, checks: tuple[str, ...]) -> _Conditions:
    """Cached across pairs, because whether a row satisfies a CHECK does not depend on the queries."""
    return _Conditions(table, checks)


@lru_cache(maxsize=512)
def _of_single_columns(table: SqlTable) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns the CHECKs that read only one column, by the column's name."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for check in table.checks:
        columns = columns_read(table, check)
        if len(columns) == 1:
            found[next(iter(columns))].append(check)
    return tuple((column, tuple(checks)) for column, checks in found.items())


@cache
def _sqlite() -> GuardedSqlite:
    return GuardedSqlite(None, LIMITS)


def _for_sqlite(check: str) -> str:
    try:
        return str(parsed_check(check).sql(dialect="sqlite"))
    except SqlglotError as error:
        raise SqlError(ErrorClass.SYNTAX, f"the CHECK {check} cannot be said in SQLite's dialect") from error


def columns_read(table: SqlTable, check: str) -> frozenset[str]:
    """Returns the table's columns that a CHECK reads, in lower case."""
    named = {column.name.lower() for column in parsed_check(check).find_all(exp.Column)}
    return frozenset(name for name in named if table.column(name) is not None)
