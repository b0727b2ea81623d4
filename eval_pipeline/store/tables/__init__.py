"""All tables of the store, and the Arrow schemas made from them."""

from collections.abc import Sequence

import pyarrow as pa

from eval_pipeline.store.schemas import ColumnType, Table
from eval_pipeline.store.tables.aggregates import (
    ACCURACY_BY_COMPLEXITY,
    ACCURACY_BY_CONTRACT,
    AGGREGATE_TABLES,
    CALIBRATION,
    COMPLEXITY_CEILING,
    COST_PER_CORRECT_ANSWER,
    COVERAGE,
    ERROR_ANALYSIS,
    JUDGE_AGREEMENT,
    LABEL_CONFUSION,
    LABEL_SCORES,
    STATISTICS,
    SUPERSEDED_STATISTICS,
)
from eval_pipeline.store.tables.comparisons import (
    ACKNOWLEDGEMENTS,
    COMPARED_TRENDS,
    COMPARISON_TABLES,
    METRIC_COMPARISONS,
    MODEL_COMPARISONS,
)
from eval_pipeline.store.tables.further import (
    DRAW_TABLES,
    GOLD_EDITIONS,
    GOLD_OVERRIDES,
    GOLD_SUITE_TABLES,
    GOLD_SUSPECTS,
    GOLD_TURN_TABLES,
    REVIEW_STATISTICS,
    REVIEW_TABLES,
    REVIEWS,
    SAMPLED_ESTIMATES,
    SAMPLING_DESIGN,
    SUITE_EDITIONS,
)
from eval_pipeline.store.tables.suites import (
    CASE_PROBLEMS,
    CASES,
    LEFT_OUT_CASES,
    MODEL_VERSIONS,
    RUNS,
    SUITE_TABLES,
    SUITES,
    TURNS,
)
from eval_pipeline.store.tables.turns import (
    ATTEMPTS,
    JUDGE_REPEATS,
    JUDGEMENTS,
    METRIC_ERRORS,
    METRICS,
    PROMPTS,
    TURN_ERRORS,
    TURN_RESULTS,
    TURN_TABLES,
    VALIDATION,
    track_turns_table,
)
from eval_pipeline.store.tables.turns import EVIDENCE as ALL_EVIDENCE

__all__ = [
    "ACCURACY_BY_COMPLEXITY",
    "ACCURACY_BY_CONTRACT",
    "ACKNOWLEDGEMENTS",
    "ALL_EVIDENCE",
    "ATTEMPTS",
    "CALIBRATION",
    "CASES",
    "CASE_PROBLEMS",
    "COMPLEXITY_CEILING",
    "COST_PER_CORRECT_ANSWER",
    "COVERAGE",
    "ERRORS",
    "ERROR_ANALYSIS",
    "EVIDENCE",
    "GENERATIONS",
    "GENERATION_PROMPTS",
    "GOLD_EDITIONS",
    "GOLD_OVERRIDES",
    "GOLD_SUSPECTS",
    "JUDGEMENTS",
    "JUDGE_AGREEMENT",
    "JUDGE_REPEATS",
    "LABEL_CONFUSION",
    "LABEL_SCORES",
    "LEFT_OUT_CASES",
    "MEASURED_EVIDENCE",
    "METRICS",
    "METRIC_COMPARISONS",
    "METRIC_ERRORS",
    "MODEL_COMPARISONS",
    "MODEL_VERSIONS",
    "PROMPTS",
    "RECOVERY_ATTEMPTS",
    "RECOVERY_PROMPTS",
    "REVIEWS",
    "REVIEW_STATISTICS",
    "RUNS",
    "SAMPLED_ESTIMATES",
    "SAMPLING_DESIGN",
    "STATISTICS",
    "SUITES",
    "SUITE_EDITIONS",
    "SUPERSEDED_STATISTICS",
    "TRENDS",
    "TURNS",
    "TURN_ERRORS",
    "TURN_RESULTS",
    "VALIDATION",
    "all_tables",
    "arrow_schema",
    "earlier_tables",
    "published_tables",
    "track_turns_table",
]

GENERATIONS, RECOVERY_ATTEMPTS = ATTEMPTS.record_tables()
GENERATION_PROMPTS, RECOVERY_PROMPTS = PROMPTS.record_tables()
EVIDENCE, MEASURED_EVIDENCE = ALL_EVIDENCE.record_tables()
(ERRORS,) = TURN_ERRORS.record_tables()
(TRENDS,) = COMPARED_TRENDS.record_tables()

_ARROW_TYPES: dict[ColumnType, pa.DataType] = {
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "JSON": pa.string(),
}


def all_tables(track_tables: Sequence[Table]) -> tuple[Table, ...]:
    """Returns every published table in creation order; the tracks' tables are passed in."""
    further = (*GOLD_SUITE_TABLES, *GOLD_TURN_TABLES, *REVIEW_TABLES, *DRAW_TABLES)
    return (*SUITE_TABLES, *TURN_TABLES, *track_tables, *AGGREGATE_TABLES, *COMPARISON_TABLES, *further)


def earlier_tables(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Returns the published tables of earlier evaluations; the runs of all evaluations of a date are in one table."""
    return tuple(table.of_earlier() for table in tables if table.key in {"partition", "shared"} and table != RUNS)


def published_tables(track_tables: Sequence[Table]) -> tuple[Table, ...]:
    """Returns the tables of the newest evaluation of each date and of suites, then those of earlier evaluations."""
    tables = all_tables(track_tables)
    return (*tables, *earlier_tables(tables))


def arrow_schema(table: Table) -> pa.Schema:
    """Returns the schema of the table's Parquet files: key columns first, JSON as text."""
    return pa.schema([pa.field(column.name, _ARROW_TYPES[column.type]) for column in table.all_columns])
