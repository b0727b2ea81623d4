"""The turns on which two model versions differ: question, gold, both answers, and how each fails."""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.queries import KIND, literal
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import ERRORS, TURN_RESULTS

CHANGES = ("broken", "fixed")
"""Only the first of a pair is right; only the second is."""
_COLUMNS = ("turn_id", "sample", "question", "expected", "answer", "error_class")
_MODE = "failure_mode"
_TABLES = (TURN_RESULTS, ERRORS)
_MOST_QUESTION = 100
"""Characters of a question that stands beside a turn's id."""
_SIDES_READ = 2
"""Evaluations whose answers are held at the same time: those of a pair."""


class RecordedTurn(NamedTuple):
    """What the record has about one turn of an evaluation.

    Attributes:
        expected: the gold; None if there is none.
        answer: None if there is none.
        failure: the failure mode, or the error class for tracks without failure modes; None for a right answer.
    """

    question: str | None
    expected: str | None
    answer: str | None
    failure: str | None


NOTHING_SAID = RecordedTurn(None, None, None, None)
"""In the place of what the record does not have any more."""


class Differing(NamedTuple):
    """A turn that only one model version of a pair got right.

    Attributes:
        change: one of `CHANGES`.
        turn: its id, with `~<sample>` from sample 1 on.
        first, second: the answer of each; None if the record no longer has it.
    """

    change: str
    turn: str
    first: RecordedTurn | None
    second: RecordedTurn | None


class RecordedAnswers(Protocol):
    """Looks up what the record has about some turns of an evaluation."""

    def __call__(self, partition: Partition, turns: Collection[str]) -> Mapping[str, RecordedTurn]:
        """Returns what the record has, by turn."""


def no_answers(partition: Partition, turns: Collection[str]) -> Mapping[str, RecordedTurn]:
    """Returns no answers, for reports that must not read the record."""
    return {}


def recorded_answers(record: Record) -> RecordedAnswers:
    """Returns a look-up of answers in the record of the home."""

    @lru_cache(maxsize=_SIDES_READ)
    def rows(partition: Partition) -> pa.Table | None:
        key = RecordKey.of(partition)
        if any(record.header(table, key) is None for table in _TABLES):
            return None
        keys = ["turn_id", "sample"]
        errors = record.read(ERRORS, key, [*keys, _MODE])
        return record.read(TURN_RESULTS, key, _COLUMNS).join(errors, keys, join_type="left outer")

    def answers(partition: Partition, turns: Collection[str]) -> Mapping[str, RecordedTurn]:
        found = rows(partition) if turns else None
        if found is None:
            return {}
        wanted = {*turns, *(turn.rpartition("~")[0] for turn in turns)}
        chosen = found.filter(pc.is_in(found["turn_id"], pa.array(wanted, pa.string())))
        return {turn_name(row["turn_id"], row["sample"]): _said(row) for row in chosen.to_pylist()}

    return answers


def _said(row: Mapping[str, Any]) -> RecordedTurn:
    return RecordedTurn(row["question"], row["expected"], row["answer"], row[_MODE] or row["error_class"])


def turn_name(turn_id: str, sample: int) -> str:
    """Returns a turn's id as comparisons list it, with `~<sample>` from sample 1 on."""
    return f"{turn_id}~{sample}" if sample else turn_id


def question_text(found: Differing) -> str:
    """Returns the question of a turn in one line, shortened; empty if the record does not have it any more."""
    said = found.second or found.first
    flat = " ".join("".join(c if c.isprintable() else " " for c in said.question or "").split()) if said else ""
    return flat if len(flat) <= _MOST_QUESTION else f"{flat[: _MOST_QUESTION - 1]}…"


def differing_turns(
    suite: str, pair: Mapping[str, Any], answers: RecordedAnswers, most: int | None = None
) -> list[Differing]:
    """Returns the turns that only one of a pair got right, beginning with those that only the first got right.

    Args:
        suite: the suite of both.
        pair: a row of `model_comparisons`.
        answers: looks up the answers.
        most: maximum number of turns for each kind of change; all by default.
    """
    turns = {change: json.loads(pair[f"{change}_turns"])[:most] for change in CHANGES}
    wanted = {turn for found in turns.values() for turn in found}
    first, second = (answers(side, wanted) for side in sides_of_pair(suite, pair))
    return [Differing(change, turn, first.get(turn), second.get(turn)) for change in CHANGES for turn in turns[change]]


def sides_of_pair(suite: str, pair: Mapping[str, Any]) -> Sequence[Partition]:
    """Returns the two evaluations that a row of `model_comparisons`, or of `compare`, is about."""

    def place(side: str) -> Partition:
        evaluation = pair[f"evaluation_{side}"] if pair.get(f"earlier_{side}") else ""
        return Partition(suite, pair[f"model_{side}"], pair[f"eval_date_{side}"], evaluation)

    return [place(side) for side in ("a", "b")]


def answers_hashes(record: Record, partitions: Sequence[Partition]) -> dict[str, str]:
    """Returns the content hashes of the tables that answers are looked up in, by table name and evaluation."""
    return {
        f"{table.name} of {partition.model_version}, {partition.eval_date}": header.content_hash
        for partition in partitions
        for table in _TABLES
        if (header := record.header(table, RecordKey.of(partition))) is not None
    }


def differing_query(suite: str) -> str:
    """Returns the SQL for the turns on which the two of each pair differ, with both answers."""
    parts = " UNION ALL ".join(
        f"SELECT model_a, eval_date_a, model_b, eval_date_b, '{change}' AS change, "
        f"unnest({change}_turns::VARCHAR[]) AS turn FROM model_comparisons WHERE suite = {literal(suite)}"
        for change in CHANGES
    )
    of_suite = (
        "(SELECT *, turn_id || if(sample = 0, '', '~' || sample) AS turn, "
        f"{KIND} AS failure FROM answers AS e WHERE suite = {literal(suite)})"
    )
    joins = " ".join(
        f"LEFT JOIN {of_suite} AS {side} ON {side}.model_version = d.model_{side} "
        f"AND {side}.eval_date = d.eval_date_{side} AND {side}.turn = d.turn"
        for side in ("a", "b")
    )
    return (
        f"SELECT d.model_b, d.model_a, d.change, d.turn, coalesce(a.question, b.question) AS question, "
        f"coalesce(a.expected, b.expected) AS expected, b.answer AS answer_b, b.failure AS failure_b, "
        f"a.answer AS answer_a, a.failure AS failure_a FROM ({parts}) AS d {joins} ORDER BY ALL"
    )
