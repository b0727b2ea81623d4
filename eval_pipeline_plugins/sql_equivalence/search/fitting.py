"""Searches for a difference on databases that resemble the suite's own data.

A generated database may differ a lot from the data that a question is about: a table is empty, a column has NULLs or
negative prices. Here constraints that the data satisfies are added to the schema, so that generated databases fit the
statistics of the data.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline_plugins.sql_equivalence.results import Result
from eval_pipeline_plugins.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable, quoted
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

Run = Callable[[str], SqlRows]

UNIQUE_FROM = 20
"""Rows from which a column without two equal values is taken for one that never has any."""
_MOST_COUNTED = 200_000
"""Most rows of a table whose different values are counted."""
_MOST_TEXTS = 1_000
"""Most different texts of a column that are looked at."""
_NUMBERS = ("INT", "DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC")
_TEXTS = ("CHAR", "TEXT", "STRING")
_DIGIT = "[0-9]"
_TIMES = ("", " __:__", " __:__:__", " __:__:__._", "T__:__:__", "T__:__:__Z")
_MOMENTS = (
    *(f"{day}{time}" for day in ("____-__-__", "____/__/__") for time in _TIMES),
    "____-__",
    "__:__",
    "__:__:__",
)
"""How texts write days, months and times, as patterns of LIKE in which each place is a digit."""
Join = tuple[tuple[str, str], tuple[str, str]]
"""Table and column of both sides of a condition that equates them."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """The properties of the data that generated databases keep.

    Attributes:
        schema: the schema with the constraints that the data satisfies: columns without NULL, unique columns, the least
            and greatest value of columns of numbers and of days, which texts write in one way, texts that are never
            blank, padded or in capitals, and columns whose values all occur in the column that they are joined with.
        filled: names, in lower case, of the tables that have rows.
        finds: whether the expected query must return something.
        cases: for tables, in lower case, and places of their columns of texts: how texts are written, by the text in
            lower case.
        present: see `present`, of the expected query on the data.
    """

    schema: SqlSchema
    filled: frozenset[str]
    finds: bool = True
    cases: Mapping[str, Mapping[int, Mapping[str, Collection[str]]]] = field(default_factory=dict)
    present: tuple[int, ...] = ()

    def holds(self, database: GeneratedDatabase, expected: Result) -> bool:
        """Whether a database is like the data in what a schema cannot say, see the attributes."""
        has_rows = all(rows for name, rows in database.items() if name in self.filled)
        if not has_rows or (self.finds and finds_nothing(expected)):
            return False
        rows = expected.keyed or expected.rows  # without their other keys, if these cannot be selected here
        return all(row[place] is not None for row in rows for place in self.present if place < len(row))

    def spelling(self, texts: Collection[str]) -> "Fitting":
        """Returns this with texts that queries name in no other case than in the data."""
        named = {text.strip("%").lower() for text in texts}
        tables = []
        for table in self.schema.tables:
            columns = self.cases.get(table.name.lower(), {})
            found = [
                (quoted(table.columns[place].name), text, cases[text])
                for place, cases in columns.items()
                for text in sorted(named & cases.keys())
            ]
            checks = [f"LOWER({name}) <> {_said([text])} OR {name} IN ({_said(cases)})" for name, text, cases in found]
            tables.append(replace(table, checks=(*table.checks, *checks)))
        return replace(self, schema=replace(self.schema, tables=tuple(tables)))

    def beyond_results(self, schema: SqlSchema) -> "Fitting":
        """Returns what is kept if the expected query returns nothing on the data: the bounds of numbers are dropped.

        Within these bounds it may never return anything, so that no database could distinguish another query from it.

        Args:
            schema: the schema before constraints were added.
        """
        checks = {table.name: table.checks for table in schema.tables}
        tables = tuple(replace(table, checks=checks[table.name]) for table in self.schema.tables)
        return Fitting(replace(self.schema, tables=tables), self.filled, finds=False, cases=self.cases)


def finds_nothing(result: Result) -> bool:
    """Whether a result has no rows, or is what aggregates return for no rows: one row of NULL and 0."""
    return not result.rows or (len(result.rows) == 1 and all(cell is None or cell == 0 for cell in result.rows[0]))


def present(result: Result) -> tuple[int, ...]:
    """Returns the places of what a result has no NULL in, of its columns and then of its other keys."""
    rows = result.keyed or result.rows
    return tuple(place for place in range(len(rows[0]) if rows else 0) if all(row[place] is not None for row in rows))


def fitting(
    schema: SqlSchema, tables: Sequence[SqlTable], run: Run, quote: str = '"', joins: Sequence[Join] = ()
) -> Fitting:
    """Adds to a schema the constraints that the data satisfies.

    Args:
        schema: the schema.
        tables: the tables to examine. Other tables, and those whose values cannot be counted, are not changed.
        run: runs a query on the data. May raise a SqlError.
        quote: the character that encloses names in its dialect.
        joins: pairs of columns that queries equate; one that always finds a row of the other becomes a foreign key.
    """
    found: dict[str, SqlTable] = {}
    filled, cases = set(), {}
    for table in tables:
        try:
            texts = _texts(table, run, quote)
            shown = _shown(table, texts, run, quote)
        except SqlError:
            continue
        if shown is not None:
            found[table.name] = shown
            filled.add(table.name.lower())
            cases[table.name.lower()] = {place: _cases(some) for place, some in texts.items()}
    for join in joins:
        for (mine, column), (theirs, key) in (join, join[::-1]):
            referring, parent = found.get(mine), found.get(theirs)
            if referring is None or parent is None or _leads_to(parent, mine, found):
                continue
            if _refers(referring, column, parent, key, run, quote):
                keys = (*referring.foreign_keys, ForeignKey((column,), theirs, (key,)))
                found[mine] = replace(referring, foreign_keys=keys)
    tables_shown = tuple(found.get(table.name, table) for table in schema.tables)
    return Fitting(replace(schema, tables=tables_shown), frozenset(filled), cases=cases)


def _refers(table: SqlTable, column: str, parent: SqlTable, key: str, run: Run, quote: str) -> bool:
    """Returns whether every value of a column occurs in a column of another table that never has a value twice."""
    declared = any(one.columns == (column,) and one.table == parent.name for one in table.foreign_keys)
    if declared or (parent.primary_key != (key,) and (key,) not in parent.unique):
        return False
    mine, theirs = _named(column, quote), _named(key, quote)
    text = (
        f"SELECT count(*) FROM {_named(table.name, quote)} AS a WHERE a.{mine} IS NOT NULL AND NOT EXISTS "
        f"(SELECT 1 FROM {_named(parent.name, quote)} AS b WHERE b.{theirs} = a.{mine})"
    )
    try:
        return bool(run(text).rows[0][0] == 0)
    except SqlError:
        return False


def _leads_to(table: SqlTable, name: str, tables: Mapping[str, SqlTable]) -> bool:
    """Returns whether foreign keys lead from a table to another; a key the other way round would close a circle."""
    parents = {key.table for key in table.foreign_keys} & tables.keys()
    return table.name == name or any(_leads_to(tables[one], name, tables) for one in parents - {table.name})


def _texts(table: SqlTable, run: Run, quote: str) -> dict[int, list[str]]:
    """Returns the different texts of each column of texts, by its place; only the first of many. Raises a SqlError."""
    found = {}
    for place, column in enumerate(table.columns):
        if any(word in column.type.upper() for word in _TEXTS):
            name = _named(column.name, quote)
            asked = f"SELECT DISTINCT {name} FROM {_named(table.name, quote)} WHERE {name} IS NOT NULL"
            rows = run(f"{asked} LIMIT {_MOST_TEXTS}").rows
            found[place] = [row[0] for row in rows if isinstance(row[0], str)]
    return found


def _cases(texts: Sequence[str]) -> Mapping[str, Collection[str]]:
    """Returns how each text is written, by the text in lower case."""
    found = defaultdict[str, set[str]](set)
    for text in texts:
        found[text.lower()].add(text)
    return dict(found)


def _said(texts: Collection[str]) -> str:
    return ", ".join("'" + text.replace("'", "''") + "'" for text in sorted(texts))


def _never(column: SqlColumn, texts: Sequence[str]) -> Iterator[str]:
    """Yields conditions that texts are not blank, not padded, not in capitals."""
    name = quoted(column.name)
    if all(text.strip() for text in texts):
        yield f"TRIM({name}) <> ''"
    if all(text == text.strip() for text in texts):
        yield f"TRIM({name}) = {name}"
    if not any(text.isupper() for text in texts):
        yield f"UPPER({name}) <> {name} OR LOWER({name}) = {name}"


def _shown(table: SqlTable, texts: Mapping[int, Sequence[str]], run: Run, quote: str) -> SqlTable | None:
    """Returns a table with the constraints that its rows satisfy; None if it has no rows. Raises a SqlError."""
    names = {column.name: _named(column.name, quote) for column in table.columns}
    asked = [f"count({name}), min({name}), max({name})" for name in names.values()]
    (row,) = run(f"SELECT count(*), {', '.join(asked)} FROM {_named(table.name, quote)}").rows
    count, facts = row[0], dict(zip(names, zip(row[1::3], row[2::3], row[3::3], strict=True), strict=True))
    if not count:
        return None
    columns = tuple(replace(c, nullable=c.nullable and facts[c.name][0] < count) for c in table.columns)
    checks = [check for column in table.columns for check in _range(column, *facts[column.name][1:])]
    checks += [check for place, some in texts.items() if some for check in _never(table.columns[place], some)]
    checks += _written(table, facts, run, quote)
    unique = _unique(table, count, {name: facts[name][0] for name in names}, run, quote)
    return replace(table, columns=columns, checks=(*table.checks, *checks), unique=(*table.unique, *unique))


def _range(column: SqlColumn, least: Any, greatest: Any) -> list[str]:
    """Returns the condition that a number lies within the range of the data; None for other columns."""
    known = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (least, greatest))
    if not known or not any(word in column.type.upper() for word in _NUMBERS):
        return []
    return [f"{quoted(column.name)} BETWEEN {least!r} AND {greatest!r}"]


def _written(table: SqlTable, facts: Mapping[str, Sequence[Any]], run: Run, quote: str) -> list[str]:
    """Returns the conditions that texts are days or times of one form, within their range. Raises a SqlError."""
    forms = {
        column.name: form
        for column in table.columns
        if any(word in column.type.upper() for word in _TEXTS)
        and (form := _form(facts[column.name][1])) is not None
        and form == _form(facts[column.name][2])
    }
    if not forms:
        return []
    counts = ", ".join(
        f"sum(CASE WHEN {_named(name, quote)} LIKE '{form}' THEN 1 ELSE 0 END)" for name, form in forms.items()
    )
    (row,) = run(f"SELECT {counts} FROM {_named(table.name, quote)}").rows
    found = []
    for (name, form), count in zip(forms.items(), row, strict=True):
        if count == facts[name][0]:
            least, greatest = facts[name][1:]
            column, digits = quoted(name), form.replace("_", _DIGIT)
            found.append(f"{column} GLOB '{digits}' AND {column} BETWEEN '{least}' AND '{greatest}'")
    return found


def _form(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    form = "".join("_" if character.isdecimal() else character for character in value)
    return form if form in _MOMENTS else None


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
