"""Names shared by tables, metrics and the modules that parse SQL, so that the latter need not be loaded."""

from typing import Literal

DEFAULT_DIALECT = "duckdb"
"""The dialect of queries and databases if the suite names none."""

Category = Literal["syntax error", "schema violation", "safety violation"]
"""The category of a problem that the validator finds."""
SYNTAX: Category = "syntax error"
SCHEMA: Category = "schema violation"
SAFETY: Category = "safety violation"

SAME = ("equivalent", "agreed", "weakly_agreed")
"""The verdicts on equivalence by which a query counts as right, if there is no data to run it on."""

TABLES, JOINS, AGGREGATES, FILTERS = "tables", "joins", "aggregates", "filters"
GROUPS, COLUMNS, ORDERS, SETS = "groups", "columns", "orders", "sets"
PARTS = (TABLES, JOINS, AGGREGATES, FILTERS, GROUPS, COLUMNS, ORDERS, SETS)
"""The parts in which the syntax trees of two queries may differ, in the order in which they explain a wrong answer."""
