"""A private copy of a database on PostgreSQL: a schema made in a transaction that is never committed."""

import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.effects.state import (
    A_TRIGGER,
    CHECK,
    DEFAULT,
    FUNCTION,
    MATERIALIZED,
    SCHEMA,
    SEQUENCE,
    TABLE,
    TYPE,
    VIEW,
    Thing,
    kind_of_type,
    names,
    normal,
)
from eval_pipeline.sandbox.sql.errors import SqlError, of_postgres
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.sessions import one_line, open_postgres
from eval_pipeline.sandbox.sql.rows import SqlRows, fetch_within

_COMMITS = re.compile(r"(?im)^[ \t]*(?:BEGIN|COMMIT|START[ \t]+TRANSACTION)(?:[ \t]+(?:WORK|TRANSACTION))?[ \t]*;")
_CONTROL = re.compile(
    r"(?is)(?:\s++|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+(?P<verb>BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE)\b"
    r"(?P<rest>.*)"
)
_ENDS = ("57P01", "57P02", "57P03", "57P05", "25P03", "08")
_FOREIGN = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
_CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class ServerCopy:
    """What a private copy on PostgreSQL is made from.

    Attributes:
        dsn: address of the role that runs scripts; never shown.
        scripts: texts that define and fill the tables.
        tables: further rows: table, columns and rows as texts.
    """

    dsn: str
    scripts: tuple[str, ...]
    tables: tuple[tuple[str, tuple[str, ...], tuple[tuple[str | None, ...], ...]], ...] = ()

    def as_json(self) -> list[Any]:
        """Returns it in the form that the child process reads."""
        return [self.dsn, self.scripts, self.tables]

    @classmethod
    def from_json(cls, told: list[Any]) -> Self:
        """Reads what `as_json` wrote."""
        return cls(*told)


