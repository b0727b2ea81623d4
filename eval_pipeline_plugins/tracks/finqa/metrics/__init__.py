"""The metrics of the track. To add one, add its function to the module of its topic, and a line in `METRICS`."""

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored import recovery

METRICS: tuple[Metric, ...] = (
    Metric(
        "numerical_match",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.matches:numerical_match"),
        "boolean",
        "Answer within 1% or 0.001 of the expected one; NULL: not scored.",
        mean_name="numerical_accuracy",
    ),
    Metric(
        "soft_match",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.matches:soft_match"),
        "boolean",
        "Answer within 1% of the expected one; NULL: not scored.",
    ),
    Metric(
        "unit_agnostic_match",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.matches:unit_agnostic_match"),
        "boolean",
        "Answer, 100 times it or a hundredth of it within 1% of the expected one; NULL: not scored.",
        mean_name="unit_agnostic_accuracy",
    ),
    Metric(
        "sign_agnostic_match",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.matches:sign_agnostic_match"),
        "boolean",
        "Answer within 1% of the expected one, signs aside; NULL: not scored.",
        mean_name="sign_agnostic_accuracy",
    ),
    Metric(
        "general_match",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.matches:general_match"),
        "boolean",
        "numerical_match, or the same against the printed answer, or a percent mark on one side only; NULL: not "
        "scored.",
        mean_name="general_accuracy",
    ),
    Metric(
        "exact_match",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.matches:exact_match"),
        "boolean",
        "Answer rounded half up to the printed precision is the printed answer; NULL without a printed number.",
    ),
    Metric(
        "logic_recall",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.logic:logic_recall"),
        "score",
        "Operations shared by plan and gold / gold operations, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "logic_precision",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.logic:logic_precision"),
        "score",
        "Operations shared by plan and gold / operations of the plan, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "logic_f1",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.logic:logic_f1"),
        "score",
        "Harmonic mean of logic_recall and logic_precision, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "operation_order",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.logic:operation_order"),
        "score",
        "Longest common subsequence of the operations / gold length, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "operand_recall",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.logic:operand_recall"),
        "score",
        "Share of the gold's literal operands that the plan extracts or uses, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "program_match",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.logic:program_match"),
        "boolean",
        "Plan and gold program are the same expression up to algebra; NULL without a parsed plan.",
    ),
    Metric(
        "partial_credit",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.logic:partial_credit"),
        "score",
        "Mean of logic_f1, operand_recall and numerical_match, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "operations_per_turn",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.lengths:operations_per_turn"),
        "count",
        "Compute steps of the plan as written; NULL without a parsed plan.",
        by_turn_name="avg_operations_by_turn",
    ),
    Metric(
        "gold_operations",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.lengths:gold_operations"),
        "count",
        "Operations of the gold program; NULL: not scored.",
    ),
    Metric(
        "plan_steps",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.lengths:plan_steps"),
        "count",
        "Steps of the plan; NULL without a parsed plan.",
    ),
    Metric(
        "failure_mode",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.failure_mode:failure_mode"),
        "label",
        "Why the answer is wrong, first that applies; `rounding` for a correct one; NULL where nothing went wrong.",
    ),
    Metric(
        "right_after_right",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.conversation:right_after_right"),
        "boolean",
        "The turn is right, of turns straight after a right one; NULL: others.",
        mean_name="accuracy_after_right",
    ),
    Metric(
        "right_after_wrong",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.conversation:right_after_wrong"),
        "boolean",
        "The turn is right, of turns straight after a wrong one; NULL: others.",
        mean_name="accuracy_after_wrong",
    ),
    Metric(
        "inherited_error",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.conversation:inherited_error"),
        "boolean",
        "A wrong turn would be right had an earlier one been; NULL: it is right, or the model was shown gold answers.",
    ),
    Metric(
        "error_propagation",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.conversation:error_propagation"),
        "boolean",
        "A turn after any wrong one inherits its error; NULL: none is wrong, or the model was shown gold answers.",
        mean_name="propagation_rate",
    ),
    Metric(
        "first_wrong_turn",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.conversation:first_wrong_turn"),
        "count",
        "Index of the turn, from 0, where it is the first wrong one of its conversation; NULL: every other turn.",
    ),
    Metric(
        "program_match_as_written",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.as_written:program_match_as_written"),
        "boolean",
        "`program_match` with carried values left as they are written; NULL without a parsed plan.",
    ),
    Metric(
        "logic_recall_as_written",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.as_written:logic_recall_as_written"),
        "score",
        "`logic_recall` with carried values left as they are written, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "operand_recall_as_written",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.as_written:operand_recall_as_written"),
        "score",
        "`operand_recall` with carried values left as they are written, 0..1; NULL without a parsed plan.",
    ),
    Metric(
        "resolved_plan_text",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.resolved:resolved_plan_text"),
        "label",
        "The plan with answers to earlier turns written out, in FinQA's form; NULL: it carries none, or no plan.",
    ),
    Metric(
        "resolved_program_text",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.resolved:resolved_program_text"),
        "label",
        "The gold program with answers to earlier turns written out that the plan computes; NULL: there are none.",
    ),
    Metric(
        "guessed_plan_text",
        Later("eval_pipeline_plugins.tracks.finqa.metrics.resolved:guessed_plan_text"),
        "label",
        "The calculation that was found for an answer that shows none, in FinQA's form, on which the metrics of "
        "reasoning are then based; NULL: it shows one, or none was found.",
    ),
    *recovery.METRICS,
)
"""Ordered so that a metric can use those before it."""
