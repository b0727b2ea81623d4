"""The track `pandas`: code generation over DataFrames (docs/pandas.md)."""

from collections.abc import Mapping

from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.tracks.manifest import Manifest
from eval_pipeline.tracks.metric import Metric
from eval_pipeline_plugins.tracks.pandas_code.metrics import METRICS

_FEATURE_COLUMNS = (
    Column("tables", "VARCHAR", "Names of the case's tables, parted by commas; empty where there are none."),
    Column("num_dialogue_turns", "BIGINT", "Turns of the conversation; never NULL."),
    Column("has_join", "BOOLEAN", "The case has more than one table; never NULL."),
)
_TURN_COLUMNS = (
    Column("reference_code", "VARCHAR", "The suite's code; NULL where it has none."),
    Column("reference_calls", "BIGINT", "Calls in it, the complexity; 0 without reference code; never NULL."),
    Column("code", "VARCHAR", "The final attempt's code; NULL where there is none."),
)
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
FAILURE_MODES = (
    "no_answer",
    "malformed_answer",
    "syntax_error",
    "timeout",
    "unknown_column",
    "wrong_dtype",
    "execution_error",
    "wrong_shape",
    "wrong_format",
    "wrong_unit",
    "wrong_n",
    "missing_sort",
    "wrong_boundary",
    "wrong_filter",
    "wrong_join",
    "wrong_grouping",
    "wrong_aggregate",
    "wrong_column",
    "wrong_constant",
    "wrong_step",
)
"""All that a turn can have."""


class PandasManifest(Manifest):
    """Its names, columns and tables."""

    name = "pandas"
    task = "eval_pipeline_plugins.tracks.pandas_code.track:TRACK"
    primary_metric = "result_match"
    reason_tells_difference = True
    metrics: tuple[Metric, ...] = METRICS
    feature_columns: tuple[Column, ...] = _FEATURE_COLUMNS
    turn_columns: tuple[Column, ...] = _TURN_COLUMNS
    suite_tables: tuple[Table, ...] = (TABLES,)
    prompt_versions: tuple[str, ...] = ("code-1", "code-2")
    """The second tells the versions of the libraries, and which names of columns count."""
    complexity_columns: Mapping[str, str] = {"reference_calls": "reference_calls"}
    failure_modes: tuple[str, ...] = FAILURE_MODES


MANIFEST = PandasManifest()
