"""Bringing in what was made elsewhere: foreign data sets as suites, recorded predictions as model versions."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from eval_pipeline.core.arms_length import at_arms_length
from eval_pipeline.core.complaints import complaints, dotted
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.foreign import read_text
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import canonical_json, text_hash
from eval_pipeline.core.model import Case, Json
from eval_pipeline.core.model_versions import ModelVersion, Predictions
from eval_pipeline.providers.model_versions import save_imported
from eval_pipeline.providers.prices import has_price
from eval_pipeline.providers.standins.recorded import NAME as RECORDED
from eval_pipeline.suites import OVERRIDES_FILE, SUITE_FILE, SuiteFile, read_cases, read_header, read_suite
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.registry import load_importer
from eval_pipeline.workspace.workspace import Workspace

CASES_FILE = "cases.jsonl"


@dataclass(frozen=True, slots=True)
class ImportedSuite:
    """What an import of a data set made.

    Attributes:
        wrong_gold: turns whose own gold does not hold, each with the reason.
        left_out: their cases are not in the suite.
    """

    folder: Path
    cases: int
    turns: int
    wrong_gold: tuple[str, ...]
    left_out: bool = False


_imported = TypeAdapter(ImportedSuite)


@dataclass(frozen=True, slots=True)
class ImportedPredictions:
    """What an import of predictions made.

    Attributes:
        missing: turns that will be scored as no answer.
        priced_as: the model whose prices should count.
        has_price: whether there are such prices.
    """

    model_version: str
    predictions: int
    missing: tuple[str, ...]
    priced_as: str | None
    has_price: bool


def import_suite(
    workspace: Workspace,
    form: str,
    source: Path,
    name: str,
    limit: int | None = None,
    further: Sequence[Path] = (),
) -> ImportedSuite:
    """Turns a foreign data set into a suite below `$EVAL_HOME/suites`; nothing is left behind where it is wrong.

    `further` are files that the data set comes with, where its form knows such.

    Raises:
        UsageError: an unknown form, or the name of a suite that is not an imported one.
        InputError: the source is not of that form.
    """
    foreign, importer = load_importer(form)
    folder = workspace.home.imported_suites / name
    _check_suite_name(workspace, name, folder)
    for path in (source, *further):
        if not path.exists():
            raise UsageError(f"no file {path}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".importing-", dir=folder.parent))
    try:
        # Built aside under the same name, since a suite's name is its folder's.
        made = aside / name
        made.mkdir()
        raws = list(importer(source, limit, further, made) if foreign.further else importer(source, limit))
        _write_cases(made, raws)
        header = {"name": name, "version": "1", "track": foreign.track, "cases": CASES_FILE}
        header["description"] = f"imported from {source.name} ({form})"
        (made / SUITE_FILE).write_text(yaml.safe_dump(header, sort_keys=False))
        if (folder / OVERRIDES_FILE).exists():  # somebody's work, and no part of what is imported
            shutil.copy2(folder / OVERRIDES_FILE, made / OVERRIDES_FILE)
        suite = read_header(made)
        read = read_suite(suite)
        if read.problems:
            raise InputError(read.problems)
        cases = read.cases
        wrong = {case.id: suite.track().check_gold(case) for case in cases}
        problems = [f"{turn.id}: {why}" for found in wrong.values() for turn, why in found]
        if foreign.leaves_out_wrong_gold and problems:
            cases = tuple(case for case in cases if not wrong[case.id])
            _write_cases(made, [raw for raw in raws if not wrong[str(raw["id"])]])
        if folder.exists():
            folder.rename(aside / "before")
        made.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    turns = sum(len(case.turns) for case in cases)
    return ImportedSuite(folder, len(cases), turns, tuple(problems), foreign.leaves_out_wrong_gold)


def import_at_arms_length(
    form: str, source: Path, name: str, limit: int | None, further: Sequence[Path]
) -> ImportedSuite:
    """`import_suite` into the home of the environment, in a process of its own: a foreign file may crash its reader.

    Raises:
        InputError: as of `import_suite`, or because reading a file ended that process.
        EvalError: as of `import_suite`.
    """
    given: list[Json] = [str(path) for path in further]
    told = at_arms_length(_import_there, [form, str(source), name, limit, given], [source, *further])
    return _imported.validate_python(told)


def _import_there(form: str, source: str, name: str, limit: int | None, further: list[str]) -> Json:
    made = import_suite(Workspace(find_home()), form, Path(source), name, limit, [Path(path) for path in further])
    found: Json = _imported.dump_python(made, mode="json")
    return found


def _write_cases(folder: Path, raws: Sequence[Mapping[str, Json]]) -> None:
    with (folder / CASES_FILE).open("w") as file:
        file.writelines(canonical_json(raw) + "\n" for raw in raws)


def _check_suite_name(workspace: Workspace, name: str, folder: Path) -> None:
    try:
        SuiteFile(name=name, version="1", track="", cases="")
    except ValidationError as error:
        raise UsageError(
            f"'{name}' is no name for a suite: lower-case letters, digits and '_', a letter first"
        ) from error
    if name in workspace.suites and workspace.suites[name].folder != folder:
        raise UsageError(f"there is a suite '{name}' at {workspace.suites[name].folder} already; give another --suite")


KEPT = {"case_id", "turn_index", "sample", "input_tokens", "output_tokens", "latency_ms"}


class PredictionRow(BaseModel):
    """A row of recorded predictions: `response` or `answer` in the track's form, or `sql`.

    A row with none of them, nor a reason to decline, is no answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    case_id: str
    turn_index: int = Field(ge=0)
    sample: int = Field(default=0, ge=0)
    response: str | dict[str, Json] | list[Json] | None = None
    answer: StrictStr | StrictInt | StrictFloat | None = None
    unit: str | None = None
    calculation: str | None = None
    sql: StrictStr | None = None
    confidence: StrictStr | None = None
    reason: StrictStr | None = None
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    latency_ms: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_answer(self) -> "PredictionRow":
        given = [name for name in ("response", "answer", "sql") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"expected one of 'response', 'answer' and 'sql', found {' and '.join(given)}")
        return self


