"""Imports foreign data sets as suites. For recorded predictions, see `recorded/`."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import (
    TypeAdapter,
    ValidationError,
)

from eval_pipeline.core.errors import EndedEarlyError, InputError, Problem, UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import canonical_json, without_surrogates
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.arms_length import at_arms_length
from eval_pipeline.operations.imports.import_golds import NOT_CHECKED, CheckedGold, check_golds
from eval_pipeline.operations.suite_work.packages import OPTION as PACKAGES
from eval_pipeline.sandbox.layers import MissingPackagesError
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import (
    IMPORTED_FROM,
    OVERRIDES_FILE,
    REVIEWS_FOLDER,
    SUITE_FILE,
    SuiteFile,
    is_import,
    read_header,
)
from eval_pipeline.suites.left_out import LeftOutAtImport, write_left_out
from eval_pipeline.tracks.capabilities import Audits
from eval_pipeline.tracks.importing import (
    UsersFiles,
    add_import_notes,
    import_notes,
    take_import_options,
    take_left_out,
)
from eval_pipeline.tracks.registry import load_importer
from eval_pipeline.workspace.noting.commands import Command, finish_first
from eval_pipeline.workspace.noting.noted import Entry
from eval_pipeline.workspace.workspace import Progress, Workspace

CASES_FILE = "cases.jsonl"
_ENDED = "interrupted when {:,} of {:,} golds were checked; nothing was imported, and a suite of that name is as it was"


@dataclass(frozen=True, slots=True)
class ImportedSuite:
    """The result of importing a data set.

    Attributes:
        wrong_gold: turns with invalid gold, each with the reason.
        left_out: whether their cases were left out of the suite.
        notes: what the importer changed or made up, in sentences.
        doubted: turns whose gold the lint doubts, each with its findings.
        not_checked: how many cases are not in the suite because the import was ended before their gold was checked.
    """

    folder: Path
    cases: int
    turns: int
    wrong_gold: tuple[str, ...]
    left_out: bool = False
    notes: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    not_checked: int = 0


_imported = TypeAdapter(ImportedSuite)


@dataclass(frozen=True, slots=True)
class ImportedColumns:
    """Columns of a table that becomes a suite.

    Attributes:
        by_field: the column for each field of a case.
        answer_form: form of the answers; guessed if None.
        origin: what the table was made from, if it is not the user's own file.
        labels: the labels that an answer may have, beside those that are right somewhere.
        metric: what compares answers that are texts; empty for the track's default.
    """

    by_field: Mapping[str, str] = field(default_factory=dict)
    answer_form: str | None = None
    origin: str = ""
    labels: tuple[str, ...] = ()
    metric: str = ""


NO_COLUMNS = ImportedColumns()


def import_suite(
    workspace: Workspace,
    form: str,
    source: Path,
    name: str,
    limit: int | None = None,
    further: Sequence[Path] = (),
    columns: ImportedColumns = NO_COLUMNS,
    *,
    into_data: bool = False,
) -> ImportedSuite:
    """Converts a foreign data set to a suite; on an error, nothing is left behind.

    Args:
        workspace: the workspace.
        form: format of the data set.
        source: the data set.
        name: name of the suite.
        limit: maximum number of cases.
        further: additional files of the data set, for formats that need them.
        columns: the columns to read, for formats without fixed column names.
        into_data: whether the suite becomes one of the project's own (`data/suites`) and not of the home.

    Raises:
        UsageError: the format is unknown, or the name belongs to a suite that was not imported there.
        InputError: the source does not have that format.
        EndedEarlyError: the import was ended before any gold was checked, or would have replaced a suite by a part.
    """
    finish_first(workspace.home, "import", _finish)
    foreign, importer = load_importer(form)
    folder = (workspace.home.data / "suites" if into_data else workspace.home.imported_suites) / name
    _check_suite_name(workspace, name, folder)
    for path in (source, *further):
        if not path.exists():
            raise UsageError(f"no file {path}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _aside(folder, source) as (made, known):
        options: dict[str, Json] = {}
        if foreign.maps_columns:
            said: list[str] = []
            told = {"labels": columns.labels, "metric": columns.metric}
            given = {name: value for name, value in told.items() if value}
            raws, options = cast(Any, importer)(
                source,
                limit,
                columns.by_field,
                columns.answer_form,
                said.append,
                **given,
            )
            add_import_notes(made, [sentence.removeprefix(f"{source}: ") for sentence in said])
        else:
            own = (further, made) if foreign.further else (made,) if foreign.takes_folder else ()
            raws = list(importer(source, limit, *own))
        if not raws:
            raise InputError([Problem(str(source), None, "", "has no case; nothing was imported")])
        known.cases = raws
        known.take_origins()
        _write_cases(made, raws)
        notes = import_notes(made)
        described = "; ".join([f"{IMPORTED_FROM}{columns.origin or f'{source.name} ({form})'}", *notes])
        options |= take_import_options(made) | _kept_packages(folder, made)
        _write_header(made, foreign.track, options, described)
        if (folder / OVERRIDES_FILE).exists():  # people's work, not part of the import
            shutil.copy2(folder / OVERRIDES_FILE, made / OVERRIDES_FILE)
        imported = _checked(made, folder, raws, tuple(notes), leaves_out=foreign.leaves_out_wrong_gold)
        if (folder / REVIEWS_FOLDER).exists():  # likewise; copied last, since somebody may be reviewing
            shutil.copytree(folder / REVIEWS_FOLDER, made / REVIEWS_FOLDER)
        command = Command(workspace.home, "import")
        command.note({"due": "import", "made": str(made), "folder": str(folder)})
        _exchange(made, folder)
        command.settle()
    return imported


def finish(_: Workspace, due: Sequence[Entry], __: Progress, ___: Callable[..., object]) -> None:
    """Completes an import that was killed while it put the suite, which is whole, in the place of the former one."""
    _finish(due)


def _finish(due: Sequence[Entry]) -> None:
    for made, folder in ((Path(entry["made"]), Path(entry["folder"])) for entry in due):
        if made.exists():
            _exchange(made, folder)
        shutil.rmtree(made.parent, ignore_errors=True)


def _exchange(made: Path, folder: Path) -> None:
    if folder.exists():
        folder.rename(made.parent / "before")
    made.rename(folder)


def _checked(
    made: Path, folder: Path, raws: Sequence[Mapping[str, Json]], notes: tuple[str, ...], *, leaves_out: bool
) -> ImportedSuite:
    """Checks the gold of a suite that was made, and leaves out cases without valid gold if that is wanted.

    Args:
        made: where the suite is.
        folder: where it will be.
        raws: its cases.
        notes: what the importer noted.
        leaves_out: whether it may have cases with invalid gold, which are left out.
    """
    unusable = {name: (f"{made.name}/{name}: {why}",) for name, why in take_left_out(made).items()}
    unread = unusable | (_leave_out_unreadable(made, raws) if leaves_out else {})
    suite = read_header(made)
    read = read_suite(suite)
    if read.problems:
        raise InputError(read.problems)
    try:
        golds = check_golds(suite.track(), read.cases, may_end=leaves_out)
    except MissingPackagesError as error:
        golds = {case.id: CheckedGold(case.id, ()) for case in read.cases}
        notes = (*notes, f"no gold is checked yet: {error}, and importing again then checks them")
    wrong = unread | {name: gold.wrong for name, gold in golds.items() if gold.wrong}
    ended = {case.id: (NOT_CHECKED,) for case in read.cases if case.id not in golds}
    if ended and (folder.exists() or not golds):
        raise EndedEarlyError(_ENDED.format(len(golds), len(read.cases)))
    left_out = wrong | ended if leaves_out else {}
    if left_out:
        _leave_out(made, raws, left_out)
    cases = [case for case in read.cases if case.id not in left_out]
    problems = tuple(why for found in wrong.values() for why in found)
    doubted = tuple(why for gold in golds.values() for why in gold.doubted)
    turns = sum(len(case.turns) for case in cases)
    return ImportedSuite(folder, len(cases), turns, problems, leaves_out, notes, doubted, len(ended))


def _leave_out_unreadable(made: Path, raws: Sequence[Mapping[str, Json]]) -> dict[str, tuple[str, ...]]:
    """Takes cases whose gold the track cannot read out of the suite's file, e.g. reference code that is no Python.

    Returns what is wrong by case. Raises an InputError if something else is wrong.
    """
    found = dict[str, tuple[str, ...]]()
    suite = read_header(made)
    track = suite.track()
    fields = track.gold_fields if isinstance(track, Audits) else ()
    try:
        problems = read_suite(suite).problems
    except InputError as error:
        problems = error.problems
    for problem in problems:
        is_case = problem.file == f"{made.name}/{CASES_FILE}" and problem.field.rpartition(".")[2] in fields
        if problem.line is None or not is_case:
            raise InputError(problems)
        name = str(raws[problem.line - 1]["id"])
        found.setdefault(name, (f"{made.name}/{name}: {problem.field}: {problem.message}",))
    if found:
        _leave_out(made, raws, found)
    return found


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
        if (aside / "before").exists() and not folder.exists():  # interrupted between two renames
            (aside / "before").rename(folder)
        shutil.rmtree(aside, ignore_errors=True)


def import_at_arms_length(
    form: str,
    source: Path,
    name: str,
    limit: int | None,
    further: Sequence[Path],
    columns: ImportedColumns = NO_COLUMNS,
    heard: Callable[[int, int], None] = lambda done, total: None,
    *,
    into_data: bool = False,
) -> ImportedSuite:
    """Runs `import_suite` in a child process, since a foreign file may crash its parser.

    `heard` gets the numbers of golds that are checked, and of all.

    Raises:
        InputError: as for `import_suite`, or reading a file crashed the child.
        EvalError: as for `import_suite`.
    """
    given: list[Json] = [str(path) for path in further]
    mapped: list[Json] = [asdict(columns), into_data]
    told = at_arms_length(_import_there, [form, str(source), name, limit, given, *mapped], [source, *further], heard)
    return _imported.validate_python(told)


def _import_there(
    form: str,
    source: str,
    name: str,
    limit: int | None,
    further: list[str],
    columns: dict[str, Any],
    into_data: bool,
) -> Json:
    paths = [Path(path) for path in further]
    told = ImportedColumns(**columns)
    made = import_suite(Workspace(find_home()), form, Path(source), name, limit, paths, told, into_data=into_data)
    found: Json = _imported.dump_python(made, mode="json")
    return found


def _kept_packages(folder: Path, made: Path) -> dict[str, Json]:
    """Takes over the list of packages that people added to the suite when it was imported before."""
    named = read_header(folder).require().options.get(PACKAGES) if (folder / SUITE_FILE).is_file() else None
    if not isinstance(named, str) or not (folder / named).is_file():
        return {}
    shutil.copy2(folder / named, made / named)
    return {PACKAGES: named}


def _write_header(made: Path, track: str, options: dict[str, Json], description: str) -> None:
    header: dict[str, Json] = {"name": made.name, "version": "1", "track": track, "cases": CASES_FILE}
    if options:
        header["options"] = options
    header["description"] = without_surrogates(description)  # the name of a file need not be UTF-8
    (made / SUITE_FILE).write_text(yaml.safe_dump(header, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _leave_out(made: Path, raws: Sequence[Mapping[str, Json]], left_out: Mapping[str, Sequence[str]]) -> None:
    """Takes cases out of the suite, and notes why. Raises InputError if none is left."""
    kept = [raw for raw in raws if str(raw["id"]) not in left_out]
    if not kept:
        told = f"no case is left, since no gold holds, e.g. {next(iter(left_out.values()))[0]}; nothing was imported"
        raise InputError([Problem(f"{made.name}/{CASES_FILE}", None, "", told)])
    _write_cases(made, kept)
    write_left_out(made, [LeftOutAtImport(case_id=name, why=why[0]) for name, why in left_out.items()])


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
    there = workspace.suites[name].folder if name in workspace.suites else folder
    if there != folder:
        is_ours = there.parent == workspace.home.data / "suites" and is_import(there)
        other = ", or replace it by --into data" if is_ours else ""
        raise UsageError(f"there is a suite '{name}' at {there} already; delete it, or give another --suite{other}")
    if folder.parent != workspace.home.imported_suites and folder.exists() and not is_import(folder):
        raise UsageError(f"{folder} was not written by `import`, which replaces nobody's work; give another --suite")
