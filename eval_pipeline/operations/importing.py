"""Imports foreign data sets as suites. For recorded predictions, see `recorded/`."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import (
    TypeAdapter,
    ValidationError,
)

from eval_pipeline.core.arms_length import at_arms_length
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import canonical_json, without_surrogates
from eval_pipeline.core.model import Json, Turn
from eval_pipeline.suites import OVERRIDES_FILE, REVIEWS_FOLDER, SUITE_FILE, SuiteFile, read_header, read_suite
from eval_pipeline.suites.left_out import LeftOutAtImport, write_left_out
from eval_pipeline.tracks.abilities import doubts_of
from eval_pipeline.tracks.import_notes import import_notes, take_import_options
from eval_pipeline.tracks.import_places import UsersFiles
from eval_pipeline.tracks.registry import load_importer
from eval_pipeline.workspace.workspace import Workspace

CASES_FILE = "cases.jsonl"


@dataclass(frozen=True, slots=True)
class ImportedSuite:
    """The result of importing a data set.

    Attributes:
        wrong_gold: turns with invalid gold, each with the reason.
        left_out: whether their cases were left out of the suite.
        notes: what the importer changed or made up, in sentences.
        doubted: turns whose gold the lint doubts, each with its findings.
    """

    folder: Path
    cases: int
    turns: int
    wrong_gold: tuple[str, ...]
    left_out: bool = False
    notes: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()


_imported = TypeAdapter(ImportedSuite)


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a table that becomes a suite.

    Attributes:
        by_field: the column for each field of a case.
        answer_form: form of the answers; guessed if None.
    """

    by_field: Mapping[str, str] = field(default_factory=dict)
    answer_form: str | None = None


NO_COLUMNS = Columns()


