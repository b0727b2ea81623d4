"""Reading, writing and verifying one Parquet file of the record."""

from eval_pipeline.store.parquet.reading import Header, forget_verified, note_written, read_header, row_groups, verify
from eval_pipeline.store.parquet.writing import TableWriter, arrow_array

__all__ = [
    "Header",
    "TableWriter",
    "arrow_array",
    "forget_verified",
    "note_written",
    "read_header",
    "row_groups",
    "verify",
]
