"""The record (Parquet) and the published store (DuckDB)."""