def import_suite(
    workspace: Workspace,
    form: str,
    source: Path,
    name: str,
    limit: int | None = None,
    further: Sequence[Path] = (),
    columns: Columns = NO_COLUMNS,
) -> ImportedSuite:
    """Converts a foreign data set to a suite below `$EVAL_HOME/suites`; on an error, nothing is left behind.

    Args:
        workspace: the workspace.
        form: format of the data set.
        source: the data set.
        name: name of the suite.
        limit: maximum number of cases.
        further: additional files of the data set, for formats that need them.
        columns: the columns to read, for formats without fixed column names.

    Raises:
        UsageError: the format is unknown, or the name belongs to a suite that was not imported.
        InputError: the source does not have that format.
    """
    foreign, importer = load_importer(form)
    folder = workspace.home.imported_suites / name
    _check_suite_name(workspace, name, folder)
    for path in (source, *further):
        if not path.exists():
            raise UsageError(f"no file {path}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _aside(folder, source) as (made, known):
        options: dict[str, Json] = {}
        if foreign.maps_columns:
            raws, options = cast(Any, importer)(source, limit, columns.by_field, columns.answer_form)
        else:
            raws = list(importer(source, limit, further, made) if foreign.further else importer(source, limit))
        if not raws:
            raise InputError([Problem(str(source), None, "", "has no case; nothing was imported")])
        known.cases = raws
        known.take_origins()
        _write_cases(made, raws)
        notes = import_notes(made)
        described = "; ".join([f"imported from {source.name} ({form})", *notes])
        _write_header(made, foreign.track, options | take_import_options(made), described)
        if (folder / OVERRIDES_FILE).exists():  # people's work, not part of the import
            shutil.copy2(folder / OVERRIDES_FILE, made / OVERRIDES_FILE)
        suite = read_header(made)
        read = read_suite(suite)
        if read.problems:
            raise InputError(read.problems)
        cases = read.cases
        wrong = {case.id: suite.track().check_gold(case) for case in cases}
        problems = [f"{turn.id}: {why}" for found in wrong.values() for turn, why in found]
        doubts = [doubt for case in cases if not wrong[case.id] for doubt in doubts_of(suite.track(), case)]
        doubted = tuple(f"{doubt.turn_id}: {doubt.evidence}" for doubt in doubts if doubt.linted)
        if foreign.leaves_out_wrong_gold and problems:
            cases = tuple(case for case in cases if not wrong[case.id])
            _leave_out(made, raws, wrong)
        if (folder / REVIEWS_FOLDER).exists():  # likewise; copied last, since somebody may be reviewing
            shutil.copytree(folder / REVIEWS_FOLDER, made / REVIEWS_FOLDER)
        if folder.exists():
            folder.rename(made.parent / "before")
        made.rename(folder)
    turns = sum(len(case.turns) for case in cases)
    return ImportedSuite(
        folder, len(cases), turns, tuple(problems), foreign.leaves_out_wrong_gold, tuple(notes), doubted
    )


@contextmanager
def _aside(folder: Path, source: Path) -> Iterator[tuple[Path, UsersFiles]]:
    """Yields a temporary folder of the same name, since a suite's name is that of its folder."""
    aside = Path(tempfile.mkdtemp(prefix=".importing-", dir=folder.parent))
    try:
        made = aside / folder.name
        made.mkdir()
        known = UsersFiles(made, CASES_FILE, source)
        with known.named():
            yield made, known
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def import_at_arms_length(
    form: str, source: Path, name: str, limit: int | None, further: Sequence[Path], columns: Columns = NO_COLUMNS
) -> ImportedSuite:
    """Runs `import_suite` in a child process, since a foreign file may crash its parser.

    Raises:
        InputError: as for `import_suite`, or reading a file crashed the child.
        EvalError: as for `import_suite`.
    """
    given: list[Json] = [str(path) for path in further]
    mapped: list[Json] = [dict(columns.by_field), columns.answer_form]
    told = at_arms_length(_import_there, [form, str(source), name, limit, given, *mapped], [source, *further])
    return _imported.validate_python(told)


def _import_there(
    form: str,
    source: str,
    name: str,
    limit: int | None,
    further: list[str],
    by_field: dict[str, str],
    answer: str | None,
) -> Json:
    paths = [Path(path) for path in further]
    columns = Columns(by_field, answer)
    made = import_suite(Workspace(find_home()), form, Path(source), name, limit, paths, columns)
    found: Json = _imported.dump_python(made, mode="json")
    return found


def _write_header(made: Path, track: str, options: dict[str, Json], description: str) -> None:
    header: dict[str, Json] = {"name": made.name, "version": "1", "track": track, "cases": CASES_FILE}
    if options:
        header["options"] = options
    header["description"] = without_surrogates(description)  # the name of a file need not be UTF-8
    (made / SUITE_FILE).write_text(yaml.safe_dump(header, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _leave_out(
    made: Path, raws: Sequence[Mapping[str, Json]], wrong: Mapping[str, Sequence[tuple[Turn[Any], str]]]
) -> None:
    """Takes the cases whose gold does not hold out of the suite, and notes them. Raises InputError if none is left."""
    if all(wrong.values()):
        turn, why = next(iter(wrong.values()))[0]
        told = f"no case is left, since no gold holds, e.g. {turn.id}: {why}; nothing was imported"
        raise InputError([Problem(f"{made.name}/{CASES_FILE}", None, "", told)])
    _write_cases(made, [raw for raw in raws if not wrong[str(raw["id"])]])
    first = ((name, *found[0]) for name, found in wrong.items() if found)
    write_left_out(made, [LeftOutAtImport(case_id=name, why=f"{turn.id}: {why}") for name, turn, why in first])


def _write_cases(folder: Path, raws: Sequence[Mapping[str, Json]]) -> None:
    with (folder / CASES_FILE).open("w") as file:
        file.writelines(canonical_json(raw) + "\n" for raw in raws)


def _check_suite_name(workspace: Workspace, name: str, folder: Path) -> None:
    try:
        SuiteFile(name=name, version="1", track="", cases="")
    except ValidationError as error:
        raise UsageError(
            f"'{name}' is not a valid suite name: use lower-case letters, digits and '_', beginning with a letter"
        ) from error
    if name in workspace.suites and workspace.suites[name].folder != folder:
        raise UsageError(f"there is a suite '{name}' at {workspace.suites[name].folder} already; give another --suite")
