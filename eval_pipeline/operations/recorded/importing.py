"""Imports recorded answers as a model version: reads, maps, assigns to turns, test-parses, stores with provenance."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.ids import canonical_json, text_hash
from eval_pipeline.core.model import Json
from eval_pipeline.core.model_versions import ModelVersion, Predictions
from eval_pipeline.core.provenance import Provenance, in_common
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.operations.recorded.entries import Entry, read_rows
from eval_pipeline.operations.recorded.logs import read_log
from eval_pipeline.operations.recorded.mapping import for_track, unknown_field
from eval_pipeline.operations.recorded.placing import PlacingError, TurnPlaces, placed
from eval_pipeline.operations.recorded.reading import ReadBack, read_back
from eval_pipeline.operations.recorded.rows import FIELD_NAMES, PredictionRow
from eval_pipeline.operations.recorded.wanted import ROWS, Wanted
from eval_pipeline.providers.imported_versions import save_imported
from eval_pipeline.providers.prices import has_price
from eval_pipeline.providers.standins.recorded import NAME as RECORDED
from eval_pipeline.suites.cases import read_cases
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.workspace import Workspace

_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class ImportedPredictions:
    """The result of importing predictions.

    Attributes:
        missing: turns without an answer; they will be scored as wrong.
        without_tokens: number of answers without token counts, which make totals unknown.
        priced_as: the model whose prices apply.
        has_price: whether there are such prices.
        read: result of parsing every answer.
        provenance: facts that apply to all answers.
        notes: how a table was read, in sentences.
    """

    model_version: str
    predictions: int
    missing: tuple[str, ...]
    without_tokens: int
    priced_as: str | None
    has_price: bool
    read: ReadBack
    provenance: Provenance
    notes: tuple[str, ...] = ()


def import_predictions(
    workspace: Workspace,
    source: Path,
    suite: str,
    name: str,
    wanted: Wanted | None = None,
    *,
    unreadable_fine: bool = False,
    entries: Sequence[Entry] | None = None,
    of_several: bool = False,
) -> ImportedPredictions:
    """Registers recorded predictions for a suite as (part of) a model version of the provider `recorded`.

    Importing the same answers again with more provenance updates it. With `unreadable_fine` it is no error that none of
    the answers can be read. `entries` are those of the file, if it has been read; with `of_several`, several models may
    have made them, as in an application.

    Raises:
        InputError: rows do not parse, name turns that the suite lacks, or give a turn twice; or there is no readable
            answer at all. Nothing is imported then.
        UsageError: the name already stands for something else, or an option does not fit the file.
    """
    wanted = wanted or Wanted()
    found = workspace.suite(suite)
    track, cases = found.track(), read_cases(found)
    notes: list[str] = []
    if entries is not None:
        pass
    elif wanted.form == ROWS:
        entries = list(read_rows(source, {*FIELD_NAMES, *wanted.mapped.fields.values()}, notes.append))
    else:
        entries = read_log(wanted.form, source)
    wanted.mapped.check([entry.found for entry in entries if not entry.fault])
    rows, known = _rows(source, track, TurnPlaces.of(suite, cases), entries, wanted, of_several=of_several)
    read = read_back(track, cases, rows)
    if not read.readable and not unreadable_fine:
        told = _none_readable(read) if read.answers else _no_answer(entries, wanted)
        raise InputError([Problem(str(source), None, "", told)])
    provenance = in_common(known)
    for row, own in zip(rows, known, strict=True):
        if own:
            row["provenance"] = own
    text = "".join(canonical_json(row) + "\n" for row in rows)
    samples = 1 + max((row["sample"] for row in rows), default=0)
    version = _recorded_version(workspace, name, suite, text_hash(text), wanted, samples, provenance)
    _keep(workspace, version, suite, text)
    given = {(row["case_id"], row["turn_index"]) for row in rows}
    missing = [turn.id for case in cases for turn in case.turns if (case.id, turn.index) not in given]
    return ImportedPredictions(
        name,
        len(rows),
        tuple(missing),
        _without_tokens(rows),
        version.priced_as,
        has_price(version),
        read,
        provenance,
        tuple(notes),
    )


def _without_tokens(rows: Sequence[Mapping[str, Json]]) -> int:
    """Returns the number of rows without token counts; none are expected where a call failed."""
    return sum(None in (row["input_tokens"], row["output_tokens"]) for row in rows if not row.get("error"))


def _no_answer(entries: Sequence[Entry], wanted: Wanted) -> str:
    only = " ".join(f"--only '{name}={value}'" for name, value in wanted.only.items())
    of = f" with {only}; it has {len(entries):,} others" if entries and only else ""
    return f"holds no prediction{of}; nothing was imported"


def _none_readable(read: ReadBack) -> str:
    first = read.unread[0]
    return (
        f"not one of {read.answers:,} answers can be read, e.g. {first.example}: {first.reason}; nothing was imported "
        "(--map response=FIELD, or --map answer=FIELD, says which field has the answers)"
    )


def _keep(workspace: Workspace, version: ModelVersion, suite: str, text: str) -> None:
    path = workspace.home.predictions / version.predictions[suite].file
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new")
    aside.write_text(text)
    aside.rename(path)
    workspace.imported.share_predictions(path)
    workspace.imported.change_model_versions(lambda: save_imported(workspace.home.imported_model_versions, version))


def _rows(
    source: Path,
    track: Track,
    places: TurnPlaces,
    entries: Sequence[Entry],
    wanted: Wanted,
    *,
    of_several: bool = False,
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Returns the canonical rows, and the known provenance of each."""
    problems: list[Problem] = []
    first: dict[tuple[str, int, int], str] = {}
    of_all = wanted.told.known()
    kept: list[tuple[PredictionRow, Entry]] = []
    for entry in entries:
        kept += ((row, entry) for row in _checked(source, track, places, entry, wanted, problems))
    kept = [
        (row, entry)
        for row, entry in kept
        if all(str(getattr(row, name)) == value for name, value in wanted.only.items())
    ]
    if wanted.form != ROWS:
        if not of_several:
            _refuse_several([row for row, _ in kept])
        kept = list(_numbered(kept, wanted))
    rows, known = [], []
    for row, entry in kept:
        place = (row.case_id, row.turn_index, row.sample)
        here = f"on line {entry.line}" if entry.line else entry.place
        try:
            if place in first:
                raise ValueError(f"the same turn was given {first[place]}")
            rows.append(row.canonical(row.response_text(track)))
        except ValueError as error:
            problems.append(_problem(source, entry, "", str(error)))
            continue
        first[place] = here
        known.append({**of_all, **row.known()})
    if problems:  # an entry with several answers has only one problem
        raise InputError(_few(sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0)))
    return rows, known


