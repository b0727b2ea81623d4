"""The track `text`: plain text tasks, for which `suite.yaml` defines prompt, answer form and metrics (docs/text.md)."""

from collections.abc import Mapping

from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.tracks.manifest import Manifest
from eval_pipeline.tracks.metric import Metric
from eval_pipeline_plugins.tracks.text.metrics import METRICS

TURN_COLUMNS = (
    Column("answer_form", "VARCHAR", "`label`, `number`, `text` or `json`; never NULL."),
    Column("difficulty", "BIGINT", "The case's `difficulty`, from 0; never NULL."),
    Column("expected_label", "VARCHAR", "The right label; NULL where answers are no labels."),
    Column("answer_label", "VARCHAR", "The label that was given; NULL where none was, or answers are no labels."),
)

TASKS = Table(
    "text_tasks",
    "One row per suite of the track: what it asks and how answers are scored.",
    (
        Column("answer_form", "VARCHAR", "`label`, `number`, `text` or `json`; never NULL."),
        Column("labels", "JSON", "Labels that are allowed, in their order; empty where answers are no labels."),
        Column("metrics", "JSON", "Metrics that the suite has, with their parameters; never NULL."),
        Column("decided_by", "VARCHAR", "The metric that decides whether a turn is correct; never NULL."),
        Column("options", "JSON", "All options of the suite; never NULL."),
    ),
    key="suite",
)
FAILURE_MODES = (
    "no_answer",
    "unfinished_answer",
    "unreadable_answer",
    "wrong_label",
    "sign_error",
    "scale_error",
    "wrong_number",
    "missing_fields",
    "extra_fields",
    "wrong_fields",
    "partly_right",
    "wrong_text",
)
"""In the order in which they are tried."""


class TextManifest(Manifest):
    """Its names, columns and tables."""

    name = "text"
    task = "eval_pipeline_plugins.tracks.text.track:TRACK"
    primary_metric = "answer_correct"
    metrics: tuple[Metric, ...] = METRICS
    turn_columns: tuple[Column, ...] = TURN_COLUMNS
    error_columns: tuple[str, ...] = ("expected_label", "answer_label")
    suite_tables: tuple[Table, ...] = (TASKS,)
    prompt_versions: tuple[str, ...] = ("text-1",)
    complexity_columns: Mapping[str, str] = {"difficulty": "difficulty"}
    failure_modes: tuple[str, ...] = FAILURE_MODES


MANIFEST = TextManifest()
