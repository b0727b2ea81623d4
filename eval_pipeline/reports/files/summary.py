"""The summary: one row per conversation."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.reports.evaluation import Evaluation

_EVERY = pc.ScalarAggregateOptions(skip_nulls=False, min_count=0)
_SUMS = ("input_tokens", "output_tokens", "tokens", "usd", "latency_ms", "attempts")


def summarise(evaluation: Evaluation, turns: pa.Table) -> pa.Table:
    """Returns one row per conversation and sample, in the suite's order.

    Metrics are means over the turns that have a value (NULL if none has). Tokens, dollars, latency and attempts are
    sums, which are NULL if the value of any turn is unknown.

    Args:
        evaluation: the evaluation to summarise.
        turns: its turns, as `turns_table` returns them.
    """
    profile = evaluation.profile
    turns = turns.append_column("_turn", pa.array([1] * turns.num_rows, pa.int64()))
    turns = turns.append_column("_correct", turns["correct"].cast(pa.int64()))
    turns = turns.append_column("_first", turns["first_attempt_correct"].cast(pa.int64()))
    wanted: list[tuple[str, str, str, Any]] = [
        ("turns", "_turn", "sum", None),
        ("correct_turns", "_correct", "sum", None),
        ("first_attempt_correct_turns", "_first", "sum", None),
        ("all_right", "correct", "all", _EVERY),
        ("avg_score", "score", "mean", None),
        *[(metric.mean_name, metric.name, "mean", None) for metric in profile.averaged],
        *[(name, name, "sum", _EVERY) for name in _SUMS],
        *[(name, name, "first", None) for name in profile.features],
        *[(name, name, "first", None) for name in ("suite", "model_version", "eval_date")],
    ]
    groups = turns.group_by(["conversation_id", "sample"], use_threads=False)
    found = groups.aggregate([(column, function, options) for _, column, function, options in wanted])
    arrays = [found["conversation_id"], found["sample"]]
    arrays += [found[f"{column}_{function}"] for _, column, function, _ in wanted]
    return pa.table(arrays, names=["conversation_id", "sample", *[name for name, *_ in wanted]])
