"""Searches for a difference on databases that resemble the suite's own data.

A generated database may differ a lot from the data that a question is about: a table is empty, a column has NULLs or
negative prices. Here constraints that the data satisfies are added to the schema, so that generated databases fit the
statistics of the data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline.sql_equivalence.results import Result
from eval_pipeline.sql_equivalence.schema.parts import SqlColumn, SqlTable, quoted
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema

Run = Callable[[str], SqlRows]

UNIQUE_FROM = 20
"""Rows from which a column without two equal values is taken for one that never has any."""
_MOST_COUNTED = 200_000
"""Most rows of a table whose different values are counted."""
_NUMBERS = ("INT", "DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC")


@dataclass(frozen=True, slots=True)
class Fitting:
    """The properties of the data that generated databases keep.

    Attributes:
        schema: the schema with the constraints that the data satisfies: columns without NULL, unique columns, and the
            least and greatest value of columns of numbers.
        filled: names, in lower case, of the tables that have rows.
        finds: whether the expected query must return something.
    """

    schema: SqlSchema
    filled: frozenset[str]
    finds: bool = True

    def holds(self, database: GeneratedDatabase, expected: Result) -> bool:
        """Whether tables that are filled in the data have rows here too, and the expected query returns something."""
        has_rows = all(rows for name, rows in database.items() if name in self.filled)
        return has_rows and not (self.finds and finds_nothing(expected))

    def beyond_results(self, schema: SqlSchema) -> "Fitting":
        """Returns what is kept if the expected query returns nothing on the data: the bounds of numbers are dropped.

        Within these bounds it may never return anything, so that no database could distinguish another query from it.

        Args:
            schema: the schema before constraints were added.
        """
        checks = {table.name: table.checks for table in schema.tables}
        tables = tuple(replace(table, checks=checks[table.name]) for table in self.schema.tables)
        return Fitting(SqlSchema(tables), self.filled, finds=False)


def finds_nothing(result: Result) -> bool:
    """Whether a result has no rows, or is what aggregates return for no rows: one row of NULL and 0."""
    return not result.rows or (len(result.rows) == 1 and all(cell is None or cell == 0 for cell in result.rows[0]))


def fitting(schema: SqlSchema, tables: Sequence[SqlTable], run: Run, quote: str = '"') -> Fitting:
    """Adds to a schema the constraints that the data satisfies.

    Args:
        schema: the schema.
        tables: the tables to examine. Other tables, and those whose values cannot be counted, are not changed.
        run: runs a query on the data. May raise a SqlError.
        quote: the character that encloses names in its dialect.
    """
    found: dict[str, SqlTable] = {}
    filled = set()
    for table in tables:
        try:
            shown = _shown(table, run, quote)
        except SqlError:
            continue
        if shown is not None:
            found[table.name] = shown
            filled.add(table.name.lower())
    return Fitting(SqlSchema(tuple(found.get(table.name, table) for table in schema.tables)), frozenset(filled))


def _shown(table: SqlTable, run: Run, quote: str) -> SqlTable | None:
    """Returns a table with the constraints that its rows satisfy; None if it has no rows. Raises a SqlError."""
    names = {column.name: _named(column.name, quote) for column in table.columns}
    asked = [f"count({name}), min({name}), max({name})" for name in names.values()]
    (row,) = run(f"SELECT count(*), {', '.join(asked)} FROM {_named(table.name, quote)}").rows
    count, facts = row[0], dict(zip(names, zip(row[1::3], row[2::3], row[3::3], strict=True), strict=True))
    if not count:
        return None
    columns = tuple(replace(c, nullable=c.nullable and facts[c.name][0] < count) for c in table.columns)
    checks = (check for column in table.columns for check in _range(column, *facts[column.name][1:]))
    unique = _unique(table, count, {name: facts[name][0] for name in names}, run, quote)
    return replace(table, columns=columns, checks=(*table.checks, *checks), unique=(*table.unique, *unique))


def _range(column: SqlColumn, least: Any, greatest: Any) -> list[str]:
    """Returns the condition that a number lies within the range of the data; None for other columns."""
    known = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (least, greatest))
    if not known or not any(word in column.type.upper() for word in _NUMBERS):
        return []
    return [f"{quoted(column.name)} BETWEEN {least!r} AND {greatest!r}"]


def _unique(table: SqlTable, count: int, filled: Mapping[str, int], run: Run, quote: str) -> list[tuple[str, ...]]:
    """Returns the columns in which no two rows are equal, if there are many rows. Raises a SqlError."""
    if not UNIQUE_FROM <= count <= _MOST_COUNTED:
        return []
    declared = {table.primary_key, *table.unique}
    asked = [name for name, known in filled.items() if known >= UNIQUE_FROM and (name,) not in declared]
    if not asked:
        return []
    counts = ", ".join(f"count(DISTINCT {_named(name, quote)})" for name in asked)
    (row,) = run(f"SELECT {counts} FROM {_named(table.name, quote)}").rows
    return [(name,) for name, different in zip(asked, row, strict=True) if different == filled[name]]


def _named(name: str, quote: str) -> str:
    return f"{quote}{name.replace(quote, quote * 2)}{quote}"
