"""Reads the tables of schemas from DDL, from database files and from Spider's `tables.json`."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlglot import exp

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.sql_equivalence.schema.duckdb_types import duckdb_type, spider_type
from eval_pipeline.sql_equivalence.schema.parts import Definition, ForeignKey, SqlColumn, SqlTable
from eval_pipeline.sql_equivalence.schema.views import (
    Tables,
    expressions_in,
    is_computed,
    view_made_by,
    with_known_types,
)
from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statements

_SQLITE_MAGIC = b"SQLite format 3\x00"
_DUCKDB_MAGIC = b"DUCK"


def read_ddl(text: str, dialect: str) -> Tables:
    """Returns what `CREATE TABLE`, `ALTER TABLE … ADD CONSTRAINT` and `CREATE VIEW` define; the rest is ignored.

    A view whose columns cannot be told from its query is left out.

    Raises:
        ValueError: the text does not parse, or defines no table.
    """
    try:
        statements = parse_statements(text, dialect, longest=None)
    except SqlSyntaxError as error:
        raise ValueError(f"the DDL cannot be read: {error}") from error
    tables = _tables(statements, dialect)
    if not tables:
        raise ValueError("the DDL has no CREATE TABLE statement with columns")
    if any(column.computed is not None for table in tables.values() for column in table.columns):
        written = expressions_in(text, dialect)
        for table in tables.values():
            table.write_expressions(written, dialect)
    made = [with_known_types(table.made(tables), dialect) for table in tables.values()]
    for statement in statements:  # views come last, because their columns depend on those of tables
        view = view_made_by(statement, made, dialect)
        if view is not None:
            made = [table for table in made if table.name.lower() != view.name.lower()] + [view]
    return tuple(made)


def _tables(statements: Iterable[exp.Expr], dialect: str) -> "dict[str, _Table]":
    tables: dict[str, _Table] = {}
    for statement in statements:
        if isinstance(statement, exp.Create) and statement.kind == "TABLE" and isinstance(statement.this, exp.Schema):
            table = _Table(statement.this.this.name)
            tables[table.name.lower()] = table
            for part in statement.this.expressions:
                table.add(part, dialect)
        elif isinstance(statement, exp.Alter) and (found := tables.get(statement.this.name.lower())):
            for action in statement.args.get("actions") or ():
                for part in action.expressions if isinstance(action, exp.AddConstraint) else ():
                    found.add(part, dialect)
    return tables


class _Table:
    """A table while its definition is read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: list[SqlColumn] = []
        self.primary_key: tuple[str, ...] = ()
        self.foreign_keys: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = []
        self.unique: list[tuple[str, ...]] = []
        self.checks: list[str] = []

    def add(self, part: exp.Expr, dialect: str) -> None:
        """Adds a column or a constraint; what does not restrict data (defaults, comments, collations) is ignored."""
        match part:
            case exp.ColumnDef():
                self._add_column(part, dialect)
            case exp.Constraint():
                for inner in part.expressions:
                    self.add(inner, dialect)
            case exp.PrimaryKey():
                self.primary_key = _names(part.expressions)
            case exp.UniqueColumnConstraint():
                inner = part.this
                self.unique.append(_names(inner.expressions if isinstance(inner, exp.Schema) else part.expressions))
            case exp.ForeignKey():
                self._add_reference(_names(part.expressions), part.args["reference"])
            case exp.CheckColumnConstraint() | exp.Check():
                self.checks.append(part.this.sql(dialect="duckdb"))

    def _add_column(self, part: exp.ColumnDef, dialect: str) -> None:
        nullable, computed = True, None
        for constraint in part.constraints:
            match constraint.kind:
                case exp.NotNullColumnConstraint() as kind:
                    nullable = bool(kind.args.get("allow_null"))
                case exp.PrimaryKeyColumnConstraint():
                    self.primary_key = (part.name,)
                case exp.UniqueColumnConstraint():
                    self.unique.append((part.name,))
                case exp.CheckColumnConstraint() as kind:
                    self.checks.append(kind.this.sql(dialect="duckdb"))
                case exp.Reference() as kind:
                    self._add_reference((part.name,), kind)
                case kind if is_computed(kind):
                    computed = Definition("", dialect)
                    # Either NOT NULL, see `expressions_in`, or an expression that is never NULL.
                    nullable = nullable and not (isinstance(kind.this, exp.Not) and isinstance(kind.this.this, exp.Is))
        told = part.args.get("kind")
        kind_text = told.sql(dialect=dialect) if told is not None else ""
        known = "" if computed is not None and not kind_text else duckdb_type(kind_text, dialect)
        self.columns.append(SqlColumn(part.name, known, nullable, computed=computed))

    def write_expressions(self, written: Mapping[tuple[str, str], str], dialect: str) -> None:
        """Adds the expressions of generated columns, by table and column in lower case."""
        for place, column in enumerate(self.columns):
            if column.computed is not None:
                text = written.get((self.name.lower(), column.name.lower()), "")
                self.columns[place] = replace(column, computed=Definition(text, dialect))

    def _add_reference(self, columns: tuple[str, ...], reference: exp.Expr) -> None:
        target = reference.this
        if isinstance(target, exp.Schema):
            self.foreign_keys.append((columns, target.this.name, _names(target.expressions)))
        else:
            self.foreign_keys.append((columns, target.name, ()))

    def made(self, tables: Mapping[str, "_Table"]) -> SqlTable:
        """Returns the table; a reference without columns means the other table's primary key."""
        keys = []
        for columns, table, references in self.foreign_keys:
            parent = tables.get(table.lower())
            if parent is not None and (found := references or parent.primary_key):
                keys.append(ForeignKey(columns, parent.name, found))
        key = {name.lower() for name in self.primary_key}
        columns_made = tuple(replace(c, nullable=c.nullable and c.name.lower() not in key) for c in self.columns)
        return SqlTable(self.name, columns_made, self.primary_key, tuple(keys), tuple(self.unique), tuple(self.checks))


