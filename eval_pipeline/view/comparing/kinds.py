"""Counts how the wrong answers of an evaluation fail, over some turns."""

from collections.abc import Sequence

from eval_pipeline.store.ddl import quoted
from eval_pipeline.view.comparing.found import Order
from eval_pipeline.view.evaluation import Evaluation
from eval_pipeline.view.filtering.sql import of_evaluation
from eval_pipeline.view.published import Look

_MOST_KINDS = 8


def kinds(look: Look, side: Evaluation, turns: Order) -> Sequence[tuple[str, int]]:
    """Returns the failure modes (or else error classes) of wrong answers to these turns, the most frequent first."""
    return look.remembered(("kinds", side.partition, turns.sql), lambda: _counted(look, side, turns))


def kind_sql(side: Evaluation) -> str:
    """Returns the SQL for how an answer fails; `r` is a row of `turn_results`, `t` of the track's table."""
    return "coalesce(t.failure_mode, r.error_class)" if "failure_mode" in side.columns else "r.error_class"


def _counted(look: Look, side: Evaluation, turns: Order) -> Sequence[tuple[str, int]]:
    joined = f"""LEFT JOIN {quoted(side.track_table)} AS t
        ON {of_evaluation(side, "t")} AND t.turn_id = r.turn_id AND t.sample = r.sample"""
    failed = look.table(
        f"""SELECT r.turn_id, r.sample, {kind_sql(side)} AS kind
        FROM turn_results AS r {joined if "failure_mode" in side.columns else ""}
        WHERE {of_evaluation(side, "r")} AND NOT r.correct AND {kind_sql(side)} IS NOT NULL"""
    )
    counted = turns.among(failed)["kind"].value_counts().to_pylist()
    return sorted(((row["values"], row["counts"]) for row in counted), key=lambda one: (-one[1], one[0]))[:_MOST_KINDS]
