"""Bringing in foreign data sets as suites. Recorded predictions: `recorded/`."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import (
    TypeAdapter,
    ValidationError,
)

from eval_pipeline.core.arms_length import at_arms_length
from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json
from eval_pipeline.suites import OVERRIDES_FILE, REVIEWS_FOLDER, SUITE_FILE, SuiteFile, read_header, read_suite
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
        if (folder / REVIEWS_FOLDER).exists():  # this too; last, since somebody may be reviewing
            shutil.copytree(folder / REVIEWS_FOLDER, made / REVIEWS_FOLDER)
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
