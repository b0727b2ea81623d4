"""The loader's session on PostgreSQL."""

from collections.abc import Iterator, Sequence
from typing import Any

from eval_pipeline.sandbox.sql.live.sessions import open_postgres

_LOADED = "loaded"


class PostgresLoader:
    """See `loading.Loader`. Its role needs CREATE on the database."""

    def __init__(self, dsn: str) -> None:
        import psycopg

        self.failures = (psycopg.Error,)
        self._session: Any = open_postgres(dsn)

    def lock(self, name: str) -> None:
        """Waits for a lock, which the session holds until it ends."""
        self._session.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])

    def schemas(self, beginning: str) -> Iterator[tuple[str, bool]]:
        """Yields schemas by the beginning of their names, and whether they were loaded completely."""
        query = "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE starts_with(nspname, %s)"
        for name, comment in self._session.execute(query, [beginning]).fetchall():
            yield name, comment == _LOADED

    def create(self, schema: str) -> None:
        """Creates an empty schema and chooses it."""
        self._do("CREATE SCHEMA {}", schema)
        self.choose(schema)

    def choose(self, schema: str) -> None:
        """Chooses the schema to which the following calls apply."""
        self._do("SET search_path = {}", schema)

    def drop(self, schema: str) -> None:
        """Drops a schema with everything in it."""
        self._do("DROP SCHEMA {} CASCADE", schema)

    def run(self, script: str) -> None:
        """Runs a script."""
        self._session.execute(script)

    def fill(self, table: str, columns: Sequence[str], rows: Iterator[list[str | None]]) -> None:
        """Adds rows to a table."""
        from psycopg import sql

        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        copy = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
        with self._session.cursor() as cursor, cursor.copy(copy) as into:
            for row in rows:
                into.write_row(row)

    def finish(self, schema: str, reader: str) -> None:
        """Gives the reader the right to read a schema, and marks it as completely loaded."""
        from psycopg import sql

        with open_postgres(reader) as session:
            found = session.execute("SELECT current_user").fetchone()
        assert found is not None
        role = sql.Identifier(found[0])
        for text in ("GRANT USAGE ON SCHEMA {} TO {}", "GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}"):
            self._session.execute(sql.SQL(text).format(sql.Identifier(schema), role))
        self._session.execute("ANALYZE")
        self._session.execute(
            sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(schema), sql.Literal(_LOADED))
        )

    def count(self, tables: Sequence[str]) -> int:
        """Returns the number of rows of tables."""
        from psycopg import sql

        parts = [sql.SQL("(SELECT count(*) FROM {})").format(sql.Identifier(table)) for table in tables]
        found = self._session.execute(sql.SQL("SELECT ") + sql.SQL(" + ").join(parts)).fetchone()
        return int(found[0])

    def close(self) -> None:
        """Ends the session."""
        self._session.close()

    def _do(self, text: str, schema: str) -> None:
        from psycopg import sql

        self._session.execute(sql.SQL(text).format(sql.Identifier(schema)))
