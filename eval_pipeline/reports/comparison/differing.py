"""The turns on which two model versions differ: question, gold, both answers, and how each fails."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.queries import KIND, TURN, literal, recorded_rows
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import TURN_RESULTS

CHANGES = ("broken", "fixed")
"""Only the first of a pair is right; only the second is."""
_MOST_QUESTION = 100
"""Characters of a question that stands beside a turn's id."""


def differing_query(suite: str, most: int | None = None) -> str:
    """Returns the SQL for the turns on which the two of each pair differ, with both answers.

    Those come first that only the first got right; of turns that the store has no more, only the ids are known.

    Args:
        suite: the suite.
        most: maximum number of turns for each pair and kind of change; all by default.
    """
    parts = " UNION ALL ".join(
        f"SELECT model_a, eval_date_a, model_b, eval_date_b, '{change}' AS change, "
        f"unnest({change}_turns::VARCHAR[]) AS turn, generate_subscripts({change}_turns::VARCHAR[], 1) AS place "
        f"FROM model_comparisons WHERE suite = {literal(suite)}"
        for change in CHANGES
    )
    of_suite = (
        "(SELECT r.model_version, r.eval_date, r.turn_id || if(r.sample = 0, '', '~' || r.sample) AS turn, "
        f"r.question, r.expected, r.answer, {KIND} AS failure FROM turn_results AS r "
        f"LEFT JOIN turn_errors AS e USING ({TURN}) WHERE r.suite = {literal(suite)})"
    )
    joins = " ".join(
        f"LEFT JOIN {of_suite} AS {side} ON {side}.model_version = d.model_{side} "
        f"AND {side}.eval_date = d.eval_date_{side} AND {side}.turn = d.turn"
        for side in ("a", "b")
    )
    return (
        f"SELECT d.model_b, d.model_a, d.change, d.turn, coalesce(a.question, b.question) AS question, "
        f"coalesce(a.expected, b.expected) AS expected, b.answer AS answer_b, b.failure AS failure_b, "
        f"a.answer AS answer_a, a.failure AS failure_a FROM ({parts}) AS d {joins} "
        f"{'' if most is None else f'WHERE d.place <= {most} '}ORDER BY d.model_a, d.model_b, d.change, d.place"
    )


def examples(record: Record, suite: str, pair: Mapping[str, Any], most: int) -> dict[str, list[tuple[str, str]]]:
    """Returns some turns that only one of a pair got right, by change, each with its question in one line.

    The question is cut, and empty if the record does not have it any more.

    Args:
        record: the record of the home.
        suite: the suite of both.
        pair: a row of `model_comparisons`, or of `compare`.
        most: maximum number of turns for each kind of change.
    """
    turns = changed_turns(pair, most)
    ids = turn_ids(turns)
    keys = map(RecordKey.of, sides_of_pair(suite, pair) if ids else ())
    rows = recorded_rows(record, TURN_RESULTS, keys, ["turn_id", "sample", "question"], ids).to_pylist()
    asked = {turn_name(row["turn_id"], row["sample"]): row["question"] for row in rows}
    return {change: [(turn, _line(asked.get(turn))) for turn in found] for change, found in turns.items()}


def changed_turns(pair: Mapping[str, Any], most: int | None = None) -> dict[str, list[str]]:
    """Returns the turns that only one of a pair got right, by change, at most so many for each."""
    return {change: json.loads(pair[f"{change}_turns"])[:most] for change in CHANGES}


def turn_ids(changed: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Returns the ids under which the record has turns that comparisons list; there may be more, of no turn."""
    names = [turn for found in changed.values() for turn in found]
    return frozenset([*names, *(turn.rpartition("~")[0] for turn in names if "~" in turn)])


def turn_name(turn_id: str, sample: int) -> str:
    """Returns a turn's id as comparisons list it, with `~<sample>` from sample 1 on."""
    return f"{turn_id}~{sample}" if sample else turn_id


def _line(question: str | None) -> str:
    flat = " ".join("".join(c if c.isprintable() else " " for c in question or "").split())
    return flat if len(flat) <= _MOST_QUESTION else f"{flat[: _MOST_QUESTION - 1]}…"


def sides_of_pair(suite: str, pair: Mapping[str, Any]) -> Sequence[Partition]:
    """Returns the two evaluations that a row of `model_comparisons`, or of `compare`, is about."""

    def place(side: str) -> Partition:
        evaluation = pair[f"evaluation_{side}"] if pair.get(f"earlier_{side}") else ""
        return Partition(suite, pair[f"model_{side}"], pair[f"eval_date_{side}"], evaluation)

    return [place(side) for side in ("a", "b")]
