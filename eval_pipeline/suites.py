"""Suites on disk: finding them, reading `suite.yaml` and cases, and saying where a file is wrong.

A suite is a folder with a `suite.yaml` and the files it names; no code belongs to it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from eval_pipeline.core.complaints import complaints, dotted
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.ids import files_hash, json_text
from eval_pipeline.core.model import Case, Json, Suite
from eval_pipeline.tracks.base import CaseError, Track
from eval_pipeline.tracks.capabilities import Shares
from eval_pipeline.tracks.registry import ALL_TRACKS, TRACKS, load_track
from eval_pipeline.tracks.suite_metrics import with_metrics

SUITE_FILE = "suite.yaml"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class SuiteFile(BaseModel):
    """`suite.yaml`.

    Attributes:
        cases: glob patterns below the folder, of `.jsonl`, `.json`, `.yaml` or `.yml` files.
        metrics: metrics of installed packages that its turns are scored with, beside all of the track.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)
    version: str
    track: str
    description: str = ""
    licence: str = ""
    cases: str | list[str]
    metrics: list[str] = Field(default_factory=list)
    options: dict[str, Json] = Field(default_factory=dict)

    def patterns(self) -> list[str]:
        """The case patterns as a list."""
        return [self.cases] if isinstance(self.cases, str) else self.cases


