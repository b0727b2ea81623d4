"""Encodes the answers of model versions, so that agreement with each other and with the gold can be compared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.providers.registry import ALL_PROVIDERS
from eval_pipeline.statistics.raters.suspects import GOLD, LEAST, NO_ANSWER, Codes
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS, MODEL_VERSIONS, RECOVERY_ATTEMPTS, TURN_RESULTS
from eval_pipeline.tracks.abilities import answer_keys_of
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.inputs import Inputs

_Answer = tuple[str, int]
"""Turn id and sample."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of several model versions to the turns of a suite.

    Attributes:
        codes: shape (model versions, turns): `GOLD`, `NO_ANSWER`, or a code for each distinct answer to the turn.
        texts: (turn, code) → the answer as text.
        results: (turn, code) → the answer as the record has it.
    """

    codes: Codes
    texts: Mapping[tuple[int, int], str]
    results: Mapping[tuple[int, int], Json]


def voices(inputs: Inputs, latest: Sequence[CompleteEvaluation]) -> list[CompleteEvaluation]:
    """Selects the evaluations whose agreement is meaningful: those of models if there are several, else of stand-ins.

    Stand-ins whose answers are the gold itself are left out.
    """
    found = [evaluated for evaluated in latest if not knows_gold(inputs, evaluated)]
    models = [evaluated for evaluated in found if not evaluated.simulated]
    return models if len(models) >= LEAST else [evaluated for evaluated in found if evaluated.simulated]


def knows_gold(inputs: Inputs, evaluated: CompleteEvaluation) -> bool:
    """Whether the answers of an evaluation are the gold itself."""
    key = RecordKey.of_model_version(evaluated.partition.model_version)
    provider = str(inputs.record.read(MODEL_VERSIONS, key, ["provider"])["provider"][0].as_py())
    return provider in ALL_PROVIDERS.names() and ALL_PROVIDERS.get(provider).knows_gold


def answers_of(inputs: Inputs, chosen: Sequence[CompleteEvaluation], turns: Sequence[Turn]) -> Answers:
    """Returns the answers of the chosen evaluations to these turns.

    Of several samples, the most frequent answer counts. Answers scored with another question or gold than the recorded
    one are left out.
    """
    track = inputs.track
    expected = {turn.id: (turn.question, track.expected_text(turn)) for turn in turns}
    scored = [_scored(inputs, evaluated, expected) for evaluated in chosen]
    wrong = [{turn for (turn, _), right in own.items() if not right} for own in scored]
    shared = [turn.id for turn in turns if sum(turn.id in own for own in wrong) >= LEAST]
    results = [_results(inputs, evaluated, shared) for evaluated in chosen]
    codes = np.full((len(chosen), len(turns)), NO_ANSWER, dtype=np.int64)
    texts: dict[tuple[int, int], str] = {}
    told_of: dict[tuple[int, int], Json] = {}
    looked_at = set(shared)
    samples = 1 + max((sample for own in scored for _, sample in own), default=-1)
    for place, turn in enumerate(turns):
        if turn.id in looked_at:
            said = [_said(own, told, turn.id, samples) for own, told in zip(scored, results, strict=True)]
            codes[:, place], found = _coded(track, turn, said)
            texts |= {(place, code): track.answer_text(result) for code, result in found.items()}
            told_of |= {(place, code): result for code, result in found.items()}
        else:
            codes[:, place] = [_alone(own, turn.id, number, samples) for number, own in enumerate(scored)]
    return Answers(codes, texts, told_of)


_Scored = Mapping[_Answer, bool]
_Said = list[Json | None]
"""The answers of one model version to a turn: None for a right one, else the result."""


def _scored(
    inputs: Inputs, evaluated: CompleteEvaluation, expected: Mapping[str, tuple[str, str]]
) -> dict[_Answer, bool]:
    """Returns for each scored turn and sample that ran whether it is right."""
    columns = ["turn_id", "sample", "correct", "outcome", "question", "expected"]
    table = inputs.record.read(TURN_RESULTS, RecordKey.of(evaluated.partition), columns)
    table = table.filter(pc.and_(pc.equal(table["outcome"], "ran"), pc.is_valid(table["correct"])))
    names = ("turn_id", "sample", "correct", "question", "expected")
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return {(turn, sample): bool(ok) for turn, sample, ok, *asked in rows if expected.get(turn) == tuple(asked)}


def _results(inputs: Inputs, evaluated: CompleteEvaluation, turns: Iterable[str]) -> dict[_Answer, Json]:
    """Returns the results of the last attempts at some turns."""
    wanted, found = pa.array(turns, pa.string()), dict[_Answer, tuple[int, str]]()
    for table in (GENERATIONS, RECOVERY_ATTEMPTS):
        columns = ["turn_id", "sample", "number", "result"]
        rows = inputs.record.read(table, RecordKey.of(evaluated.partition), columns)
        for row in rows.filter(pc.is_in(rows["turn_id"], wanted)).to_pylist():
            place = (row["turn_id"], row["sample"])
            if row["result"] is not None and row["number"] >= found.get(place, (-1, ""))[0]:
                found[place] = (row["number"], row["result"])
    return {place: parse_json(text) for place, (_, text) in found.items()}


def _said(scored: _Scored, results: Mapping[_Answer, Json], turn: str, samples: int) -> _Said:
    said: _Said = []
    for sample in range(samples):
        place = (turn, sample)
        if place in scored and (scored[place] or place in results):
            said.append(None if scored[place] else results[place])
    return said


def _coded(track: Track, turn: Turn, said: Sequence[_Said]) -> tuple[list[int], dict[int, Json]]:
    """Returns a code for each model version's answer to a turn, and each wrong answer by its code."""
    wrong = [(number, told) for number, own in enumerate(said) for told in own if told is not None]
    keys = answer_keys_of(track, turn, [told for _, told in wrong])
    codes: dict[str, int] = {}
    results: dict[int, Json] = {}
    own: list[list[int]] = [[GOLD] * sum(told is None for told in one) for one in said]
    for (number, told), key in zip(wrong, keys, strict=True):
        code = codes.setdefault(key, len(codes) + 1)
        results.setdefault(code, told)
        own[number].append(code)
    return [_most(one) for one in own], results


def _most(codes: Sequence[int]) -> int:
    """Returns the most frequent code; for ties the lowest, so that the gold wins."""
    return min(codes, key=lambda code: (-codes.count(code), code)) if codes else NO_ANSWER


def _alone(scored: _Scored, turn: str, number: int, samples: int) -> int:
    """Returns the codes for a turn on which at most one model version is wrong, so that no wrong answer is shared."""
    ran = (scored.get((turn, sample)) for sample in range(samples))
    return _most([GOLD if right else number + 1 for right in ran if right is not None])


def turns_in_order(cases: Iterable[Case]) -> tuple[list[Turn], Any]:
    """Returns the turns of cases, and a code for each one's conversation."""
    turns, conversations = list[Turn](), list[int]()
    for number, case in enumerate(cases):
        turns += case.turns
        conversations += [number] * len(case.turns)
    return turns, np.array(conversations, dtype=np.int64)
