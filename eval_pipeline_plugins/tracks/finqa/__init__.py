"""The track `finqa`: conversational financial question answering (docs/finqa.md)."""

from collections.abc import Mapping

from eval_pipeline.store.schemas import Column
from eval_pipeline.tracks.manifest import Manifest
from eval_pipeline.tracks.metric import Metric
from eval_pipeline_plugins.tracks.finqa.metrics import METRICS

_FEATURE_COLUMNS = (
    Column("has_type2_question", "BOOLEAN", "The conversation joins two original questions; never NULL."),
    Column("has_duplicate_columns", "BOOLEAN", "Columns of the table share a name; never NULL."),
    Column("has_non_numeric_values", "BOOLEAN", "The table has cells that are no numbers; never NULL."),
    Column("num_dialogue_turns", "BIGINT", "Turns of the conversation; never NULL."),
)
_TURN_COLUMNS = (
    Column("ground_truth_program", "VARCHAR", "The gold program of the turn; never NULL."),
    Column("expected_printed", "VARCHAR", "The expected answer in the filing's style; NULL where none is known."),
    Column("plan", "JSON", "The plan of the final attempt; NULL where none could be read."),
)
FAILURE_MODES = (
    "no_answer",
    "refusal",
    "execution_error",
    "inherited_error",
    "sign_error",
    "scale_error",
    "swapped_operands",
    "wrong_year",
    "wrong_row",
    "wrong_operations",
    "wrong_operands",
    "other",
    "rounding",
)
"""In the order in which they are tried; `rounding` marks correct turns."""


class FinqaManifest(Manifest):
    """Its names, columns and tables."""

    name = "finqa"
    task = "eval_pipeline_plugins.tracks.finqa.track:TRACK"
    primary_metric = "numerical_match"
    metrics: tuple[Metric, ...] = METRICS
    feature_columns: tuple[Column, ...] = _FEATURE_COLUMNS
    turn_columns: tuple[Column, ...] = _TURN_COLUMNS
    error_columns: tuple[str, ...] = (
        "has_type2_question",
        "has_non_numeric_values",
        "plan_steps",
        "operations_per_turn",
    )
    prompt_versions: tuple[str, ...] = ("calculation-1", "plan-1")
    complexity_columns: Mapping[str, str] = {
        "operations": "gold_operations",
        "turn_number": "turn_index",
        "plan_operations": "operations_per_turn",
    }
    failure_modes: tuple[str, ...] = FAILURE_MODES


MANIFEST = FinqaManifest()