def import_predictions(
    workspace: Workspace, source: Path, suite: str, name: str, priced_as: str | None = None
) -> ImportedPredictions:
    """Registers recorded predictions for a suite as (part of) a model version of the provider `recorded`.

    Raises:
        InputError: rows that do not parse, that name turns the suite lacks, or that give a turn twice.
        UsageError: the name stands for something else already.
    """
    found = workspace.suite(suite)
    track, cases = found.track(), read_cases(found)
    rows = list(_read_predictions(source, track, cases))
    text = "".join(canonical_json(row) + "\n" for row in rows)
    samples = 1 + max((row["sample"] for row in rows), default=0)
    version = _recorded_version(workspace, name, suite, text_hash(text), priced_as, samples)
    path = workspace.home.predictions / version.predictions[suite].file
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new")
    aside.write_text(text)
    aside.rename(path)
    save_imported(workspace.home.imported_model_versions, version)
    given = {(row["case_id"], row["turn_index"]) for row in rows}
    missing = [turn.id for case in cases for turn in case.turns if (case.id, turn.index) not in given]
    return ImportedPredictions(name, len(rows), tuple(missing), version.priced_as, has_price(version))


def _recorded_version(
    workspace: Workspace, name: str, suite: str, content_hash: str, priced_as: str | None, samples: int
) -> ModelVersion:
    entry = Predictions(file=f"{name}/{suite}.jsonl", content_hash=content_hash)
    before = workspace.model_versions.get(name)
    if before is None:
        values: dict[str, Any] = {"name": name, "provider": RECORDED, "samples_per_turn": samples}
        values |= {"max_recovery_attempts": 0, "priced_as": priced_as, "predictions": {suite: entry}}
        try:
            return ModelVersion.model_validate(values)
        except ValidationError as error:
            raise UsageError(
                f"'{name}' is no name for a model version: letters, digits and . _ @ : + -, a letter or digit first, "
                "at most 120"
            ) from error
    if before.provider != RECORDED:
        raise UsageError(f"model version '{name}' is of provider '{before.provider}'; give another --model-version")
    known = before.predictions.get(suite)
    if known is not None and known.content_hash != content_hash:
        raise UsageError(
            f"other predictions of '{name}' for '{suite}' were imported already; give another --model-version"
        )
    if before.samples_per_turn != samples:
        raise UsageError(f"'{name}' has {before.samples_per_turn} samples a turn, {samples} found; give another name")
    priced = priced_as or before.priced_as
    return before.model_copy(update={"predictions": {**before.predictions, suite: entry}, "priced_as": priced})


def _read_predictions(source: Path, track: Track, cases: list[Case]) -> Iterator[dict[str, Json]]:
    text = _text_of(source)
    turns = {case.id: len(case.turns) for case in cases}
    problems: list[Problem] = []
    first: dict[tuple[str, int, int], int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = PredictionRow.model_validate_json(line)
            answer = _response_text(track, row)
        except ValidationError as error:
            problems += [
                Problem(str(source), number, dotted(location), message)
                for location, message in complaints(error, PredictionRow)
            ]
            continue
        except ValueError as error:
            problems.append(Problem(str(source), number, "", str(error)))
            continue
        misplaced = _misplaced(row, turns, first)
        if misplaced is not None:
            problems.append(Problem(str(source), number, *misplaced))
            continue
        first[row.case_id, row.turn_index, row.sample] = number
        yield {**row.model_dump(include=KEPT), "text": answer}
    if problems:
        raise InputError(problems)


def _misplaced(
    row: PredictionRow, turns: Mapping[str, int], first: Mapping[tuple[str, int, int], int]
) -> tuple[str, str] | None:
    """Field and sentence where a row is not of the suite, or gives a turn again."""
    if row.case_id not in turns:
        return "case_id", f"the suite has no case '{row.case_id}'"
    if row.turn_index >= turns[row.case_id]:
        count = turns[row.case_id]
        return "turn_index", f"case '{row.case_id}' has {count} turns, found index {row.turn_index} (from 0)"
    line = first.get((row.case_id, row.turn_index, row.sample))
    return None if line is None else ("", f"the same turn was given on line {line}")


def _text_of(source: Path) -> str:
    if not source.is_file():
        raise UsageError(f"no file {source}")
    try:
        return read_text(source)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(source), None, "", f"cannot be read as UTF-8 text: {error}")]) from error


def _response_text(track: Track, row: PredictionRow) -> str:
    if row.response is not None:
        return row.response if isinstance(row.response, str) else canonical_json(row.response)
    if row.answer is None and row.sql is None and row.reason is None:
        return ""
    return track.from_recorded(row.model_dump(exclude_none=True))
