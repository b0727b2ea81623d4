"""Reading, writing and verifying one Parquet file of the record."""
