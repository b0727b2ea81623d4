"""The track's own table in the store."""

from eval_pipeline.store.schemas import Column, Table

DATABASES = Table(
    "sql_databases",
    "One row per database that the cases of a suite ask about.",
    (
        Column("database", "VARCHAR", "Name of the database within the suite; never NULL."),
        Column("dialect", "VARCHAR", "Dialect in which its queries are written, by sqlglot's name; never NULL."),
        Column("ddl", "VARCHAR", "Its schema as CREATE TABLE statements of DuckDB; never NULL.", long=True),
        Column("schema", "JSON", "Its tables with columns, keys and checks; never NULL."),
        Column("files", "JSON", "Files in the suite's folder that it is made from; empty where it is a schema only."),
        Column("content_hash", "VARCHAR", "SHA-256 of these files, 32 hexadecimal digits; never NULL."),
        Column("rows", "BIGINT", "Rows of all its tables; 0: the suite ships no data for it; never NULL."),
        Column("max_rows", "BIGINT", "Most rows of a result, accepted or answered; NULL: an older version."),
        Column("query_time_limit_s", "DOUBLE", "Seconds that such a query may take; NULL: an older version."),
        Column("as_of", "VARCHAR", "Time that queries read from the clock; NULL: the time at which they run."),
    ),
    key="suite",
)
