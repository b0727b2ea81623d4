"""Baseline files: what a paired comparison needs of an evaluation, for a home that does not hold it.

Continuous integration keeps such a file of the main branch, and compares each change with it. It holds the verdict and
cost of each turn, digests of questions and golds, and nothing of what models said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from eval_pipeline.analysis.comparisons.chosen.sides import Side
from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation, HeldByFile
from eval_pipeline.analysis.comparisons.scored import VALUES, Further, TurnReader
from eval_pipeline.analysis.comparisons.served import Served
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.core.model import Partition
from eval_pipeline.workspace.evaluations import EvaluationRun

VERSION = 1
_KIND, _CHECKSUM, _EVALUATIONS = "eval_pipeline_baseline", "checksum", "evaluations"
_DIGESTS = ("place", "asked")
_TEXTS = ("turn_id", "cluster")


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Saved(_Form):
    """An evaluation in the file; `turns` has a list for each column of `TurnReader.turns`, digests in hexadecimal."""

    suite: str
    model_version: str
    eval_date: date
    id: str
    begun_at: datetime | None
    settings: dict[str, Any]
    prompt: str
    prompt_text: str
    data_hash: str
    epoch: str
    simulated: bool
    scope: str
    content_hash: str
    made_with: dict[str, str]
    served: tuple[tuple[str, ...], tuple[str, ...]]
    coverage: dict[str, int | None]
    turns: dict[str, list[Any]]

    @model_validator(mode="after")
    def _is_a_table(self) -> "_Saved":
        missing = {*_DIGESTS, *_TEXTS, "sample", *VALUES} - self.turns.keys()
        if missing or len({len(column) for column in self.turns.values()}) != 1:
            raise ValueError("the columns of the turns do not fit together")
        return self

    def side(self, file: str) -> Side:
        held = HeldByFile(file, _table(self.turns), Coverage(**self.coverage))
        evaluated = CompleteEvaluation(
            self._told().partition,
            self.simulated,
            self.scope,
            self.content_hash,
            "",
            self.made_with,
            Served(*self.served),
            held,
        )
        return Side(evaluated, self._told())

    def _told(self) -> EvaluationRun:
        # The record of this home need not have it: as the place of an earlier one, it is not taken for what is there.
        place = Partition(self.suite, self.model_version, self.eval_date, self.id)
        made_of = (self.settings, self.prompt, self.prompt_text, self.data_hash, self.epoch)
        return EvaluationRun(self.id, place, self.begun_at, *made_of, newest=True)


def write_baseline(path: Path, sides: Sequence[Side]) -> None:
    """Writes evaluations, whose turns are held (`with_turns`).

    Raises:
        UsageError: the file cannot be written.
    """
    # As they will be read again, so that the checksum is over the same values.
    saved = parse_json(json_text([_saved(side) for side in sides]))
    try:
        path.write_text(json_text({_KIND: VERSION, _CHECKSUM: json_hash(saved), _EVALUATIONS: saved}) + "\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def read_baseline(path: Path) -> list[Side]:
    """Reads a baseline file.

    Raises:
        UsageError: it cannot be read, is no such file, is damaged, or was written by a newer version.
    """
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: is damaged, or no baseline file: it is not JSON") from error
    if not isinstance(found, Mapping) or _KIND not in found:
        raise UsageError(f"{path}: is no baseline file; `eval-pipeline compare MODEL_VERSION --save FILE` writes one")
    if found[_KIND] != VERSION:
        raise UsageError(
            f"{path}: is a baseline file of another version of eval-pipeline ({found[_KIND]}); save it anew"
        )
    try:
        evaluations = found[_EVALUATIONS]
        if json_hash(evaluations) != found[_CHECKSUM]:
            raise ValueError
        return [_Saved.model_validate(one).side(path.name) for one in evaluations]
    except (KeyError, TypeError, ValueError, ValidationError, pa.ArrowException) as error:
        raise UsageError(f"{path}: the baseline file is damaged; save it anew") from error


def with_turns(side: Side, reader: TurnReader, further: Further | None) -> Side:
    """Returns the evaluation with its turns, and further columns of numbers, in memory."""
    found = side.evaluated
    held = HeldByFile("", reader.turns(found, further), reader.coverage(found))
    return replace(side, evaluated=replace(found, held=held))


def _saved(side: Side) -> dict[str, Any]:
    found, held, told = side.evaluated, side.evaluated.held, side.told
    assert held is not None
    place, turns = found.partition, held.turns
    columns = {name: turns[name].to_pylist() for name in turns.column_names}
    for name in _DIGESTS:
        columns[name] = [digest.hex() for digest in columns[name]]
    return {
        "suite": place.suite,
        "model_version": place.model_version,
        "eval_date": place.eval_date,
        "id": told.id,
        "begun_at": told.begun_at,
        "settings": dict(told.settings),
        "prompt": told.prompt,
        "prompt_text": told.prompt_text,
        "data_hash": told.data_hash,
        "epoch": told.epoch,
        "simulated": found.simulated,
        "scope": found.scope,
        "content_hash": found.content_hash,
        "made_with": dict(found.made_with),
        "served": [list(part) for part in found.served],
        "coverage": held.coverage.columns(),
        "turns": columns,
    }


def _table(columns: Mapping[str, list[Any]]) -> pa.Table:
    def array(name: str, values: list[Any]) -> pa.Array:
        if name in _DIGESTS:
            return pa.array([bytes.fromhex(value) for value in values], pa.binary(16))
        kind = pa.string() if name in _TEXTS else pa.int64() if name == "sample" else pa.float64()
        return pa.array(values, kind)

    return pa.table({name: array(name, values) for name, values in columns.items()})
