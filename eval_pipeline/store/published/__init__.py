"""The published store: a DuckDB file or catalog made from the record, and read-only access to it."""
