"""Compares tables: what one must overlook for them to be equal, or how they differ.

Knows no track, no engine and no file format; rows may be plain or Arrow's.
"""

from eval_pipeline.table_comparison.alignment.pairing import Pairing, pair
from eval_pipeline.table_comparison.comparison import TableComparison, compare
from eval_pipeline.table_comparison.difference import Difference
from eval_pipeline.table_comparison.graded import common_cells, only_in_one, soft_f1
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.table_comparison.rows import TooManyOrdersError, column_choices, column_orders, equal, same_rows
from eval_pipeline.table_comparison.table import ComparedTable, Shape

__all__ = [
    "ComparedTable",
    "Difference",
    "Pairing",
    "Relaxation",
    "Shape",
    "TableComparison",
    "TooManyOrdersError",
    "column_choices",
    "column_orders",
    "common_cells",
    "compare",
    "equal",
    "only_in_one",
    "pair",
    "same_rows",
    "soft_f1",
]
