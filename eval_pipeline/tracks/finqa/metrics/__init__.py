"""The metrics of the track, one file each. To add one, add a file and a line in `METRICS`."""

from eval_pipeline.tracks import recovery
from eval_pipeline.tracks.finqa.metrics import (
    as_written,
    conversation,
    exact_match,
    failure_mode,
    general_match,
    gold_operations,
    logic_f1,
    logic_precision,
    logic_recall,
    numerical_match,
    operand_recall,
    operation_order,
    operations_per_turn,
    partial_credit,
    plan_steps,
    program_match,
    resolved,
    sign_agnostic_match,
    soft_match,
    unit_agnostic_match,
)
from eval_pipeline.tracks.metric import Metric

METRICS: tuple[Metric, ...] = (
    numerical_match.METRIC,
    soft_match.METRIC,
    unit_agnostic_match.METRIC,
    sign_agnostic_match.METRIC,
    general_match.METRIC,
    exact_match.METRIC,
    logic_recall.METRIC,
    logic_precision.METRIC,
    logic_f1.METRIC,
    operation_order.METRIC,
    operand_recall.METRIC,
    program_match.METRIC,
    partial_credit.METRIC,
    operations_per_turn.METRIC,
    gold_operations.METRIC,
    plan_steps.METRIC,
    failure_mode.METRIC,
    *conversation.METRICS,
    *as_written.METRICS,
    *resolved.METRICS,
    *recovery.METRICS,
)
"""Ordered so that a metric can use those before it."""
