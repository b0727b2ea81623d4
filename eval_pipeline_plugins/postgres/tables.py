"""The tables of ours in the database: one schema, made once, of a known version."""

from typing import TYPE_CHECKING

from eval_pipeline.core.errors import StoreError

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMA = "eval_pipeline"
VERSION = 1
_MAKING = 0x6576_616C_7069_7065
"""Key of the advisory lock under which one process at a time makes the tables."""

_TABLES = f"""
CREATE SCHEMA {SCHEMA};
CREATE TABLE {SCHEMA}.meta(version INTEGER NOT NULL);
INSERT INTO {SCHEMA}.meta VALUES ({VERSION});
CREATE TABLE {SCHEMA}.responses(
    key TEXT PRIMARY KEY,
    body BYTEA NOT NULL,
    written_at BIGINT NOT NULL,      -- seconds since 1970
    digest BYTEA NOT NULL            -- of key and body
);
CREATE TABLE {SCHEMA}.damaged_responses(
    key TEXT NOT NULL,
    body BYTEA,
    written_at BIGINT,
    digest BYTEA,
    set_aside_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE {SCHEMA}.batches(
    intent_id TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    model_version TEXT NOT NULL,
    created_at TEXT NOT NULL,        -- ISO, UTC
    custom_ids TEXT NOT NULL,        -- JSON: the journal keys of its requests
    batch_id TEXT,                   -- the provider's; NULL: not handed in, or not known to be
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    digest TEXT NOT NULL             -- of all others
);
CREATE TABLE {SCHEMA}.judgements(
    key TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    written_at DOUBLE PRECISION NOT NULL  -- seconds since 1970
);
CREATE SEQUENCE {SCHEMA}.fences;
CREATE TABLE {SCHEMA}.leases(
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,             -- host, process and one taking of the lease
    fence BIGINT NOT NULL,           -- no two takings of any lease have the same
    taken_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    expires_at TIMESTAMPTZ NOT NULL,
    calls BIGINT NOT NULL DEFAULT 0, -- allowed under this fence, with the most that they could cost
    tokens BIGINT NOT NULL DEFAULT 0,
    usd DOUBLE PRECISION NOT NULL DEFAULT 0
);
"""


def prepare(connection: "Connection") -> None:
    """Makes the tables if they are missing.

    Raises:
        StoreError: a newer version of this program made them.
    """
    if _version(connection) is None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            if _version(connection) is None:
                connection.execute(_TABLES)
    found = _version(connection)
    assert found is not None
    if found > VERSION:
        raise StoreError(
            f"the database was prepared by a newer eval-pipeline (schema {found}, this one knows {VERSION}); use that "
            "version, or set EVAL_DATABASE_URL to another database"
        )


def _version(connection: "Connection") -> int | None:
    """Returns the version of the tables; None if there are none."""
    # Read from the catalogue's tables: `to_regclass` may answer from before the wait for the lock.
    there = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = 'meta'",
        (SCHEMA,),
    ).fetchone()
    if there is None:
        return None
    row = connection.execute(f"SELECT max(version) FROM {SCHEMA}.meta").fetchone()
    return None if row is None else row[0]