def _few(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Returns the first problems and the total number, because a wrong field is wrong on every line."""
    if len(problems) <= _MOST_PROBLEMS:
        return problems
    left = f"and {len(problems) - _MOST_PROBLEMS:,} more, {len(problems):,} in all"
    return [*problems[:_MOST_PROBLEMS], Problem(problems[0].file, None, "", left)]


def _checked(
    source: Path, track: Track, places: TurnPlaces, entry: Entry, wanted: Wanted, problems: list[Problem]
) -> Iterator[PredictionRow]:
    """Yields the rows of an entry, and adds its problems to the list."""
    if entry.fault:
        problems.append(_problem(source, entry, "", entry.fault))
        return
    try:
        given = entry.given if entry.given is entry.found else for_track(track, entry.given)
        for raw in placed(wanted.mapped.applied(given, entry.found), entry, places):
            row = PredictionRow.model_validate(raw)
            places.check(row.case_id, row.turn_index)
            yield row
    except PlacingError as error:
        problems.append(_problem(source, entry, error.field, str(error)))
    except ValidationError as error:
        for location, message in complaints(error, PredictionRow):
            unknown = len(location) == 1 and location[0] not in FIELD_NAMES
            told = unknown_field(str(location[0])) if unknown else message
            problems.append(_problem(source, entry, dotted(location), told))


def _problem(source: Path, entry: Entry, field: str, message: str) -> Problem:
    return Problem(str(source), entry.line, field, f"{message} ({entry.place})" if entry.place else message)


def _refuse_several(rows: Sequence[PredictionRow]) -> None:
    """Raises UsageError for a log of several models or prompts, which belong to different model versions."""
    for name in ("model", "prompt_version"):
        values = sorted({value for row in rows if (value := getattr(row, name)) is not None})
        if len(values) > 1:
            told = " ".join(f"--only '{name}={value}'" for value in values[:10])
            what = name.replace("_", " ")
            raise UsageError(f"the log has answers of {len(values)} {what}s; import one of them at a time: {told}")


def _numbered(rows: Sequence[tuple[PredictionRow, Entry]], wanted: Wanted) -> Iterator[tuple[PredictionRow, Entry]]:
    """Yields the rows of a log without sample numbers, numbered in order of appearance."""
    counts: dict[tuple[str, int], int] = {}
    for row, entry in rows:
        if "sample" in row.model_fields_set:
            yield row, entry
            continue
        turn = (row.case_id, row.turn_index)
        counts[turn] = counts.get(turn, -1) + 1
        yield row.model_copy(update={"sample": counts[turn]}), entry


def _recorded_version(
    workspace: Workspace,
    name: str,
    suite: str,
    content_hash: str,
    wanted: Wanted,
    samples: int,
    provenance: Provenance,
) -> ModelVersion:
    entry = Predictions(file=f"{name}/{suite}.jsonl", content_hash=content_hash, provenance=provenance)
    before = workspace.model_versions.get(name)
    if before is None:
        values: dict[str, Any] = {"name": name, "provider": RECORDED, "samples_per_turn": samples}
        values |= {"max_recovery_attempts": 0, "priced_as": wanted.priced_as, "price": wanted.price}
        try:
            return ModelVersion.model_validate(values | {"predictions": {suite: entry}})
        except ValidationError as error:
            raise UsageError(
                f"'{name}' is not a valid name for a model version: use letters, digits and . _ @ : + -, "
                "a letter or digit first, "
                "at most 120"
            ) from error
    if before.provider != RECORDED:
        raise UsageError(f"model version '{name}' is of provider '{before.provider}'; give another --model-version")
    known = before.predictions.get(suite)
    if known is not None and known.content_hash != content_hash:
        raise UsageError(
            f"other predictions of '{name}' for '{suite}' were imported already; give another --model-version, or take "
            f"those out first: eval-pipeline remove {name} --suite {suite}"
        )
    if before.samples_per_turn != samples:
        raise UsageError(f"'{name}' has {before.samples_per_turn} samples per turn, found {samples}; use another name")
    changed = {"predictions": {**before.predictions, suite: entry}, "priced_as": wanted.priced_as or before.priced_as}
    return before.model_copy(update=changed | {"price": wanted.price or before.price})
