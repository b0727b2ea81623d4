"""The history that a draw is based on: the cases of a suite, and their outcomes in earlier evaluations."""

from collections.abc import Iterator, Sequence

import numpy as np

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Case, Partition
from eval_pipeline.stages.scoring.gold import gold_problems
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import CASES, GENERATIONS, TURN_RESULTS
from eval_pipeline.workspace.asked.draws import RIGHT, UNKNOWN, WRONG, Candidate
from eval_pipeline.workspace.asked.scope import FULL
from eval_pipeline.workspace.inputs import Inputs

MOST = 64
"""Earlier evaluations that are looked at, the newest ones: more cost time and tell little more."""


def candidates_of(
    inputs: Inputs, evaluations: Sequence[Partition], cases: Sequence[Case] | None = None
) -> tuple[Candidate, ...]:
    """Returns the cases that may be drawn, in the suite's order, without cases none of whose turns can be scored.

    Args:
        inputs: the evaluation that is to be drawn.
        evaluations: the earlier evaluations whose outcomes form the history.
        cases: cases of the suite; by default read from the record.
    """
    outcomes = [outcomes_of(inputs.record, partition) for partition in evaluations]
    found = []
    excluded = set[str]()
    if cases is None:
        excluded = {turn for turn in inputs.gold.actions if inputs.gold.is_excluded(turn)} | gold_problems(
            inputs
        ).keys()
    for case in inputs.cases if cases is None else cases:
        turns = tuple(turn.id for turn in case.turns if turn.id not in excluded)
        if turns:
            history = tuple("".join(known.get(turn, UNKNOWN) for known in outcomes) for turn in turns)
            found.append(Candidate(case.id, turns, history))
    return tuple(found)


def earlier_evaluations(inputs: Inputs) -> list[Partition]:
    """Returns the full evaluations of the suite, of all model versions and dates but this one, the newest first."""
    found = [place for place in _full(inputs) if place != inputs.place]
    return sorted(found, key=lambda place: (place.eval_date, place.model_version), reverse=True)[:MOST]


def baseline_of(inputs: Inputs, model_version: str) -> Partition:
    """Returns the newest full evaluation of a model version on the suite's present edition.

    Raises:
        UsageError: there is none.
    """
    own = [place for place in _full(inputs) if place.model_version == model_version and place != inputs.place]
    if not own:
        raise UsageError(
            f"'{model_version}' has no full evaluation of '{inputs.suite}'; "
            f"`eval-pipeline run --suite {inputs.suite} --model-version {model_version}` makes one"
        )
    newest = max(own, key=lambda place: place.eval_date)
    generated, cases = inputs.record.header(GENERATIONS, RecordKey.of(newest)), inputs.header(CASES)
    known = outcomes_of(inputs.record, newest)
    turns = [turn for candidate in candidates_of(inputs, ()) for turn in candidate.turns]
    same = generated and cases and generated.made_from.get(CASES.name) == cases.content_hash
    if not same or any(turn not in known for turn in turns):
        raise UsageError(
            f"the evaluation of '{model_version}' on {newest.eval_date} is of another edition of '{inputs.suite}', or "
            "lacks turns; run it again to compare with it"
        )
    return newest


def matrix(candidates: Sequence[Candidate]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Returns the histories as an array of shape (turns, evaluations): 1 right, 0 wrong, NaN unknown."""
    values = {RIGHT: 1.0, WRONG: 0.0, UNKNOWN: np.nan}
    rows = [[values[sign] for sign in text] for candidate in candidates for text in candidate.history]
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1)


def _full(inputs: Inputs) -> Iterator[Partition]:
    for key in inputs.record.partitions(TURN_RESULTS, RecordKey.of_suite(inputs.suite)):
        assert key.model_version and key.eval_date
        header = inputs.record.header(GENERATIONS, key)
        if header is not None and header.made_from.get("scope", FULL) == FULL:
            yield Partition(inputs.suite, key.model_version, key.eval_date)


def outcomes_of(record: Record, partition: Partition) -> dict[str, str]:
    """Returns the outcome of each scored turn in its first sample."""
    table = record.read(TURN_RESULTS, RecordKey.of(partition), ["turn_id", "sample", "correct"])
    rows = zip(*(table[name].to_pylist() for name in ("turn_id", "sample", "correct")), strict=True)
    return {turn: RIGHT if correct else WRONG for turn, sample, correct in rows if sample == 0 and correct is not None}
