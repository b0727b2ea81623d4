"""A private copy of a SQLite database in memory."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.effects.state import (
    A_TRIGGER,
    CHECK,
    DEFAULT,
    TABLE,
    VIEW,
    Thing,
    kind_of_type,
    names,
    normal,
)
from eval_pipeline.sandbox.sql.errors import SqlError, of_sqlite
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows, fetch_within
from eval_pipeline.sandbox.sql.sqlite_files import address_of
from eval_pipeline.sandbox.sql.sqlite_guard import FUNCTIONS, GuardedSqlite

_WRITES = frozenset(
    getattr(sqlite3, f"SQLITE_{name}")
    for name in (
        "SELECT READ RECURSIVE INSERT UPDATE DELETE TRANSACTION SAVEPOINT ALTER_TABLE REINDEX "
        "CREATE_TABLE CREATE_INDEX CREATE_VIEW CREATE_TRIGGER DROP_TABLE DROP_INDEX DROP_VIEW DROP_TRIGGER "
        "CREATE_TEMP_TABLE CREATE_TEMP_INDEX CREATE_TEMP_VIEW CREATE_TEMP_TRIGGER "
        "DROP_TEMP_TABLE DROP_TEMP_INDEX DROP_TEMP_VIEW DROP_TEMP_TRIGGER"
    ).split()
)
_FUNCTIONS = FUNCTIONS | {
    "last_insert_rowid",
    # which ALTER TABLE calls itself; SQLite lets nobody else call them
    *("sqlite_rename_column", "sqlite_rename_table", "sqlite_rename_test", "sqlite_rename_quotefix"),
    "sqlite_drop_column",
}
_CHECK = re.compile(r"\bCHECK\s*\(", re.IGNORECASE)


class PrivateSqlite(GuardedSqlite):
    """A copy in memory that scripts may change; they cannot reach a file or a setting."""

    def __init__(self, path: Path, limits: SqlLimits) -> None:
        """Copies a file. Raises a SqlError if it cannot be read or is too large."""
        super().__init__(None, limits)
        self.trusted = True
        try:
            self.connection.execute("PRAGMA temp_store = MEMORY")
            with closing(sqlite3.connect(address_of(path), uri=True)) as source:
                source.backup(self.connection)
            ((page,),) = self.connection.execute("PRAGMA page_size")
            self.connection.execute(f"PRAGMA max_page_count = {limits.memory_bytes // 2 // page}")
        except (sqlite3.Error, MemoryError) as error:
            raise SqlError(ErrorClass.OTHER, f"the database {path} cannot be copied: {error}") from error
        finally:
            self.trusted = False

    def run(self, statement: str, seconds: float) -> SqlRows:
        """Runs one statement of a script. Raises a SqlError."""
        return self.guarded(lambda: self._run(statement), seconds)

    def _run(self, statement: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        cursor = self.connection.execute(statement)
        rows = fetch_within(cursor.fetchmany, self.limits) if cursor.description else []
        return tuple(column[0] for column in cursor.description or ()), rows

    def settle(self) -> None:
        """Rolls back what was not committed, as the engine does at the end of a session."""
        if self.connection.in_transaction:
            self._asked("ROLLBACK")

    def things(self) -> dict[str, Thing]:
        """Returns the tables and views, without rows."""
        found = {}
        for kind, name, text in self._asked(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\'"
        ):
            found[name.lower()] = Thing(VIEW, definition=text) if kind == VIEW else self._table(name, text)
        return found

    def chunks(self, name: str) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of a table."""
        try:
            yield from self.connection.execute(f"SELECT * FROM main.{_quoted(name)}")
        except (sqlite3.Error, MemoryError, OverflowError, ValueError) as error:
            raise of_sqlite(error) from error

    def content(self, name: str) -> SqlRows:
        """Returns the rows of a table or view within the limits. Raises a SqlError."""
        return self.run(f"SELECT * FROM main.{_quoted(name)}", self.limits.seconds)

    def _table(self, name: str, text: str) -> Thing:
        columns = [
            (column.lower(), declared, filled, default, place, hidden)
            for _, column, declared, filled, default, place, hidden in self._pragma("table_xinfo", name)
        ]
        key = tuple(column for column, *_, place, _ in sorted(columns, key=lambda c: c[4]) if place)
        rules = {f"primary key {names(sorted(key))}"} if key else set[str]()
        for column, declared, filled, default, place, hidden in columns:
            rules |= {f"type {names([column])} {_kind(declared)}"} if declared else set()
            rules |= {f"not null {names([column])}"} if filled and not place else set()
            rules |= {f"{DEFAULT}{names([column])} {normal(default)}"} if default is not None else set()
            rules |= {f"generated {names([column])}"} if hidden in (2, 3) else set()
        rules |= {*self._indexes(name), *self._references(name)}
        rules |= {f"{CHECK}{normal(check)}" for check in _checks(text)}
        triggers = self._asked(
            "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = lower(?) ORDER BY sql", name
        )
        rules |= {A_TRIGGER} if triggers else set()
        definition = "\n".join(trigger for (trigger,) in triggers)
        return Thing(TABLE, tuple(column for column, *_ in columns), rules=frozenset(rules), definition=definition)

    def _indexes(self, table: str) -> Iterator[str]:
        for _, index, unique, origin, partial in self._pragma("index_list", table):
            if origin == "pk":
                continue
            columns = [name for _, _, name in sorted(self._pragma("index_info", index))]
            found = self._asked("SELECT sql FROM sqlite_master WHERE name = ? AND sql IS NOT NULL", index)
            what = "unique" if unique else "index"
            if found and (partial or None in columns):
                yield f"{what} {normal(found[0][0][found[0][0].index('(') :])}"
            else:
                yield f"{what} {names(sorted(columns) if unique else columns)}"

    def _references(self, table: str) -> Iterator[str]:
        keys: dict[int, list[tuple[Any, ...]]] = {}
        for number, _, *found in sorted(self._pragma("foreign_key_list", table), key=lambda row: row[:2]):
            keys.setdefault(number, []).append(tuple(found))
        for parts in keys.values():
            other, _, to, updating, deleting, _ = parts[0]
            targets = [part[2] for part in parts] if to else self._key_of(other)
            actions = f" on update {updating} on delete {deleting}".replace(" on update NO ACTION", "")
            actions = actions.replace(" on delete NO ACTION", "").lower()
            yield f"foreign key {names(part[1] for part in parts)} references {other.lower()} {names(targets)}{actions}"

    def _key_of(self, table: str) -> list[str]:
        found = [(place, name) for _, name, _, _, _, place in self._pragma("table_info", table) if place]
        return [name for _, name in sorted(found)]

    def _pragma(self, pragma: str, name: str) -> list[tuple[Any, ...]]:
        """Returns what a pragma tells of an object; as a statement, since a script may make a table of its name."""
        return self._asked(f"PRAGMA main.{pragma}({_quoted(name)})")

    def _asked(self, sql: str, *arguments: Any) -> list[tuple[Any, ...]]:
        """Returns the rows of a query of ours; nothing of a script is prepared by it but the names of objects."""
        self.trusted = True
        try:
            return self.connection.execute(sql, arguments).fetchall()
        except (sqlite3.Error, MemoryError, OverflowError, ValueError) as error:
            raise of_sqlite(error) from error
        finally:
            self.trusted = False

    def _authorize(self, action: int, first: str | None, second: str | None, *further: str | None) -> int:
        if self.trusted or action in _WRITES:
            return sqlite3.SQLITE_OK
        allowed = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _kind(declared: str) -> str:
    """Returns what a column holds: SQLite has no types of dates and truth values."""
    found = kind_of_type(declared)
    return {"date": "text", "timestamp": "text", "time": "text", "boolean": "number"}.get(found, found)


def _checks(text: str) -> Iterator[str]:
    for found in _CHECK.finditer(text):
        depth, place = 1, found.end()
        while depth and place < len(text):
            depth += (text[place] == "(") - (text[place] == ")")
            place += 1
        yield text[found.end() : place - 1]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
