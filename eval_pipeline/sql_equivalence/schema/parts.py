"""The parts of a schema: tables, columns, keys and checks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Definition:
    """The query of a view, or the expression of a generated column, in the dialect of its database.

    Attributes:
        sql: empty if it cannot be read.
        dialect: sqlglot's name.
    """

    sql: str
    dialect: str


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column.

    Attributes:
        type: DuckDB's; empty if it is not known, which only columns of views and generated columns may have.
        computed: what a generated column is computed from; None for a column that is stored.
    """

    name: str
    type: str
    nullable: bool = True
    description: str = ""
    computed: Definition | None = None  # None is left out where suites are stored, so that older ones stay the same


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns whose values, if none is NULL, must occur in the columns `references` of another table."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table or a view.

    Attributes:
        primary_key: its columns; empty if there is none.
        unique: further sets of columns in which no two rows are equal, except for NULLs.
        checks: conditions on a row, in DuckDB's SQL.
        view: the query of a view; None for a table.
        schema: the schema it is in; None for the one that names without a schema mean.
        hidden: the columns of a virtual table that `*` leaves out; None for other tables.
    """

    name: str
    columns: tuple[SqlColumn, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    checks: tuple[str, ...] = ()
    view: Definition | None = None
    schema: str | None = None
    hidden: tuple[str, ...] | None = None

    @property
    def full_name(self) -> str:
        """The name with its schema, without quotes."""
        return self.name if self.schema is None else f"{self.schema}.{self.name}"

    @property
    def stored(self) -> tuple[SqlColumn, ...]:
        """The columns that rows give; the others are computed."""
        return tuple(column for column in self.columns if column.computed is None)

    def column(self, name: str) -> SqlColumn | None:
        """Returns the column of that name, ignoring case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


def quoted(name: str) -> str:
    """Returns a name as an identifier for DuckDB or SQLite."""
    return '"' + name.replace('"', '""') + '"'


def quoted_name(table: SqlTable) -> str:
    """Returns the name of a table, with its schema, for DuckDB or SQLite."""
    return ".".join(quoted(name) for name in (table.schema, table.name) if name is not None)


def generated_as(column: SqlColumn) -> str:
    """Returns the clause that makes a column a generated one; empty for other columns."""
    return "" if column.computed is None else f" GENERATED ALWAYS AS ({column.computed.sql})"


def create_table(table: SqlTable) -> str:
    """Returns a `CREATE TABLE` statement for DuckDB; definitions of views and columns stay in their own dialect."""
    if table.view is not None:
        return f"CREATE VIEW {quoted_name(table)} ({_list(tuple(c.name for c in table.columns))}) AS {table.view.sql};"
    lines = [f"{_typed(quoted(c.name), c)}{'' if c.nullable else ' NOT NULL'}" for c in table.columns]
    if table.primary_key:
        lines.append(f"PRIMARY KEY ({_list(table.primary_key)})")
    lines += [f"UNIQUE ({_list(columns)})" for columns in table.unique]
    lines += [
        f"FOREIGN KEY ({_list(key.columns)}) REFERENCES {quoted(key.table)} ({_list(key.references)})"
        for key in table.foreign_keys
    ]
    lines += [f"CHECK ({check})" for check in table.checks]
    return f"CREATE TABLE {quoted_name(table)} (\n  " + ",\n  ".join(lines) + "\n);"


def _typed(name: str, column: SqlColumn) -> str:
    return f"{name} {column.type}".rstrip() + generated_as(column)


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(quoted(name) for name in names)