class PrivatePostgres:
    """Runs scripts in one transaction, in which savepoints stand for the transactions of the script."""

    def __init__(self, copy: ServerCopy, limits: SqlLimits) -> None:
        """Makes the tables.

        Raises:
            SqlError: that fails.
            ConnectionError: the session breaks; the methods raise it, too.
            UnreachableError: the server does not answer.
        """
        import psycopg

        self.limits, self._in_block = limits, False
        self._addresses: dict[str, str] = {}
        word = secrets.token_hex(6)
        self._schema, self._block, self._step = f"eval_{word}", f"eval_block_{word}", f"eval_step_{word}"
        self._session = open_postgres(copy.dsn, prepare_threshold=None)
        try:
            self._session.execute(f"BEGIN; CREATE SCHEMA {self._schema}; SET LOCAL search_path = {self._schema}")
            self._session.execute("SET LOCAL timezone = 'UTC'; SET LOCAL client_connection_check_interval = '1000'")
            for script in copy.scripts:
                self._session.execute(_COMMITS.sub("", script))
            for table, columns, rows in copy.tables:
                self._fill(table, columns, rows)
            if not self._session.execute("SELECT to_regnamespace(%s)", [self._schema]).fetchone() or not self._open():
                raise SqlError(ErrorClass.OTHER, "a script of the database ends the transaction that it is made in")
            self._session.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except psycopg.Error as error:
            told = self._told(error)
            self.close()
            raise told from error

    def _open(self) -> bool:
        from psycopg.pq import TransactionStatus

        return self._session.info.transaction_status == TransactionStatus.INTRANS

    def _fill(self, table: str, columns: tuple[str, ...], rows: Any) -> None:
        from psycopg import sql

        into = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._session.cursor() as cursor, cursor.copy(into) as copy:
            for row in rows:
                copy.write_row(row)

    def close(self) -> None:
        """Ends the session; the server forgets everything that happened in it."""
        self._session.close()

    def run(self, statement: str, seconds: float) -> SqlRows:
        """Runs one statement of a script. Raises a SqlError, after which only reading makes sense.

        Args:
            statement: what a model wrote.
            seconds: time limit by the clock, kept by the server.
        """
        import psycopg

        wall = time.perf_counter()
        found = _CONTROL.fullmatch(statement)
        try:
            self._session.execute(f"SET LOCAL statement_timeout = {max(int(seconds * 1000), 1)}")
            if found is not None and self._controlled(" ".join(found["verb"].upper().split()), found["rest"]):
                return SqlRows((), [], time.perf_counter() - wall)
            columns, rows = self._stepped(statement)
        except psycopg.Error as error:
            raise self._told(error) from error
        except (ValueError, OverflowError, MemoryError) as error:
            raise SqlError(ErrorClass.VALUE, f"a value of the result cannot be read: {error}") from error
        return SqlRows(columns, rows, time.perf_counter() - wall)

    def _controlled(self, verb: str, rest: str) -> bool:
        """Does what BEGIN, COMMIT and ROLLBACK ask for; returns false for a statement that the server runs itself."""
        if verb in ("BEGIN", "START TRANSACTION"):
            if not self._in_block:
                self._session.execute(f"SAVEPOINT {self._block}")
                self._defer()
                self._in_block = True
            return True
        if verb in ("SAVEPOINT", "RELEASE") or re.match(r"(?i)\s+(?:WORK\s+|TRANSACTION\s+)?TO\b", rest):
            if not self._in_block:
                raise SqlError(ErrorClass.OTHER, f"{verb} can only be used in transaction blocks")
            return False
        if self._in_block and verb in ("COMMIT", "END"):
            self._session.execute("SET CONSTRAINTS ALL IMMEDIATE")
            self._session.execute(f"RELEASE SAVEPOINT {self._block}")
            self._in_block = False
        elif self._in_block:
            self.settle()
        return True

    def _defer(self) -> None:
        """Defers the constraints that a transaction begins with deferred."""
        from psycopg import sql

        found = self._asked(
            "SELECT n.nspname, c.conname FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace "
            f"WHERE c.condeferred AND {_FOREIGN}"
        )
        if found:
            deferred = sql.SQL(", ").join(sql.Identifier(*names) for names in found)
            self._session.execute(sql.SQL("SET CONSTRAINTS {} DEFERRED").format(deferred))

    def _stepped(self, statement: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Runs a statement that undoes itself if it fails. `binary` allows no more than one statement."""
        if self._in_block:  # a failure ends the block
            return self._fetched(statement)
        self._session.execute(f"SAVEPOINT {self._step}")
        found = self._fetched(statement)
        self._session.execute(f"RELEASE SAVEPOINT {self._step}")
        return found

    def _fetched(self, statement: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        with self._session.cursor() as cursor:
            cursor.execute(statement, binary=True)
            if cursor.description is None:
                return (), []
            columns = tuple(column.name for column in cursor.description)
            return columns, fetch_within(cursor.fetchmany, self.limits)

    def settle(self) -> None:
        """Rolls back what failed or was not committed, as the engine does at the end of a session.

        From then on, a temporary table hides no table, and none of the server's catalogues.
        """
        if self._in_block:
            self._do(f"ROLLBACK TO SAVEPOINT {self._block}; RELEASE SAVEPOINT {self._block}")
            self._in_block = False
        elif not self._open():
            self._do(f"ROLLBACK TO SAVEPOINT {self._step}; RELEASE SAVEPOINT {self._step}")
        self._do(f"SET LOCAL search_path = {self._schema}, pg_temp; SET LOCAL statement_timeout = 0")

    def _do(self, text: str) -> None:
        import psycopg

        try:
            self._session.execute(text)
        except psycopg.Error as error:
            raise self._told(error) from error

    def things(self) -> dict[str, Thing]:
        """Returns everything that scripts can define, without rows."""
        found = {}
        for schema, name, oid in self._asked(_TABLES):
            found[self._named(schema, name)] = self._table(oid)
        for kind, schema, name, definition in self._asked(_VIEWS):
            found[self._named(schema, name)] = Thing(kind, definition=definition)
        for kind, schema, name, definition in self._asked(_OTHERS):
            found[f"{kind} {self._named(schema, name)}"] = Thing(kind, definition=definition)
        for (schema,) in self._asked(f"SELECT n.nspname FROM pg_namespace n WHERE {_FOREIGN}"):
            if schema not in (self._schema, "public"):
                found[f"{SCHEMA} {schema}"] = Thing(SCHEMA)
        return found

    def chunks(self, name: str) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of a table."""
        import psycopg

        try:
            with self._session.cursor(f"eval_rows_{secrets.token_hex(6)}") as found:
                found.itersize = _CHUNK
                found.execute(f"SELECT * FROM {self._addresses[name]}")
                yield from found
        except psycopg.Error as error:
            raise self._told(error) from error
        except (ValueError, OverflowError) as error:
            raise SqlError(ErrorClass.VALUE, f"a value of the table {name} cannot be read: {error}") from error

    def content(self, name: str) -> SqlRows:
        """Returns the rows of a table or view within the limits. Raises a SqlError."""
        return self.run(f"SELECT * FROM {self._addresses[name]}", self.limits.seconds)

    def _table(self, oid: int) -> Thing:
        columns = self._asked(_COLUMNS, oid)
        constraints = self._asked(_CONSTRAINTS, oid)
        key = tuple(c.lower() for kind, parts, _ in constraints if kind == "p" for c in parts)
        rules = set[str]()
        for column, declared, filled, default, generated in columns:
            rules.add(f"type {names([column])} {kind_of_type(declared)}")
            rules |= {f"not null {names([column])}"} if filled and column.lower() not in key else set()
            rules |= {f"generated {names([column])}"} if generated else set()
            if default is not None and not generated:
                drawn = "from a sequence" if default.startswith("nextval(") else normal(default)
                rules.add(f"{DEFAULT}{names([column])} {drawn}")
        for kind, parts, text in constraints:
            if kind in "pu":
                told = "primary key" if kind == "p" else "unique"
                rules.add(f"{told} {names(sorted(part.lower() for part in parts))}")
            elif kind == "c":
                rules.add(f"{CHECK}{normal(text.removeprefix('CHECK '))}")
            else:
                rules.add(" ".join(text.lower().split()))
        for unique, text in self._asked(_INDEXES, oid):
            using = text[text.index(" USING ") + len(" USING ") :].removeprefix("btree ")
            parts = [part.strip() for part in using.strip("()").split(",")]
            plain = using.startswith("(") and all(re.fullmatch(r"\w+", part) for part in parts)
            inner = names(sorted(parts) if unique else parts) if plain else normal(using)
            rules.add(f"{'unique' if unique else 'index'} {inner}")
        triggers = self._asked(_TRIGGERS, oid)
        rules |= {A_TRIGGER} if triggers else set()
        definition = "\n".join(trigger for (trigger,) in triggers)
        return Thing(TABLE, tuple(c.lower() for c, *_ in columns), rules=frozenset(rules), definition=definition)

    def _named(self, schema: str, name: str) -> str:
        from psycopg import sql

        found = (name if schema == self._schema else f"{schema}.{name}").lower()
        self._addresses[found] = sql.Identifier(schema, name).as_string(None)
        return found

    def _asked(self, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
        import psycopg

        try:
            return self._session.execute(query, arguments or None).fetchall()
        except psycopg.Error as error:
            raise self._told(error) from error

    def _told(self, error: Any) -> Exception:
        state, message = error.sqlstate, (error.diag.message_primary or one_line(error))
        if state is None or state.startswith(_ENDS):
            if not self._session.closed:
                return SqlError(ErrorClass.VALUE, one_line(error))
            return ConnectionError(message)
        return of_postgres(state, message)


_TABLES = f"""
SELECT n.nspname, c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND {_FOREIGN}
"""
_VIEWS = f"""
SELECT CASE c.relkind WHEN 'v' THEN '{VIEW}' ELSE '{MATERIALIZED}' END, n.nspname, c.relname, pg_get_viewdef(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v', 'm') AND {_FOREIGN}
"""
_TRIGGERS = """
SELECT pg_get_triggerdef(oid, true) FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal ORDER BY 1
"""
_OTHERS = f"""
SELECT '{FUNCTION}', n.nspname, p.proname, p.prosrc || p.proargtypes::text FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {_FOREIGN}
UNION ALL
SELECT '{SEQUENCE}', n.nspname, c.relname, '' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND {_FOREIGN}
AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i'))
UNION ALL
SELECT '{TYPE}', n.nspname, t.typname, '' FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE {_FOREIGN} AND (t.typtype IN ('e', 'd') OR
(t.typtype = 'c' AND EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c')))
"""
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
CASE WHEN a.attidentity <> '' THEN 'nextval(' ELSE pg_get_expr(d.adbin, d.adrelid) END, a.attgenerated <> ''
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_CONSTRAINTS = """
SELECT c.contype::text, ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY k(n, place)
JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.n ORDER BY k.place), pg_get_constraintdef(c.oid)
FROM pg_constraint c WHERE c.conrelid = %s AND c.contype IN ('p', 'u', 'c', 'f')
"""
_INDEXES = """
SELECT i.indisunique, pg_get_indexdef(i.indexrelid) FROM pg_index i WHERE i.indrelid = %s
AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.contype IN ('p', 'u'))
"""