@dataclass(frozen=True, slots=True)
class SuiteSource:
    """A suite as found on disk, read or not: a broken one still has a name, so that only its own assets fail.

    Attributes:
        header: None where `suite.yaml` is wrong; `problems` says how.
    """

    name: str
    folder: Path
    header: SuiteFile | None
    problems: tuple[Problem, ...] = ()

    def require(self) -> SuiteFile:
        """The header. Raises InputError where `suite.yaml` is wrong."""
        if self.header is None:
            raise InputError(self.problems)
        return self.header

    def track(self) -> Track:
        """The suite's track, with the metrics that the suite asks for: the one place that says which a suite has."""
        header = self.require()
        return with_metrics(load_track(header.track), header.metrics)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One case as it stands in a file, with the lines of its fields where the format knows them."""

    raw: Any
    file: str
    line: int
    node: yaml.Node | None = None


def find_suites(folders: Sequence[Path]) -> dict[str, SuiteSource]:
    """Every suite below the folders by name; the name of a suite is that of its folder.

    A folder with a name that no suite can have (`my-pages`) is a broken suite, under one that assets can have.
    """
    found: dict[str, SuiteSource] = {}
    paths = [path for folder in folders for path in sorted(folder.glob(f"*/{SUITE_FILE}"))]
    names = {path.parent.name for path in paths}
    for path in paths:
        source = read_header(path.parent)
        # Dagster refuses the definitions of all suites for an asset with such a name.
        possible = re.sub(r"[^A-Za-z0-9_]", "_", source.name)
        while possible != source.name and possible in names:
            possible += "_"
        names.add(possible)
        source = replace(source, name=possible)
        if source.name in found:
            other = found[source.name].folder
            problem = Problem(str(path), 1, "name", f"a suite named '{source.name}' is also at {other}")
            source = SuiteSource(source.name, source.folder, None, (problem,))
        found[source.name] = source
    return found


def read_header(folder: Path) -> SuiteSource:
    """Reads `suite.yaml` alone; what is wrong with it is kept on the result."""
    path = folder / SUITE_FILE
    try:
        entry = _header_entry(path)
        header = SuiteFile.model_validate(entry.raw)
        if header.name != folder.name:
            raise InputError([_at(entry, ("name",), f"'{header.name}' is not the folder's name '{folder.name}'")])
        _refuse_unknown(entry, header)
    except ValidationError as error:
        return SuiteSource(
            folder.name, folder, None, tuple(_at(entry, *found) for found in complaints(error, SuiteFile))
        )
    except InputError as error:
        return SuiteSource(folder.name, folder, None, error.problems)
    except (OSError, UnicodeDecodeError) as error:
        return SuiteSource(folder.name, folder, None, (Problem(str(path), None, "", f"cannot be read: {error}"),))
    return SuiteSource(header.name, folder, header)


def _refuse_unknown(entry: _Entry, header: SuiteFile) -> None:
    """Raises InputError for a track or a metric that nobody provides, or that cannot be used."""
    if header.track not in ALL_TRACKS:
        known = ", ".join(ALL_TRACKS.names())
        raise InputError([_at(entry, ("track",), f"unknown track '{header.track}'; known: {known}")])
    if header.track in TRACKS and not header.metrics:
        return  # a shipped one is not loaded before it is used
    wanted: list[tuple[tuple[str | int, ...], list[str]]] = [(("track",), [])]
    wanted += [(("metrics", index), [name]) for index, name in enumerate(header.metrics)]
    problems = []
    for place, names in wanted:
        try:
            with_metrics(load_track(header.track), names)
        except UsageError as error:
            problems.append(_at(entry, place, str(error)))
    if problems:
        raise InputError(problems)


def _header_entry(path: Path) -> _Entry:
    """What `suite.yaml` holds. Raises InputError where that is not one entry."""
    entries = list(_yaml_entries(path.read_text(), str(path)))
    if len(entries) != 1:
        raise InputError([Problem(str(path), 1, "", "expected one mapping with name, version, track and cases")])
    return entries[0]


def suite_files(source: SuiteSource) -> list[tuple[str, Path]]:
    """Every file of the suite as (name below the folder, path), in order."""
    paths = [path for path in source.folder.rglob("*") if path.is_file()]
    return sorted((path.relative_to(source.folder).as_posix(), path) for path in paths)


def load_suite(source: SuiteSource) -> Suite:
    """The suite with the hash of all its files. Raises InputError where `suite.yaml` is wrong."""
    header = source.require()
    return Suite(
        name=header.name,
        version=header.version,
        track=header.track,
        content_hash=files_hash(suite_files(source)),
        description=header.description,
        options=header.options,
    )


@dataclass(frozen=True, slots=True)
class SuiteCases:
    """What the files of a suite hold.

    Attributes:
        cases: in the order of files and lines.
        contents: each of them in the suite's file format, as JSON: what the record keeps.
        problems: why other cases could not be read; only of tracks that keep the good ones.
        shared: what the cases have in common; the track's own type.
    """

    cases: tuple[Case, ...]
    contents: tuple[str, ...]
    problems: tuple[Problem, ...]
    shared: Any


def read_cases(source: SuiteSource) -> list[Case]:
    """The cases of the suite that can be read, as `read_suite` does."""
    return list(read_suite(source).cases)


def read_suite(source: SuiteSource) -> SuiteCases:
    """Every case of the suite, and what they share.

    Raises:
        InputError: with every problem found in any file: file, line, field and what was expected. Where the track keeps
            the good cases, only if there are none, or if what they share is wrong.
    """
    header, track = source.require(), source.track()
    shared = track.read_shared(source.folder, header.options) if isinstance(track, Shares) else None
    cases: list[Case] = []
    contents: list[str] = []
    problems: list[Problem] = []
    first: dict[str, str] = {}
    for path in _case_files(source, header):
        for entry in _read_entries(path, path.relative_to(source.folder.parent).as_posix()):
            if isinstance(entry, Problem):
                problems.append(entry)
                continue
            case, wrong = _read_case(track, header.name, entry, shared)
            problems += wrong
            if case is None:
                continue
            if case.id in first:
                problems.append(_at(entry, ("id",), f"duplicate id '{case.id}', first used at {first[case.id]}"))
                continue
            first[case.id] = f"{entry.file}:{entry.line}"
            cases.append(case)
            contents.append(json_text(entry.raw))
    if problems and not (cases and isinstance(track, Shares) and track.keeps_good_cases):
        raise InputError(problems)
    return SuiteCases(tuple(cases), tuple(contents), tuple(problems), shared)


def _case_files(source: SuiteSource, header: SuiteFile) -> list[Path]:
    """The files that the patterns name, in their order. Raises InputError for every pattern that names none."""
    files: list[Path] = []
    unmatched: list[Problem] = []
    for index, pattern in enumerate(header.patterns()):
        matched = _matched(source.folder, pattern)
        if not matched:
            place = ("cases",) if isinstance(header.cases, str) else ("cases", index)
            told = f"no file matches '{pattern}'; expected a pattern that matches a file below {source.folder}"
            unmatched.append(_at(_header_entry(source.folder / SUITE_FILE), place, told))
        files += matched
    if unmatched:
        raise InputError(unmatched)
    return list(dict.fromkeys(files))


def _matched(folder: Path, pattern: str) -> list[Path]:
    try:
        found = [path for path in folder.glob(pattern) if path.is_file()]
    except (ValueError, NotImplementedError):  # an empty or an absolute pattern
        return []
    return sorted(path for path in found if path != folder / SUITE_FILE)


def _read_entries(path: Path, name: str) -> Iterator[_Entry | Problem]:
    """The entries of a file, and what is wrong with it in the place where it is wrong."""
    try:
        if path.suffix == ".jsonl":
            with path.open("rb") as file:
                yield from _jsonl_entries(file, name)
        elif path.suffix in {".yaml", ".yml", ".json"}:
            # JSON is YAML here, for the sake of line numbers. Of a file that breaks off nothing is taken.
            yield from list(_yaml_entries(path.read_text(encoding="utf-8"), name))
        else:
            expected = "expected .jsonl, .json, .yaml or .yml"
            yield Problem(name, None, "", f"cannot read cases from '{path.suffix}' files; {expected}")
    except InputError as error:
        yield from error.problems
    except (OSError, UnicodeDecodeError) as error:
        yield Problem(name, None, "", f"cannot be read as UTF-8 text: {error}")


def _jsonl_entries(lines: Iterable[bytes], name: str) -> Iterator[_Entry | Problem]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _Entry(_decoded(line), name, number)
        except UnicodeDecodeError as error:
            yield Problem(name, number, "", f"cannot be read as UTF-8 text: {error}")
        except (json.JSONDecodeError, RecursionError) as error:
            yield Problem(name, number, "", f"not a JSON object on one line: {error}")


def _decoded(line: bytes) -> Json:
    """The value of a line. What pydantic-core, which takes half the time, refuses, `json` reads or says why not."""
    try:
        return from_json(line)
    except ValueError:
        return json.loads(line.decode())


def _yaml_entries(text: str, name: str) -> Iterator[_Entry]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node: Any = loader.get_node()
            value = loader.construct_document(node)
            items = zip(value, node.value, strict=True) if isinstance(value, list) else [(value, node)]
            for raw, item in items:
                yield _Entry(raw, name, item.start_mark.line + 1, item)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        line = mark.line + 1 if mark else None
        raise InputError([Problem(name, line, "", f"does not parse: {message}")]) from error
    finally:
        loader.dispose()


def _read_case(track: Track, suite: str, entry: _Entry, shared: Any) -> tuple[Case | None, list[Problem]]:
    if not isinstance(entry.raw, Mapping):
        found = type(entry.raw).__name__
        return None, [Problem(entry.file, entry.line, "", f"expected a mapping that holds a case, found {found}")]
    try:
        return track.read_case(entry.raw, suite, entry.file, entry.line, shared), []
    except CaseError as error:
        return None, [_at(entry, place, message) for place, message in error.problems]
    except ValueError as error:
        return None, [Problem(entry.file, entry.line, "", str(error))]


def _at(entry: _Entry, location: Sequence[int | str], message: str) -> Problem:
    return Problem(entry.file, _line_of(entry, location), dotted(location), message)


def _line_of(entry: _Entry, location: Sequence[int | str]) -> int:
    """The line of a field in a YAML entry, or of the nearest thing around it."""
    node, line = entry.node, entry.line
    for part in location:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            pair = (node.value[part], node.value[part])
        else:
            pair = None
        if pair is None:
            break
        line, node = pair[0].start_mark.line + 1, pair[1]
    return line
