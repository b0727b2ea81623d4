"""Reads the tables of schemas from DDL, from database files and from Spider's `tables.json`."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlglot import exp

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.sandbox.sql.sqlite_files import address_of, settled
from eval_pipeline.sql_equivalence.schema.duckdb_types import duckdb_type, spider_type
from eval_pipeline.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable, quoted
from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statements

Tables = tuple[SqlTable, ...]

_SQLITE_MAGIC = b"SQLite format 3\x00"
_DUCKDB_MAGIC = b"DUCK"


def read_ddl(text: str, dialect: str) -> Tables:
    """Returns the tables that `CREATE TABLE` and `ALTER TABLE … ADD CONSTRAINT` define; other statements are ignored.

    Raises:
        ValueError: the text does not parse, or defines no table.
    """
    try:
        statements = parse_statements(text, dialect, longest=None)
    except SqlSyntaxError as error:
        raise ValueError(f"the DDL cannot be read: {error}") from error
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
    if not tables:
        raise ValueError("the DDL has no CREATE TABLE statement with columns")
    return tuple(table.made(tables) for table in tables.values())


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
        nullable = True
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
        told = part.args.get("kind")
        kind_text = told.sql(dialect=dialect) if told is not None else ""
        self.columns.append(SqlColumn(part.name, duckdb_type(kind_text, dialect), nullable))

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
        columns_made = tuple(
            SqlColumn(c.name, c.type, c.nullable and c.name.lower() not in key, c.description) for c in self.columns
        )
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
        return _read_sqlite(path)
    if head[8:12] == _DUCKDB_MAGIC:
        return _read_duckdb(path)
    raise _unreadable(path, "expected a SQLite or DuckDB database")


def _unreadable(path: Path, message: str) -> InputError:
    return InputError([Problem(str(path), None, "", message)])


def _read_sqlite(path: Path) -> Tables:
    try:
        with closing(sqlite3.connect(address_of(settled(path)), uri=True)) as connection:
            found = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                "ORDER BY rowid"
            ).fetchall()
            tables = [_sqlite_table(connection, name, _checks(sql)) for name, sql in found]
    except (sqlite3.Error, OSError) as error:
        raise _unreadable(path, f"the SQLite database cannot be read: {error}") from error
    keys = {table.name.lower(): table.primary_key for table in tables}
    return tuple(_with_implied_references(table, keys) for table in tables)


def _checks(sql: str) -> tuple[str, ...]:
    """Returns a table's CHECK constraints, which no pragma shows; none if sqlglot cannot parse the statement."""
    try:
        return read_ddl(sql, "sqlite")[0].checks
    except ValueError:
        return ()


def _sqlite_table(connection: sqlite3.Connection, name: str, checks: tuple[str, ...]) -> SqlTable:
    found = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
    key = tuple(row[1] for row in sorted((row for row in found if row[5]), key=lambda row: row[5]))
    columns = tuple(SqlColumn(row[1], duckdb_type(row[2]), not (row[3] or row[5])) for row in found)
    references: dict[int, list[tuple[str, str, str | None]]] = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})"):
        references.setdefault(row[0], []).append((row[2], row[3], row[4]))
    foreign_keys = tuple(
        ForeignKey(tuple(part[1] for part in parts), parts[0][0], tuple(part[2] or "" for part in parts))
        for parts in references.values()
    )
    unique = []
    for row in connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall():
        if row[2] and row[3] != "pk" and not row[4]:  # unique, not the primary key, not on a part of the rows
            indexed = connection.execute(f"PRAGMA index_info({quoted(row[1])})").fetchall()
            if all(part[2] is not None for part in indexed):
                unique.append(tuple(part[2] for part in indexed))
    return SqlTable(name, columns, key, foreign_keys, tuple(unique), checks)


def _with_implied_references(table: SqlTable, keys: Mapping[str, tuple[str, ...]]) -> SqlTable:
    """Adds the columns that foreign keys leave out; drops references to missing tables."""
    made = []
    for key in table.foreign_keys:
        references = key.references if all(key.references) else keys.get(key.table.lower(), ())
        if key.table.lower() in keys and len(references) == len(key.columns):
            made.append(ForeignKey(key.columns, key.table, references))
    return SqlTable(table.name, table.columns, table.primary_key, tuple(made), table.unique, table.checks)


def _read_duckdb(path: Path) -> Tables:
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            statements = connection.execute(
                "SELECT sql FROM duckdb_tables() WHERE schema_name = 'main' AND NOT internal ORDER BY table_oid"
            ).fetchall()
    except duckdb.Error as error:
        raise _unreadable(path, f"the DuckDB database cannot be read: {error}") from error
    if not statements:
        return ()
    return read_ddl("\n".join(sql for (sql,) in statements), "duckdb")


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
