"""The complete evaluations of a suite."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from eval_pipeline.analysis.comparisons.served import FINGERPRINT, MODEL, NOT_TOLD, Served
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.fingerprints import UNKNOWN_CODE
from eval_pipeline.store.record import Header, Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import (
    COST_PER_CORRECT_ANSWER,
    COVERAGE,
    EVIDENCE,
    GENERATIONS,
    JUDGEMENTS,
    MODEL_VERSIONS,
    STATISTICS,
    TURN_RESULTS,
)
from eval_pipeline.workspace.asked.scope import FULL, Scope
from eval_pipeline.workspace.workspace import Workspace

_MADE_WITH: Mapping[str, tuple[tuple[Table, tuple[str, ...]], ...]] = {
    "suite": ((GENERATIONS, ("cases",)),),
    "prompt": ((GENERATIONS, ("prompt",)),),
    "harness": ((GENERATIONS, ("code", "libraries")),),
    "scorer": ((EVIDENCE, ("code", "libraries")), (TURN_RESULTS, ("code", "libraries"))),
    "gold": ((TURN_RESULTS, ("overrides",)),),
    "judge": ((JUDGEMENTS, ("judge", "judge_prompt", "pairs", "code")),),
}
"""What an evaluation was made with → the tables and footer keys of the record that tell it."""
GOLD = "gold"


@dataclass(frozen=True, slots=True)
class HeldByFile:
    """What a file holds of an evaluation that the record need not have: its scored turns and its coverage.

    Attributes:
        file: name of the file.
        turns: as `TurnReader.turns` returns them.
    """

    file: str
    turns: pa.Table
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class CompleteEvaluation:
    """A completely scored evaluation.

    Attributes:
        scope: `full`, or the part of the suite it covers.
        content_hash: hash of its scored turns.
        figures: joint hash of the aggregates that comparisons show.
        made_with: `suite`, `prompt`, `harness`, `scorer`, `gold` and `judge` → a text; equal texts mean the same.
        served: the models that answered.
        held: its turns, if they come from a file and not from the record.
    """

    partition: Partition
    simulated: bool
    scope: str
    content_hash: str
    figures: str
    made_with: Mapping[str, str]
    served: Served = NOT_TOLD
    held: HeldByFile | None = field(default=None, compare=False)

    def changes(self, other: "CompleteEvaluation") -> list[str]:
        """Returns what the two were made with differently; unknown code always counts as different.

        For the gold, only overrides count: a suite that has grown still has the same gold for its old turns.
        """
        made = ((name, value, other.made_with[name]) for name, value in self.made_with.items())
        changed = [name for name, mine, theirs in made if mine != theirs or UNKNOWN_CODE in mine]
        return changed + ["served"] * (self.served.change(other.served) is not None)

    def fingerprint(self) -> list[object]:
        """Returns everything about the evaluation that comparisons use."""
        made_with = dict(self.made_with)
        found = [str(self.partition), self.simulated, self.scope, self.content_hash, self.figures, made_with]
        return [*found, *map(list, self.served)]


def evaluations_of(workspace: Workspace, suite: str) -> dict[str, list[CompleteEvaluation]]:
    """Returns the complete evaluations of a suite by model version, both sorted, without those of drawn cases.

    Facts about unchanged files are cached below `checked/`, since there may be thousands after years.
    """
    kept = _Kept.of(workspace.home.checked / f"{suite}.evaluations")
    found: dict[str, list[CompleteEvaluation]] = {}
    simulated: dict[str, bool] = {}
    for key in workspace.record.partitions(TURN_RESULTS, RecordKey.of_suite(suite)):
        assert key.model_version and key.eval_date
        name = key.model_version
        if name not in simulated:
            simulated[name] = _is_simulated(workspace.record, name)
        states = workspace.record.states(_READ, key)
        told = kept.get(f"{name} {key.eval_date}", states, lambda key=key: _told(workspace.record, key))  # type: ignore[misc]
        if told is not None:
            found.setdefault(name, []).append(_evaluated(key.partition(), simulated[name], told))
    kept.save()
    return found


def evaluated_at(workspace: Workspace, partition: Partition) -> CompleteEvaluation | None:
    """Returns the evaluation at a place in the record, an earlier one of its date too; None as in `evaluations_of`."""
    told = _told(workspace.record, RecordKey.of(partition))
    return told and _evaluated(partition, _is_simulated(workspace.record, partition.model_version), told)


def _is_simulated(record: Record, model_version: str) -> bool:
    found: bool = record.read(MODEL_VERSIONS, RecordKey.of_model_version(model_version), ["simulated"])[0][0].as_py()
    return found


def _evaluated(partition: Partition, simulated: bool, told: "_Told") -> CompleteEvaluation:
    *_, (models, fingerprints) = told
    return CompleteEvaluation(partition, simulated, *told[:4], Served(tuple(models), tuple(fingerprints)))


_Told = tuple[str, str, str, Mapping[str, str], Sequence[Sequence[str]]]
"""Scope, hashes of turns and figures, what it was made with, and the models that answered."""
_READ = (GENERATIONS, EVIDENCE, JUDGEMENTS, TURN_RESULTS, STATISTICS, COST_PER_CORRECT_ANSWER, COVERAGE)


def _told(record: Record, key: RecordKey) -> _Told | None:
    """Reads the facts from the footers of an evaluation's files; None if it is incomplete or its turns are drawn."""
    headers = {table.name: record.header(table, key) for table in _READ}
    generated, scored, ended, *further = (
        headers[table.name] for table in (GENERATIONS, TURN_RESULTS, STATISTICS, COST_PER_CORRECT_ANSWER, COVERAGE)
    )
    # The statistics are made last, and only after the blocking checks have passed.
    if not (generated and scored and ended) or ended.made_from.get(TURN_RESULTS.name) != scored.content_hash:
        return None
    if Scope.from_label(generated.made_from.get("scope", FULL)).is_drawn:
        return None  # whoever takes drawn turns for a fair sample is wrong
    figures = json_hash([ended.content_hash, *(header.content_hash if header else "" for header in further)])
    served = Served.of(record.read(GENERATIONS, key, [MODEL, FINGERPRINT]))
    return generated.made_from.get("scope", FULL), scored.content_hash, figures, _made_with(headers), served


