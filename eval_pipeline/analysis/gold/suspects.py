"""The table `gold_suspects`: turns with doubtful gold answers, for people to review (docs/gold.md)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from eval_pipeline.analysis.comparisons.compared import latest_of_each, of_what_is_there
from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation
from eval_pipeline.analysis.gold.answers import Answers, answers_of, knows_gold, turns_in_order, voices
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.stages.scoring.keeping import doubts_kept
from eval_pipeline.statistics.raters.suspects import GOLD, LEAST, NO_ANSWER, AgreedAnswer, Codes, agreed_against_gold
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GOLD_SUSPECTS
from eval_pipeline.tracks.capabilities import Audits, Weight
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.progress import busy
from eval_pipeline.workspace.tabled.track_tables import turns_table

CONTRADICTION, LINT, AGREEMENT, ORACLE, PRINTING = "contradiction", "lint", "agreement", "oracle", "printing"
_PRINTING_SCORE = 0.05
_CONFIRMED = 0.3
"""What is left of a contradiction where models agree with the gold: then rather its other statement is wrong."""
_SHOWN = 50
_NO_WEIGHT = Weight(1.0, "")
_ORACLE_SCORE = 0.2
"""Set by judgement rather than measured: strict metrics also reject mere differences in form."""
_NO_VOTES: dict[str, Json] = {"agreed_answer": None, "model_versions": 0, "for_gold": None, "answered": None}

Row = dict[str, Any]


def audit_gold(inputs: Inputs, outputs: Outputs) -> None:
    """Makes the table `gold_suspects` of a suite."""
    with busy(inputs.progress, inputs.label("doubts about the gold")):
        outputs.rows(GOLD_SUSPECTS).extend(of_what_is_there(inputs, suspect_rows))


def suspect_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns two numbers: how many turns are doubted, and how many of these are still undecided."""
    rows = inputs.read(GOLD_SUSPECTS, ["turn_id", "override"]).to_pylist()
    undecided = {row["turn_id"] for row in rows if row["override"] is None}
    return {"suspects": len({row["turn_id"] for row in rows}), "undecided": len(undecided)}


def suspect_rows(inputs: Inputs) -> list[Row]:
    """Returns one row per turn and reason, most doubtful turns first.

    Turns whose doubts are only a matter of printing share one row.
    """
    gold = inputs.gold
    votes = _votes(inputs)
    rows = [*_contradicting(inputs, votes), *_outvoted(inputs, votes), *_failing_oracle(inputs)]
    for row in rows:
        row["override"] = gold.actions.get(row["turn_id"])
    rows = _with_printing_grouped(rows)
    by_turn: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        by_turn[row["turn_id"]].append(row["score"])
    for row in rows:
        row["turn_score"] = 1 - prod(1 - score for score in by_turn[row["turn_id"]])
    return sorted(rows, key=lambda row: (-row["turn_score"], row["turn_id"], -row["score"]))


