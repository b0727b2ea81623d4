"""The track's own table in the store."""

from eval_pipeline.store.schemas import Column, Table

TABLES = Table(
    "pandas_tables",
    "One row per table that the cases of a suite ask about.",
    (
        Column("table_name", "VARCHAR", "Name of the table within the suite, and of the DataFrame; never NULL."),
        Column("file", "VARCHAR", "Its file below the suite's folder; never NULL."),
        Column("content_hash", "VARCHAR", "SHA-256 of the file, 32 hexadecimal digits; never NULL."),
        Column("rows", "BIGINT", "Its rows; never NULL."),
        Column("columns", "JSON", "Its columns in order: name, dtype, missing and distinct values, examples."),
    ),
    key="suite",
)
