"""Finds suites on disk and reads `suite.yaml`."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eval_pipeline.core.covering.suite_prompts import SuitePrompt
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.ids import files_hash
from eval_pipeline.core.model import Json, Suite
from eval_pipeline.core.reading.complaints import complaints
from eval_pipeline.core.reading.entries import FileEntry, only_entry, problem_at
from eval_pipeline.core.reading.foreign import why_unread
from eval_pipeline.suites.files import found_files
from eval_pipeline.suites.prompts import prompt_files, read_prompts
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.registry import ALL_TRACKS, known_tracks, lacks, load_track, own_tracks
from eval_pipeline.tracks.scored.suite_metrics import with_metrics

SUITE_FILE = "suite.yaml"
OVERRIDES_FILE = "gold_overrides.yaml"
"""File beside `suite.yaml`; it contains no cases."""
LEFT_OUT_FILE = "left_out.jsonl"
"""File of an imported suite: cases that the importer left out, with the reasons."""
COPIED_FROM = ".copied_from"
"""File in the copy of a suite that was imported into a bucket; what people add to a copy would be lost."""
REVIEWS_FOLDER = "reviews"
"""Folder of people's reviews of answers. It does not belong to the suite: reviews must not change its hash."""


IMPORTED_FROM = "imported from "
"""How the description of an imported suite begins."""


class SuiteFile(BaseModel):
    """The contents of `suite.yaml`.

    Attributes:
        cases: glob patterns below the folder, for files in the formats of `core.entries`.
        columns: for tables among them, the column of each field, e.g. `turns.0.question: Frage`; where left out,
            columns are named like fields.
        gold_version: the authors' name of the gold's edition; defaults to `version`.
        metrics: metrics of installed packages to score turns with, beside all metrics of the track.
        prompts: by name; with those of files in the folder `prompts` once the header is read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)
    version: str
    track: str
    description: str = ""
    licence: str = ""
    cases: str | list[str]
    columns: dict[str, str] = Field(default_factory=dict)
    metrics: list[str] = Field(default_factory=list)
    options: dict[str, Json] = Field(default_factory=dict)
    gold_version: str | None = None
    prompts: dict[str, SuitePrompt] = Field(default_factory=dict)

    def patterns(self) -> list[str]:
        """Returns the case patterns as a list."""
        return [self.cases] if isinstance(self.cases, str) else self.cases


@dataclass(frozen=True, slots=True)
class SuiteSource:
    """A suite found on disk. A broken one still has a name, so that only its own assets fail.

    Attributes:
        header: None if `suite.yaml` is wrong; see `problems`.
    """

    name: str
    folder: Path
    header: SuiteFile | None
    problems: tuple[Problem, ...] = ()

    def require(self) -> SuiteFile:
        """Returns the header. Raises InputError if `suite.yaml` is wrong."""
        if self.header is None:
            raise InputError(self.problems)
        return self.header

    def track(self) -> Track:
        """Returns the suite's track with the abilities and metrics that the suite asks for.

        Only this method decides which those are.
        """
        header = self.require()
        return with_metrics(load_track(header.track).for_suite(header.options), header.metrics)


def refuse_copy(suite: Path) -> None:
    """Raises UsageError if a suite's folder is a copy, so that nothing of people's work may be put into it."""
    if (suite / COPIED_FROM).exists():
        raise UsageError(
            f"the suite '{suite.name}' was imported into a bucket, and {suite} is a copy of it, in which reviews and "
            "decisions would be lost: import it into a home in a folder, and put it into EVAL_DATA of all hosts"
        )


def find_suites(folders: Sequence[Path]) -> dict[str, SuiteSource]:
    """Finds every suite below the folders, by name; a suite's name is that of its folder.

    A folder whose name is not valid for a suite (`my-pages`) gives a broken suite under a name that is valid for
    assets.
    """
    found: dict[str, SuiteSource] = {}
    paths = [path for folder in folders for path in sorted(_headers(folder))]
    names = {path.parent.name for path in paths}
    for path in paths:
        source = read_header(path.parent)
        # With an invalid asset name, Dagster would reject the definitions of all suites.
        possible = re.sub(r"[^A-Za-z0-9_]", "_", source.name)
        while possible != source.name and possible in names:
            possible += "_"
        names.add(possible)
        source = replace(source, name=possible)
        if source.name in found:
            other = found[source.name].folder
            told = f"a suite named '{source.name}' is also at {other}; {_way_out(path.parent)}"
            problem = Problem(str(path), 1, "name", told)
            source = SuiteSource(source.name, source.folder, None, (problem,))
        found[source.name] = source
    return found


def _way_out(folder: Path) -> str:
    try:
        is_imported = is_import(folder)
    except InputError:
        is_imported = False
    other = "give one of them another name: its folder's, and `name` in suite.yaml"
    return f"delete {folder}, which `import` wrote, or {other}" if is_imported else other


def is_import(folder: Path) -> bool:
    """Whether a suite was written by `import`, which may then replace it. Raises InputError if its header is wrong."""
    return read_header(folder).require().description.startswith(IMPORTED_FROM)


def _headers(folder: Path) -> list[Path]:
    """Returns the paths of all `suite.yaml` files below a folder, including missing ones that were evidently intended.

    Dangling links to the file or its folder count, and so does an almost right name (`suite.yml`): a suite that its
    authors believe to exist must not be missing silently.
    """
    below = list(folder.iterdir()) if folder.is_dir() else []
    return [inside / SUITE_FILE for inside in below if os.path.lexists(inside / SUITE_FILE) or _meant_as_suite(inside)]


def _meant_as_suite(folder: Path) -> bool:
    """Whether a folder without `suite.yaml` was intended as a suite, or cannot be read to find out."""
    try:
        return (folder.is_symlink() and not folder.exists()) or _misnamed(folder) is not None
    except PermissionError:
        return True


def _misnamed(folder: Path) -> str | None:
    """Returns the name of a file that was intended to be `suite.yaml`, if any."""
    stem, endings = Path(SUITE_FILE).stem, (".yaml", ".yml")
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return next((name for name in names if name.lower() in {stem + ending for ending in endings}), None)


def _missing(folder: Path) -> str:
    """Returns why a suite's `suite.yaml` does not exist."""
    path = folder / SUITE_FILE
    link = next((link for link in (folder, path) if link.is_symlink() and not link.exists()), None)
    if link is not None:
        return f"{link} is a link to {os.readlink(link)}, which is not there"
    misnamed = _misnamed(folder)
    return "no such file" + (f"; {misnamed} is there: rename it to {SUITE_FILE}" if misnamed else "")


