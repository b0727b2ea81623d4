"""Asks a server whether two queries differ on generated rows, passed as CTEs, which need no right to write."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.places import LivePlace, dialect_of
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.tasks import connection_to
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase, inserted
from eval_pipeline_plugins.sql_equivalence.queries.pair import QueryPair
from eval_pipeline_plugins.sql_equivalence.queries.ready import Orders, agree
from eval_pipeline_plugins.sql_equivalence.results import Result
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlColumn, SqlTable, SqlView

_EMPTY = {"postgres": "pg_catalog", "mysql": "information_schema"}
"""A schema without the suite's tables, so that a name which no CTE covers is an error and never reads the data."""
_WITH = re.compile(r"(?is)(?:\s+|--[^\n]*\n|/\*.*?\*/)*WITH\s+(?P<recursive>RECURSIVE\s+)?")
_BELOW = "_stored"
"""End of the name of the CTE with the stored columns of a table that has others."""
_MOST_ROWS = 200


class ServerWitness:
    """The answers of a server about a pair of queries, which are both in the server's dialect."""

    def __init__(self, pair: QueryPair, place: LivePlace, seconds: float) -> None:
        """Keeps the arguments without connecting; `seconds` is the time limit of a query."""
        self.server = place.server
        self._dialect = dialect_of(place)
        self._pair, self._seconds = pair, seconds
        self._place = replace(place, schema=_EMPTY[self._dialect])

    def results(self, database: GeneratedDatabase) -> tuple[Result, Result]:
        """Returns both results. Raises a SqlError."""
        return self._pair.ready(self._dialect).results(lambda sql: self._run(sql, database))

    def differs(self, database: GeneratedDatabase, orders: Orders) -> bool:
        """Returns whether the queries give different results and no LIMIT cuts ties; False if one does not run.

        Args:
            database: rows on which the queries differ in another engine, regardless of row order.
            orders: see `ReadyPair.differs`.
        """
        pair = self._pair.ready(self._dialect)
        try:
            generated, expected = self.results(database)
            return not agree(generated, expected, orders, self._pair.overlooked) and not pair.cuts_ties(
                lambda sql: self._run(sql, database)
            )
        except SqlError:
            return False

    def _run(self, sql: str, database: GeneratedDatabase) -> SqlRows:
        tables = self._pair.named.tables
        if sum(len(database.get(table.name.lower(), ())) for table in tables) > _MOST_ROWS:
            raise SqlError(ErrorClass.MEMORY, "too many rows for CTEs")
        told = [cte for table in tables for cte in _ctes(table, database.get(table.name.lower(), []), self._dialect)]
        told += [_view(view, self._dialect) for view in self._pair.named.views]
        return connection_to(self._place, SqlLimits()).query(with_ctes(sql, told), self._seconds)


def with_ctes(sql: str, ctes: Sequence[str]) -> str:
    """Returns a query with CTEs before its own."""
    if not ctes:
        return sql
    found = _WITH.match(sql)
    if found is None:
        return f"WITH {', '.join(ctes)} {sql}"
    return f"WITH {found['recursive'] or ''}{', '.join(ctes)}, {sql[found.end() :]}"


def _view(view: SqlView, dialect: str) -> str:
    if view.dialect != dialect:
        raise SqlError(ErrorClass.OTHER, f"the view {view.name} is in another dialect")
    names = ", ".join(_name(column.name, dialect) for column in view.columns)
    return f"{_name(view.name, dialect)} ({names}) AS ({view.query})"


def _ctes(table: SqlTable, rows: Sequence[Sequence[Any]], dialect: str) -> list[str]:
    """Returns the CTEs that stand for a table: its rows, and what the server computes from them."""
    stored = tuple(column for column in table.columns if not column.generated)
    if len(stored) == len(table.columns):
        return [_cte(table, rows, dialect)]
    if table.dialect != dialect:
        raise SqlError(ErrorClass.OTHER, f"the generated columns of {table.name} are in another dialect")
    below = replace(table, name=f"{table.name}{_BELOW}", columns=stored)
    selects = ", ".join(_computed(column, dialect) for column in table.columns)
    above = f"{_name(table.name, dialect)} AS (SELECT {selects} FROM {_name(below.name, dialect)})"
    return [_cte(below, inserted(table, [tuple(row) for row in rows]), dialect), above]


def _computed(column: SqlColumn, dialect: str) -> str:
    name = _name(column.name, dialect)
    if not column.generated:
        return name
    kind = exp.DataType.build(column.type, dialect="duckdb").sql(dialect=dialect)
    # MySQL casts to few of its types.
    text = column.generated if dialect == "mysql" else f"CAST(({column.generated}) AS {kind})"
    return f"{text} AS {name}"


def _cte(table: SqlTable, rows: Sequence[Sequence[Any]], dialect: str) -> str:
    kinds = [exp.DataType.build(column.type, dialect="duckdb") for column in table.columns]
    names = ", ".join(_name(column.name, dialect) for column in table.columns)
    selects = [_select(row, kinds, dialect) for row in rows]
    text = " UNION ALL ".join(selects) if selects else f"{_select([None] * len(kinds), kinds, dialect)} LIMIT 0"
    return f"{_name(table.name, dialect)} ({names}) AS ({text})"


def _select(row: Sequence[Any], kinds: Sequence[exp.DataType], dialect: str) -> str:
    cells = (exp.cast(_literal(cell), kind).sql(dialect=dialect) for cell, kind in zip(row, kinds, strict=True))
    return f"SELECT {', '.join(cells)}"


def _literal(cell: Any) -> exp.Expr:
    if cell is None:
        return exp.null()
    if isinstance(cell, bool | int):
        return exp.Literal.number(int(cell))
    if isinstance(cell, bytes | list | tuple | dict):
        raise SqlError(ErrorClass.TYPE, "such a value is not given as a literal")
    return exp.Literal.string(str(cell))


def _name(name: str, dialect: str) -> str:
    """Quotes a name, except if PostgreSQL would have folded it to lower case."""
    if dialect == "postgres" and name != name.lower():
        return name
    return exp.to_identifier(name, quoted=True).sql(dialect=dialect)