def _with_printing_grouped(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows with those that are a matter of printing as one, at the first turn that is not decided."""
    others = [row for row in rows if not row.pop("of_printing", False)]
    kept = {id(row) for row in others}
    grouped = sorted([row for row in rows if id(row) not in kept], key=lambda row: row["override"] is not None)
    if not grouped:
        return others
    turns = list(dict.fromkeys(row["turn_id"] for row in grouped))
    more = f" and {len(turns) - _SHOWN:,} more" if len(turns) > _SHOWN else ""
    says = f"{len(turns):,} turn{'s' * (len(turns) != 1)} differ only in percent or fraction, a matter of printing"
    evidence = f"{says}: {', '.join(turns[:_SHOWN])}{more}"
    return [*others, grouped[0] | {"reason": PRINTING, "evidence": evidence, "score": _PRINTING_SCORE}]


def _cases(inputs: Inputs) -> Iterator[Case]:
    gold = inputs.gold
    return map(gold.case, inputs.each_case())


@dataclass(frozen=True)
class _Votes:
    """What several model versions answered to the turns of a suite."""

    chosen: Sequence[CompleteEvaluation]
    cases: Sequence[Case]
    turns: Sequence[Turn]
    conversations: Codes
    answers: Answers

    def confirmed(self) -> set[str]:
        """Returns the turns on which at least half of the model versions that answered agree with the gold."""
        codes = self.answers.codes
        answered = (codes != NO_ANSWER).sum(axis=0)
        agree = (answered > 0) & (2 * (codes == GOLD).sum(axis=0) >= answered)
        return {turn.id for turn, agrees in zip(self.turns, agree.tolist(), strict=True) if agrees}


def _votes(inputs: Inputs) -> _Votes | None:
    """Returns the answers of the model versions whose agreement means something; None if these are too few."""
    chosen = voices(inputs, latest_of_each(inputs))
    if len(chosen) < LEAST:
        return None
    cases = list(_cases(inputs))
    turns, conversations = turns_in_order(cases)
    return _Votes(chosen, cases, turns, conversations, answers_of(inputs, chosen, turns))


def _contradicting(inputs: Inputs, votes: _Votes | None) -> Iterator[Row]:
    confirmed = votes.confirmed() if votes is not None else set()
    for case in _cases(inputs):
        turns = {turn.id: turn for turn in case.turns}
        for doubt in doubts_kept(inputs, case):
            score = doubt.score * (_CONFIRMED if doubt.turn_id in confirmed else 1.0)
            said = {"reason": LINT if doubt.linted else CONTRADICTION, "evidence": doubt.evidence, "score": score}
            said["of_printing"] = doubt.of_printing
            yield _place(inputs, case, turns[doubt.turn_id]) | said | _NO_VOTES | {"simulated": None}


def _outvoted(inputs: Inputs, votes: _Votes | None) -> Iterator[Row]:
    """Yields the turns on which model versions agree with each other against the gold."""
    if votes is None:
        return
    found = {
        votes.turns[agreed.turn].id: agreed for agreed in agreed_against_gold(votes.answers.codes, votes.conversations)
    }
    for case in votes.cases:
        agreed_on = {turn.id: found[turn.id] for turn in case.turns if turn.id in found}
        if not agreed_on:
            continue
        results = {name: votes.answers.results[agreed.turn, agreed.answer] for name, agreed in agreed_on.items()}
        weights = inputs.track.weights(case, results) if isinstance(inputs.track, Audits) else {}
        for turn in case.turns:
            if turn.id in agreed_on:
                yield _outvoted_row(inputs, votes, case, turn, agreed_on[turn.id], weights.get(turn.id, _NO_WEIGHT))


def _outvoted_row(inputs: Inputs, votes: _Votes, case: Case, turn: Turn, agreed: AgreedAnswer, weight: Weight) -> Row:
    place = _place(inputs, case, turn)
    text = votes.answers.texts[agreed.turn, agreed.answer]
    sentence = _sentence(agreed, votes.answers, votes.chosen, text, place["expected"])
    odds = agreed.score / (1 - agreed.score) * weight.factor
    said = {
        "reason": AGREEMENT,
        "score": odds / (1 + odds),
        "agreed_answer": text,
        "simulated": votes.chosen[0].simulated,
        "evidence": f"{sentence}; {weight.words}" if weight.words else sentence,
        "of_printing": weight.of_printing,
    }
    counts = {"model_versions": agreed.models, "for_gold": agreed.for_gold, "answered": agreed.answered}
    return place | counts | said


def _sentence(
    agreed: AgreedAnswer, answers: Answers, chosen: Sequence[CompleteEvaluation], text: str, expected: str
) -> str:
    names = [
        found.partition.model_version
        for found, code in zip(chosen, answers.codes[:, agreed.turn].tolist(), strict=True)
        if code == agreed.answer
    ]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return (
        f"{agreed.models} of {agreed.answered} model versions that answered say {_short(text)} ({shown}), "
        f"{agreed.for_gold} agree with the gold's {_short(expected)}"
    )


def _failing_oracle(inputs: Inputs) -> Iterator[Row]:
    """Yields the turns whose gold answer fails the primary or a strict metric, if the gold was evaluated (oracle)."""
    track = inputs.track
    strict = [track.primary_metric, *(track.strict_metrics if isinstance(track, Audits) else ())]
    oracles = [found for found in latest_of_each(inputs) if knows_gold(inputs, found)]
    places = {turn.id: (case, turn) for case in _cases(inputs) for turn in case.turns} if oracles else {}
    failed: defaultdict[str, set[str]] = defaultdict(set)  # in any sample of any evaluation
    for evaluated in oracles:
        key = RecordKey.of(evaluated.partition)
        wide = inputs.record.read(turns_table(track), key, ["turn_id", "question", "expected", *dict.fromkeys(strict)])
        for row in wide.to_pylist():
            case, turn = places.get(row["turn_id"], (None, None))
            if turn is None or (row["question"], row["expected"]) != (turn.question, track.expected_text(turn)):
                continue
            if names := {name for name in strict if row[name] is not None and row[name] < 1}:
                failed[turn.id] |= names
    for name, found in failed.items():
        metrics = [metric for metric in dict.fromkeys(strict) if metric in found]
        case, turn = places[name]
        evidence = f"the gold's own answer fails {', '.join(metrics)}"
        score = 1.0 if track.primary_metric in metrics else _ORACLE_SCORE
        said = {"reason": ORACLE, "evidence": evidence, "score": score, "simulated": None}
        yield _place(inputs, case, turn) | said | _NO_VOTES


def _place(inputs: Inputs, case: Case, turn: Turn) -> Row:
    place = {"turn_id": turn.id, "case_id": case.id, "turn_index": turn.index, "question": turn.question}
    return place | {"expected": inputs.track.expected_text(turn)}


def _short(text: str, most: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
