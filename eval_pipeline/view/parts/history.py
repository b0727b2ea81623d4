"""The section with this turn's results for all model versions and dates."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.model import Partition
from eval_pipeline.view.part import Part
from eval_pipeline.view.turn_seen import TurnSeen

_MOST = 200


def _values(seen: TurnSeen) -> Mapping[str, Any]:
    rows = seen.look.rows(
        f"""SELECT model_version, eval_date, sample, correct, answer, error_class, tokens, usd, question, expected
        FROM turn_results WHERE suite = ? AND case_id = ? AND turn_id = ?
        ORDER BY eval_date DESC, model_version, sample LIMIT {_MOST}""",
        [seen.evaluation.partition.suite, seen.result["case_id"], seen.turn_id],
    )
    suite, ours = seen.evaluation.partition.suite, seen.key
    lines = [
        {
            **row,
            "partition": Partition(suite, row["model_version"], row["eval_date"]),
            "is_this": (suite, row["model_version"], row["eval_date"], seen.turn_id, row["sample"]) == ours,
            "asked_otherwise": (row["question"], row["expected"]) != (seen.result["question"], seen.result["expected"]),
        }
        for row in rows
    ]
    return {"lines": lines}


PART = Part("history", "This turn, over model versions and dates", "parts/history.html.j2", _values)
