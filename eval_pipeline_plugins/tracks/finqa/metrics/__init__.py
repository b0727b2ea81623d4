"""The metrics of the track. To add one, add its function to the module of its topic, and a line in `METRICS`."""

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored import recovery
from eval_pipeline_plugins.tracks.finqa.metrics import (
    as_written,
    conversation,
    failure_mode,
    resolved,
)
from eval_pipeline_plugins.tracks.finqa.metrics.lengths import gold_operations, operations_per_turn, plan_steps
from eval_pipeline_plugins.tracks.finqa.metrics.logic import (
    logic_f1,
    logic_precision,
    logic_recall,
    operand_recall,
    operation_order,
    partial_credit,
    program_match,
)
from eval_pipeline_plugins.tracks.finqa.metrics.matches import (
    exact_match,
    general_match,
    numerical_match,
    sign_agnostic_match,
    soft_match,
    unit_agnostic_match,
)

METRICS: tuple[Metric, ...] = (
    Metric(
        "numerical_match",
        numerical_match,
        "boolean",
        "Answer within 1% or 0.001 of the expected one; NULL: not scored.",
        mean_name="numerical_accuracy",
    ),
    Metric("soft_match", soft_match, "boolean", "Answer within 1% of the expected one; NULL: not scored."),
    Metric(
        "unit_agnostic_match",
        unit_agnostic_match,
        "boolean",
        "Answer, 100 times it or a hundredth of it within 1% of the expected one; NULL: not scored.",
        mean_name="unit_agnostic_accuracy",
    ),
    Metric(
        "sign_agnostic_match",
        sign_agnostic_match,
        "boolean",
        "Answer within 1% of the expected one, signs aside; NULL: not scored.",
        mean_name="sign_agnostic_accuracy",
    ),
    Metric(
        "general_match",
        general_match,
        "boolean",
        "numerical_match, or the same against the printed answer, or a percent mark on one side only; NULL: not "
        "scored.",
        mean_name="general_accuracy",
    ),
    Metric(
        "exact_match",
        exact_match,
        "boolean",
        "Answer rounded half up to the printed precision is the printed answer; NULL without a printed number.",
    ),
    Metric(
        "logic_recall",
        logic_recall,
        "score",
        "Operations shared by plan and gold / gold operations, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "logic_precision",
        logic_precision,
        "score",
        "Operations shared by plan and gold / operations of the plan, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "logic_f1",
        logic_f1,
        "score",
        "Harmonic mean of logic_recall and logic_precision, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "operation_order",
        operation_order,
        "score",
        "Longest common subsequence of the operations / gold length, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "operand_recall",
        operand_recall,
        "score",
        "Share of the gold's literal operands that the plan extracts or uses, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "program_match",
        program_match,
        "boolean",
        "Plan and gold program are the same expression up to algebra; NULL without a parsed plan.",
    ),
    Metric(
        "partial_credit",
        partial_credit,
        "score",
        "Mean of logic_f1, operand_recall and numerical_match, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "operations_per_turn",
        operations_per_turn,
        "count",
        "Compute steps of the plan as written; NULL without a parsed plan.",
        by_turn_name="avg_operations_by_turn",
    ),
    Metric("gold_operations", gold_operations, "count", "Operations of the gold program; NULL: not scored."),
    Metric("plan_steps", plan_steps, "count", "Steps of the plan; NULL without a parsed plan."),
    failure_mode.METRIC,
    *conversation.METRICS,
    *as_written.METRICS,
    *resolved.METRICS,
    *recovery.METRICS,
)
"""Ordered so that a metric can use those before it."""
