"""The evaluations of a suite that can be held against each other, and their turns aligned."""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from eval_pipeline.analysis.aggregates.base import Codes, Floats, floats
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.core.sealed import read_sealed, write_sealed
from eval_pipeline.fingerprints import UNKNOWN_CODE
from eval_pipeline.store.record import Header, Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import (
    COST_PER_CORRECT_ANSWER,
    EVIDENCE,
    GENERATIONS,
    JUDGEMENTS,
    MODEL_VERSIONS,
    STATISTICS,
    TURN_RESULTS,
)
from eval_pipeline.workspace.scope import FULL
from eval_pipeline.workspace.workspace import Workspace

_MADE_WITH: Mapping[str, tuple[tuple[Table, tuple[str, ...]], ...]] = {
    "suite": ((GENERATIONS, ("cases",)),),
    "prompt": ((GENERATIONS, ("prompt",)),),
    "harness": ((GENERATIONS, ("code", "libraries")),),
    "scorer": ((EVIDENCE, ("code", "libraries")), (TURN_RESULTS, ("code", "libraries"))),
    "gold": ((TURN_RESULTS, ("overrides",)),),
    "judge": ((JUDGEMENTS, ("judge", "judge_prompt", "pairs", "code")),),
}
"""What an evaluation was made with, and where the footers of its record files say so."""
GOLD = "gold"
_KEY = ("turn_id", "sample", "question", "expected")
Key = TypeVar("Key", bound=Hashable)
_VALUES = ("correct", "tokens", "usd", "latency_ms")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluation that was scored to its end.

    Attributes:
        scope: `full`, or which part of the suite it covers.
        content_hash: of its scored turns.
        figures: one hash of the aggregates that comparisons show.
        made_with: by `suite`, `prompt`, `harness`, `scorer`, `gold` and `judge`; equal texts, the same.
    """

    partition: Partition
    simulated: bool
    scope: str
    content_hash: str
    figures: str
    made_with: Mapping[str, str]

    def changes(self, other: "Evaluated") -> list[str]:
        """What the two were not made with alike; of code that nobody knows that cannot be told, so it differs.

        Of the gold only its overrides: a suite that has grown has the same gold for the turns that it had.
        """
        made = ((name, value, other.made_with[name]) for name, value in self.made_with.items())
        return [name for name, mine, theirs in made if mine != theirs or UNKNOWN_CODE in mine]

    def fingerprint(self) -> list[object]:
        """Everything that a comparison takes from it."""
        return [str(self.partition), self.simulated, self.scope, self.content_hash, self.figures, dict(self.made_with)]


def evaluations_of(workspace: Workspace, suite: str) -> dict[str, list[Evaluated]]:
    """Every evaluation of a suite by model version, both in order; half made ones are left out.

    What was found of files that have not changed since is kept below `checked/`: after years there are thousands.
    """
    kept = _Kept.of(workspace.home.checked / f"{suite}.evaluations")
    found: dict[str, list[Evaluated]] = {}
    simulated: dict[str, bool] = {}
    for key in workspace.record.partitions(TURN_RESULTS):
        if key.suite != suite:
            continue
        assert key.model_version and key.eval_date
        name = key.model_version
        if name not in simulated:
            rows = workspace.record.read(MODEL_VERSIONS, RecordKey.of_model_version(name), ["simulated"])
            simulated[name] = rows["simulated"][0].as_py()
        partition = Partition(suite, name, key.eval_date)
        states = workspace.record.states(_READ, key)
        told = kept.get(f"{name} {key.eval_date}", states, lambda key=key: _told(workspace.record, key))  # type: ignore[misc]
        if told is not None:
            found.setdefault(name, []).append(Evaluated(partition, simulated[name], *told))
    kept.save()
    return found


_Told = tuple[str, str, str, Mapping[str, str]]
"""Of an evaluation its scope, the hashes of turns and figures, and what it was made with."""
_READ = (GENERATIONS, EVIDENCE, JUDGEMENTS, TURN_RESULTS, STATISTICS, COST_PER_CORRECT_ANSWER)


def _told(record: Record, key: RecordKey) -> _Told | None:
    """What the footers of its files say; None where it is half made."""
    headers = {table.name: record.header(table, key) for table in _READ}
    generated, scored, ended, cost = (
        headers[table.name] for table in (GENERATIONS, TURN_RESULTS, STATISTICS, COST_PER_CORRECT_ANSWER)
    )
    # The statistics are made last, and only of what has passed the blocking checks.
    if not (generated and scored and ended) or ended.made_from.get(TURN_RESULTS.name) != scored.content_hash:
        return None
    figures = json_hash([ended.content_hash, cost.content_hash if cost else ""])
    return generated.made_from.get("scope", FULL), scored.content_hash, figures, _made_with(headers)


@dataclass(slots=True)
class _Kept:
    """What was found before of files, by the states of these files (size, time of change, inode)."""

    path: Path
    before: Mapping[str, list[Any]]
    now: dict[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> "_Kept":
        text = read_sealed(path)
        found = json.loads(text) if text else {}
        return cls(path, found["found"] if found.get("made_with") == _RULES else {})

    def get(self, name: str, states: list[Any], find: Callable[[], _Told | None]) -> _Told | None:
        """What is known of files in these states, else what is found now."""
        known = self.before.get(name)
        self.now[name] = known if known is not None and known[0] == states else [states, find()]
        return self.now[name][1]  # type: ignore[no-any-return]

    def save(self) -> None:
        """Keeps what was found; where that fails, it only costs time later."""
        if (
            any(self.before.get(name) is not found for name, found in self.now.items())
            or self.before.keys() > self.now.keys()
        ):
            with suppress(OSError):
                write_sealed(self.path, json.dumps({"made_with": _RULES, "found": self.now}))


_RULES = [[name, [[table.name, *keys] for table, keys in places]] for name, places in _MADE_WITH.items()]
"""What is kept by other rules is found anew."""


def latest(evaluations: Sequence[Evaluated]) -> Evaluated:
    """The newest one of the full suite, else the newest one, as `latest_partitions` chooses."""
    return max(evaluations, key=lambda found: (found.scope == FULL, found.partition.eval_date))


def _made_with(headers: Mapping[str, Header | None]) -> dict[str, str]:
    return {
        what: "/".join(_said(headers[table.name], name) for table, names in places for name in names)
        for what, places in _MADE_WITH.items()
    }


def _said(header: Header | None, name: str) -> str:
    """What a footer says of itself; that of 0.1.0 does not name the code."""
    return header.made_from.get(name, UNKNOWN_CODE if name == "code" else "") if header else ""


@dataclass(frozen=True, slots=True)
class ScoredEvaluation:
    """The scored turns and samples of an evaluation.

    Attributes:
        places: code of each one, rising; equal codes, the same question with the same gold in the same sample.
        asked: code of each one's turn, question and sample, whatever the gold, in the order of `places`.
        clusters: code of its conversation (or group of them).
        values: `correct`, `tokens`, `usd` and `latency_ms`, NaN where not known.
    """

    places: Codes
    clusters: Codes
    values: Mapping[str, Floats]
    asked: Codes


class Paired(NamedTuple):
    """Two evaluations on their common turns, each array of shape (N,)."""

    places: Codes
    clusters: Codes
    first: Mapping[str, Floats]
    second: Mapping[str, Floats]


class TurnReader:
    """Reads scored turns, with codes that mean the same in every evaluation that it has read."""

    def __init__(self, workspace: Workspace) -> None:
        self._record = workspace.record
        self._places: dict[tuple[object, ...], int] = {}
        self._clusters: dict[str, int] = {}
        self._asked: dict[tuple[object, ...], int] = {}

    def read(self, evaluated: Evaluated) -> ScoredEvaluation:
        """The turns of an evaluation that have a verdict."""
        columns = [*_KEY, "cluster", *_VALUES]
        table = self._record.read(TURN_RESULTS, RecordKey.of(evaluated.partition), columns)
        table = table.filter(pa.compute.is_valid(table["correct"]))
        keys = zip(*(table[name].to_pylist() for name in _KEY), strict=True)
        places = _codes(keys, self._places)
        order = np.argsort(places)
        clusters = _codes(table["cluster"].to_pylist(), self._clusters)
        asked = _codes(zip(*(table[name].to_pylist() for name in _KEY[:-1]), strict=True), self._asked)
        values = {name: floats(table[name])[order] for name in _VALUES}
        return ScoredEvaluation(places[order], clusters[order], values, asked[order])

    def names(self, places: Codes) -> list[str]:
        """Ids of turns, `~<sample>` added from the second sample on; sorted."""
        keys = list(self._places)  # codes count up in the order of the keys
        found = [keys[place] for place in places.tolist()]
        return sorted(f"{turn_id}~{sample}" if sample else str(turn_id) for turn_id, sample, *_ in found)


def with_other_gold(first: ScoredEvaluation, second: ScoredEvaluation) -> int:
    """How many turns and samples both have that were scored by different golds."""
    asked = np.intersect1d(first.asked, second.asked, assume_unique=True).size
    return int(asked - np.intersect1d(first.places, second.places, assume_unique=True).size)


def paired(first: ScoredEvaluation, second: ScoredEvaluation) -> Paired:
    """The turns and samples that both have; clusters are those of the first."""
    places, here, there = np.intersect1d(first.places, second.places, assume_unique=True, return_indices=True)
    mine, theirs = (
        {name: values[chosen] for name, values in scored.values.items()}
        for scored, chosen in ((first, here), (second, there))
    )
    return Paired(places, first.clusters[here], mine, theirs)


def _codes(keys: Iterable[Key], known: dict[Key, int]) -> Codes:
    """A code for each key; new ones are added to those known."""
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
