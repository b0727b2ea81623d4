"""The parts of a schema: tables, columns, keys, checks and views."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column.

    Attributes:
        name: as declared. type: DuckDB's.
        nullable: whether it may be NULL.
        description: what it means; often empty.
        generated: the expression that the engine computes it from, in the dialect of its table; empty for others.
        collation: how its texts are compared, by the name of SQLite or DuckDB; empty for the usual way.
        declared: its type in SQLite as written; empty in other engines and for columns without a type.
        length: most characters of its texts, where the engine refuses longer ones.
    """

    name: str
    type: str
    nullable: bool = True
    description: str = ""
    generated: str = ""
    collation: str = ""
    declared: str = ""
    length: int | None = None


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns whose values, if none is NULL, must occur in the columns `references` of another table."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table.

    Attributes:
        primary_key: its columns; empty if there is none.
        unique: further sets of columns in which no two rows are equal, except for NULLs.
        checks: conditions on a row, in DuckDB's SQL.
        dialect: the dialect of `definition` and of generated columns; empty if the table was not read from DDL.
        definition: the statements that make it and its unique indexes, as its engine knows them, if there may be more
            to them than the other attributes say; foreign keys may be left out.
    """

    name: str
    columns: tuple[SqlColumn, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    checks: tuple[str, ...] = ()
    dialect: str = ""
    definition: tuple[str, ...] = ()

    @property
    def is_virtual(self) -> bool:
        """Whether a module of SQLite makes up its rows, such as a full-text index."""
        return bool(self.definition) and self.definition[0].upper().startswith("CREATE VIRTUAL")

    def column(self, name: str) -> SqlColumn | None:
        """Returns the column of that name, ignoring case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class SqlView:
    """A view: what it shows is computed from other tables, so that no row is made for it.

    Attributes:
        columns: with empty types where these are not known.
        query: its SELECT, in the dialect.
        reads: the names, in lower case, of the tables and views that it reads; None if nobody can say.
    """

    name: str
    columns: tuple[SqlColumn, ...]
    query: str
    dialect: str
    reads: tuple[str, ...] | None = None

    def column(self, name: str) -> SqlColumn | None:
        """Returns the column of that name, ignoring case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


def quoted(name: str) -> str:
    """Returns a name as an identifier for DuckDB or SQLite."""
    return '"' + name.replace('"', '""') + '"'


def create_table(table: SqlTable) -> str:
    """Returns a `CREATE TABLE` statement for DuckDB."""
    lines = [f"{quoted(c.name)} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in table.columns]
    if table.primary_key:
        lines.append(f"PRIMARY KEY ({_list(table.primary_key)})")
    lines += [f"UNIQUE ({_list(columns)})" for columns in table.unique]
    lines += [
        f"FOREIGN KEY ({_list(key.columns)}) REFERENCES {quoted(key.table)} ({_list(key.references)})"
        for key in table.foreign_keys
    ]
    lines += [f"CHECK ({check})" for check in table.checks]
    return f"CREATE TABLE {quoted(table.name)} (\n  " + ",\n  ".join(lines) + "\n);"


def create_view(view: SqlView, query: str | None = None) -> str:
    """Returns a `CREATE VIEW` statement for DuckDB or SQLite.

    Args:
        view: the view.
        query: its SELECT in the engine's dialect, if that is another one.
    """
    return f"CREATE VIEW {quoted(view.name)} ({_list(tuple(c.name for c in view.columns))}) AS {query or view.query}"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(quoted(name) for name in names)
