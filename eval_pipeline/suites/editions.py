"""Editions of a data set and of its gold: a name given by the authors, and a hash of the contents."""

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.ids import canonical_json, json_hash, json_text_hash
from eval_pipeline.core.model import Case
from eval_pipeline.suites.headers import SuiteFile
from eval_pipeline.suites.overrides import EXCLUDED, Override
from eval_pipeline.tracks.base import Track

if TYPE_CHECKING:
    import pyarrow as pa


_IN_MEMORY = 8 << 20
"""Bytes of JSON held in memory; more are kept in a temporary file."""
_AT_ONCE = 10_000
"""Names that are Python objects at once."""


class SortedHash:
    """Computes `json_hash([value, ...])` of values that are sorted by their names first."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._packed: list[pa.Array] = []
        self._ends = array("q", [0])
        self._texts = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - it lives as long as this object

    def add(self, name: str, value: Any) -> None:
        """Adds a value; names must differ."""
        text = canonical_json(value).encode()
        self._names.append(name)
        self._ends.append(self._ends[-1] + len(text))
        self._texts.write(text)
        if len(self._names) == _AT_ONCE:
            self._pack()

    def hash(self, *further: Any) -> str:
        """Returns the hash; with further values, that of `[[value, ...], *further]`. Nothing may be added after it."""
        digest = hashlib.sha256(b"[[" if further else b"[")
        for number, place in enumerate(self._order()):
            start, end = self._ends[place], self._ends[place + 1]
            self._texts.seek(start)
            digest.update((b"," if number else b"") + self._texts.read(end - start))
        for value in further:
            digest.update(b"]," + canonical_json(value).encode())
        digest.update(b"]")
        return digest.hexdigest()[:32]

    def _pack(self) -> None:
        import pyarrow as pa

        self._packed.append(pa.array(self._names, pa.string()))
        self._names = []

    def _order(self) -> list[int]:
        """Returns the places of the values, sorted by name; the order of UTF-8 bytes is that of Python's texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self._pack()
        order: list[int] = pc.sort_indices(pa.concat_arrays(self._packed)).to_numpy().tolist()
        return order


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
