"""Editions of a data set and of its gold: a name given by the authors, and a hash of the contents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.hashing.sorted_hash import SortedHash
from eval_pipeline.core.ids import json_hash, json_text_hash
from eval_pipeline.core.model import Case
from eval_pipeline.suites.headers import SuiteFile
from eval_pipeline.suites.overrides import EXCLUDED, Override
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


class Hashes:
    """Hashes what models are shown of some cases, and the gold of every turn, without holding the cases."""

    def __init__(self, track: Track) -> None:
        self._track = track
        self._data, self._gold = SortedHash(), SortedHash()

    def add(self, case: Case) -> None:
        """Adds a case."""
        asked = [json_text_hash(self._track.data_json(case)), [turn.question for turn in case.turns]]
        self._data.add(case.id, [case.id, *asked])
        for turn in case.turns:
            self._gold.add(turn.id, [turn.id, self._track.gold_json(turn)])

    def gold(self) -> str:
        """Returns a hash of the gold of every turn, in the order of turn ids."""
        return self._gold.hash()

    def data(self, shown: SharedRows | None = None) -> str:
        """Returns a hash of the contexts and questions of all cases, in the order of case ids, without the gold.

        `shown` are rows that the cases share and that prompts show beyond the contexts, by table and column; None for
        none.
        """
        if shown is None:
            return self._data.hash()
        tables = [[name, column, list(shown[name][column])] for name in sorted(shown) for column in sorted(shown[name])]
        return self._data.hash(json_text_hash(tables))


def editions_of(
    header: SuiteFile, hashes: Hashes, overrides: Sequence[Override], shown: SharedRows | None = None
) -> Editions:
    """Returns the editions of a suite whose cases were hashed, with overrides; `shown` as for `Hashes.data`."""
    gold = hashes.gold()
    name = header.gold_version or header.version
    decided = [
        [found.turn_id, found.action, None if found.action == EXCLUDED else json_hash(found.gold)]
        for found in sorted(overrides, key=lambda found: found.turn_id)
    ]
    count = len(overrides)
    return Editions(
        data_edition=header.version,
        data_hash=hashes.data(shown),
        published_edition=name,
        published_hash=gold,
        gold_edition=f"{name} with {count} override{'s' * (count != 1)}" if count else name,
        gold_hash=json_hash([gold, decided]) if count else gold,
        overridden_turns=count,
        overrides_hash=json_hash(decided) if count else None,
    )
