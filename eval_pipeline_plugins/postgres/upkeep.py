"""What reads and removes rows of the tables of ours, in pieces."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from eval_pipeline_plugins.postgres.session import Session

if TYPE_CHECKING:
    from psycopg import Connection

_CHUNK = 500


def rewrite(session: Session, *tables: str) -> None:
    """Makes Postgres rewrite tables, so that nothing of deleted rows remains in their files."""
    for table in tables:
        execute(session, f"VACUUM FULL eval_pipeline.{table}")


def rows_of(
    session: Session, table: str, columns: Sequence[str], where: str = "TRUE", *values: object
) -> Iterator[Any]:
    """Yields the rows of a table in pieces, in the order of the first column; a journal need not fit into memory."""
    key = columns[0]
    query = f"""
        SELECT {", ".join(columns)} FROM eval_pipeline.{table}
        WHERE {where} AND {key} > %s ORDER BY {key} LIMIT {_CHUNK}"""
    last = ""
    while True:

        def piece(connection: "Connection", last: str = last) -> list[Any]:
            return connection.execute(query, (*values, last), binary=True).fetchall()

        rows = session.run(piece)
        yield from rows
        if len(rows) < _CHUNK:
            return
        last = rows[-1][0]


def delete(session: Session, table: str, column: str, keys: Sequence[str]) -> None:
    """Deletes rows by key."""
    for start in range(0, len(keys), _CHUNK):  # short transactions, so that a run can write in between
        chunk = list(keys[start : start + _CHUNK])
        query = f"DELETE FROM eval_pipeline.{table} WHERE {column} = ANY(%s)"
        execute(session, query, chunk)


def execute(session: Session, query: str, *values: object) -> int:
    """Runs a statement and returns how many rows it concerned. Raises StoreError."""
    return session.run(lambda connection: connection.execute(query, values).rowcount)