def _names(parts: list[exp.Expr]) -> tuple[str, ...]:
    return tuple(part.name for part in parts)


def read_database(path: Path) -> Tables:
    """Returns the tables of a SQLite or DuckDB file, which is opened read-only.

    Raises:
        InputError: the file is missing, damaged, or neither of the two.
    """
    try:
        head = path.open("rb").read(16)
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from error
    if head == _SQLITE_MAGIC:
        from eval_pipeline.sql_equivalence.schema.sqlite_file import read_sqlite

        try:
            return read_sqlite(path)
        except sqlite3.Error as error:
            raise _unreadable(path, f"the SQLite database cannot be read: {error}") from error
    if head[8:12] == _DUCKDB_MAGIC:
        import duckdb

        from eval_pipeline.sql_equivalence.schema.duckdb_file import read_duckdb

        try:
            return read_duckdb(path)
        except duckdb.Error as error:
            raise _unreadable(path, f"the DuckDB database cannot be read: {error}") from error
    raise _unreadable(path, "expected a SQLite or DuckDB database")


def _unreadable(path: Path, message: str) -> InputError:
    return InputError([Problem(str(path), None, "", message)])


def read_spider(entry: Mapping[str, Any]) -> Tables:
    """Returns the tables in an entry of Spider's `tables.json`.

    Raises:
        ValueError: a field is missing or refers to a missing column.
    """
    try:
        names = entry["table_names_original"]
        columns = entry["column_names_original"]
        described = entry.get("column_names") or columns
        kinds = entry["column_types"]
        in_key = {place for part in entry["primary_keys"] for place in (part if isinstance(part, list) else [part])}
        tables = []
        for number, name in enumerate(names):
            own = [place for place, (table, _) in enumerate(columns) if table == number]
            made = tuple(
                SqlColumn(columns[i][1], spider_type(kinds[i]), i not in in_key, str(described[i][1])) for i in own
            )
            keys = tuple(
                ForeignKey((columns[child][1],), names[columns[parent][0]], (columns[parent][1],))
                for child, parent in entry["foreign_keys"]
                if columns[child][0] == number
            )
            tables.append(SqlTable(name, made, tuple(columns[i][1] for i in own if i in in_key), keys))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"not an entry of Spider's tables.json: {error!r}") from error
    return tuple(tables)
