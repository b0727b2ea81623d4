"""Columns and tables of the track."""

from eval_pipeline.store.schemas import Column, Table

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
