"""Names that tables and metrics share with the modules that parse SQL: to be had without loading those."""

from typing import Literal

DEFAULT_DIALECT = "duckdb"
"""Of queries and databases whose suite names none."""

Category = Literal["syntax error", "schema violation", "safety violation"]
"""Of what the validator finds wrong."""
SYNTAX: Category = "syntax error"
SCHEMA: Category = "schema violation"
SAFETY: Category = "safety violation"

TABLES, FILTERS, AGGREGATES = "tables", "filters", "aggregates"
"""In what the syntax trees of two queries may differ."""
