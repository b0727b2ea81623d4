"""The parts of a schema: tables, columns, keys and checks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column; `type` is DuckDB's."""

    name: str
    type: str
    nullable: bool = True
    description: str = ""


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
    """

    name: str
    columns: tuple[SqlColumn, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    checks: tuple[str, ...] = ()

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


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(quoted(name) for name in names)
