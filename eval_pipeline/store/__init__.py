"""Storage: the record (Parquet files, the source of truth) and the published store (a DuckDB file made from it)."""