def read_header(folder: Path) -> SuiteSource:
    """Reads only `suite.yaml`; problems are stored in the result."""
    path = folder / SUITE_FILE
    try:
        entry = only_entry(path)
        header = SuiteFile.model_validate(entry.raw)
        if header.name != folder.name:
            raise InputError(
                [problem_at(entry, ("name",), f"'{header.name}' is not the folder's name '{folder.name}'")]
            )
        _refuse_unknown(entry, header)
        prompts = read_prompts(entry, header.prompts, prompt_files(folder, header.patterns()))
    except ValidationError as error:
        return SuiteSource(
            folder.name, folder, None, tuple(problem_at(entry, *found) for found in complaints(error, SuiteFile))
        )
    except InputError as error:
        return SuiteSource(folder.name, folder, None, error.problems)
    except OSError as error:
        why = _missing(folder) if isinstance(error, FileNotFoundError) else f"cannot be read: {why_unread(error)}"
        return SuiteSource(folder.name, folder, None, (Problem(str(path), None, "", why),))
    return SuiteSource(header.name, folder, header.model_copy(update={"prompts": prompts}))


def at_their_lines(source: SuiteSource, error: InputError) -> InputError:
    """Returns an error in which problems with the suite's options, which tracks read, have their lines."""
    entry = only_entry(source.folder / SUITE_FILE)
    found = []
    for problem in error.problems:
        parts: list[int | str] = [int(part) if part.isdigit() else part for part in problem.field.split(".")]
        is_option = problem.line is None and parts[0] == "options"
        found.append(replace(problem, line=entry.line_of(parts)) if is_option else problem)
    return InputError(found)


def _refuse_unknown(entry: FileEntry, header: SuiteFile) -> None:
    """Raises InputError if the track or a metric is unknown, or lacks what it needs."""
    if header.track not in ALL_TRACKS:
        told = f"unknown track '{header.track}'; known: {known_tracks()}"
        raise InputError([problem_at(entry, ("track",), told)])
    if why := lacks(header.track):
        raise InputError([problem_at(entry, ("track",), why)])
    if header.track in own_tracks() and not header.metrics:
        return  # our own tracks are not loaded before they are used
    wanted: list[tuple[tuple[str | int, ...], list[str]]] = [(("track",), [])]
    wanted += [(("metrics", index), [name]) for index, name in enumerate(header.metrics)]
    problems = []
    for place, names in wanted:
        try:
            with_metrics(load_track(header.track), names)
        except UsageError as error:
            problems.append(problem_at(entry, place, str(error)))
    if problems:
        raise InputError(problems)


def suite_files(source: SuiteSource) -> list[tuple[str, Path]]:
    """Returns every file of the suite as (name below the folder, path), sorted; reviews are left out."""
    found = (file for file in found_files(source.folder) if not file.wrong and file.parts[0] != REVIEWS_FOLDER)
    return sorted((file.name, file.path) for file in found)


def load_suite(source: SuiteSource) -> Suite:
    """Returns the suite with the hash of all its files. Raises InputError if `suite.yaml` is wrong."""
    header = source.require()
    return Suite(
        name=header.name,
        version=header.version,
        track=header.track,
        content_hash=files_hash(suite_files(source)),
        description=header.description,
        options=header.options,
    )
