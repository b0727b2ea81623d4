"""Editions of a data set and of its gold: a name given by the authors, and a hash of the contents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.ids import json_hash, json_text_hash
from eval_pipeline.core.model import Case
from eval_pipeline.suites.headers import SuiteFile
from eval_pipeline.suites.overrides import EXCLUDED, Override, ScoredGold
from eval_pipeline.tracks.base import Track

SharedRows = Mapping[str, Mapping[str, Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Editions:
    """The editions of a suite; names are for people, hashes for comparing.

    Attributes:
        data_edition, data_hash: edition of what models are shown.
        published_edition, published_hash: edition of the gold without overrides.
        gold_edition, gold_hash: edition of the gold used for scoring.
        overridden_turns: number of turns in which the two golds differ.
        overrides_hash: hash of the overrides without their authors; None without overrides.
    """

    data_edition: str
    data_hash: str
    published_edition: str
    published_hash: str
    gold_edition: str
    gold_hash: str
    overridden_turns: int
    overrides_hash: str | None


def editions_of(
    header: SuiteFile,
    track: Track,
    cases: Sequence[Case],
    overrides: Sequence[Override],
    scored: ScoredGold,
    shown: SharedRows | None = None,
) -> Editions:
    """Returns the editions of a suite with these cases and overrides; `shown` as for `data_hash`."""
    gold = gold_hash(track, cases)
    name = header.gold_version or header.version
    decided = [
        [found.turn_id, found.action, None if found.action == EXCLUDED else json_hash(found.gold)]
        for found in sorted(overrides, key=lambda found: found.turn_id)
    ]
    count = len(overrides)
    return Editions(
        data_edition=header.version,
        data_hash=data_hash(track, cases, shown),
        published_edition=name,
        published_hash=gold,
        gold_edition=f"{name} with {count} override{'s' * (count != 1)}" if count else name,
        gold_hash=json_hash([gold, decided]) if count else gold,
        overridden_turns=count,
        overrides_hash=json_hash(decided) if count else None,
    )


def gold_hash(track: Track, cases: Sequence[Case]) -> str:
    """Returns a hash of the gold of every turn, in the order of turn ids."""
    found = {turn.id: track.gold_json(turn) for case in cases for turn in case.turns}
    return json_hash([[name, found[name]] for name in sorted(found)])


def data_hash(track: Track, cases: Sequence[Case], shown: SharedRows | None = None) -> str:
    """Returns a hash of the contexts and questions of all cases, in the order of case ids, without the gold.

    Args:
        track: the track of the cases.
        cases: all cases of a suite.
        shown: rows that the cases share and that prompts show beyond the contexts, by table and column; None for none.
    """
    asked = {
        case.id: [json_text_hash(track.context_json(case)), [turn.question for turn in case.turns]] for case in cases
    }
    found = [[name, *asked[name]] for name in sorted(asked)]
    if shown is None:
        return json_hash(found)
    tables = [[name, column, list(shown[name][column])] for name in sorted(shown) for column in sorted(shown[name])]
    return json_hash([found, json_text_hash(tables)])