@dataclass(slots=True)
class _Kept:
    """Cache of facts about evaluations, valid for given states of their files (size, modification time, inode)."""

    path: Path
    before: Mapping[str, list[Any]]
    now: dict[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> "_Kept":
        text = read_sealed(path)
        found = json.loads(text) if text else {}
        return cls(path, found["found"] if found.get("made_with") == _RULES else {})

    def get(self, name: str, states: list[Any], find: Callable[[], _Told | None]) -> _Told | None:
        """Returns the cached facts for files in these states, or else finds them."""
        known = self.before.get(name)
        self.now[name] = known if known is not None and known[0] == states else [states, find()]
        return self.now[name][1]  # type: ignore[no-any-return]

    def save(self) -> None:
        """Saves the cache; errors are ignored, as they only cost time later."""
        if (
            any(self.before.get(name) is not found for name, found in self.now.items())
            or self.before.keys() > self.now.keys()
        ):
            with suppress(OSError):
                write_sealed(self.path, json.dumps({"made_with": _RULES, "found": self.now}))


_RULES = ["served"] + [[name, [[table.name, *keys] for table, keys in places]] for name, places in _MADE_WITH.items()]
"""Identifies the rules by which facts were found; a cache made with other rules is not used."""


def latest(evaluations: Sequence[CompleteEvaluation]) -> CompleteEvaluation:
    """Returns the newest full evaluation, or else the newest one, as `latest_partitions` does."""
    return max(evaluations, key=lambda found: (found.scope == FULL, found.partition.eval_date))


def _made_with(headers: Mapping[str, Header | None]) -> dict[str, str]:
    return {
        what: "/".join(_said(headers[table.name], name) for table, names in places for name in names)
        for what, places in _MADE_WITH.items()
    }


def _said(header: Header | None, name: str) -> str:
    """Returns an entry of a footer; footers of 0.1.0 do not contain the code."""
    return header.made_from.get(name, UNKNOWN_CODE if name == "code" else "") if header else ""
