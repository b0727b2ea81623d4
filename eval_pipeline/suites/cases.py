"""Reads the cases in the files of a suite, and reports where a file is wrong."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Case
from eval_pipeline.suites.entries import Entry, problem_at, read_entries
from eval_pipeline.suites.headers import (
    LEFT_OUT_FILE,
    OVERRIDES_FILE,
    REVIEWS_FOLDER,
    SUITE_FILE,
    SuiteFile,
    SuiteSource,
    at_their_lines,
    only_entry,
)
from eval_pipeline.suites.left_out import LeftOutCase, read_left_out, unread_entry, wrong_case
from eval_pipeline.suites.overrides import Override, ScoredGold, read_overrides
from eval_pipeline.suites.rehearsal import rehearse
from eval_pipeline.tracks.base import CaseError, Track
from eval_pipeline.tracks.capabilities import Shares


@dataclass(frozen=True, slots=True)
class SuiteCases:
    """The contents of a suite's files.

    Attributes:
        cases: in the order of files and lines.
        contents: each case in the suite's file format, as JSON, for the record.
        problems: why other cases could not be read; only for tracks that keep the good ones.
        left_out: these cases, and those that an importer left out.
        empty: names of files without a case.
        shared: what the cases have in common; its type belongs to the track.
        overrides: people's overrides of the gold (docs/gold.md).
        scored: the gold used for scoring, with overrides applied.
    """

    cases: tuple[Case, ...]
    contents: tuple[str, ...]
    problems: tuple[Problem, ...]
    left_out: tuple[LeftOutCase, ...]
    empty: tuple[str, ...]
    shared: Any
    overrides: tuple[Override, ...]
    scored: ScoredGold


def read_cases(source: SuiteSource) -> list[Case]:
    """Returns the readable cases of the suite, see `read_suite`."""
    return list(read_suite(source).cases)


def read_suite(source: SuiteSource) -> SuiteCases:
    """Reads every case of the suite, and what the cases share.

    Raises:
        InputError: lists every problem in any file: file, line, field and what was expected. If the track keeps good
            cases, it is raised only if there are none, or if what they share is wrong.
    """
    reading = SuiteReading(source)
    found = list(reading)
    reading.refuse_wrong()
    cases, contents = (tuple(case for case, _ in found), tuple(content for _, content in found))
    overrides, scored = reading.overrides(cases, contents)
    left_out = (*reading.left_out, *read_left_out(source.folder))
    problems, empty = tuple(reading.problems), tuple(reading.empty)
    return SuiteCases(cases, contents, problems, left_out, empty, reading.shared, overrides, scored)


class SuiteReading:
    """Reads the cases of a suite one after the other, each with its content as JSON; iterate over it once.

    Attributes:
        problems, left_out, empty: as in `SuiteCases`, of what was read so far.
        shared: what the cases have in common.
    """

    def __init__(self, source: SuiteSource) -> None:
        """Reads what the cases share. Raises InputError if that is wrong."""
        self._source, self._header, self._track = source, source.require(), source.track()
        self._is_any_good = False
        self.shared: Any = None
        self.problems: list[Problem] = []
        self.left_out: list[LeftOutCase] = []
        self.empty: list[str] = []
        if isinstance(self._track, Shares):
            try:
                if not self._track.reads_in_sandbox:
                    rehearse(source)
                self.shared = self._track.read_shared(source.folder, self._header.options)
            except InputError as error:
                raise at_their_lines(source, error) from error

    def __iter__(self) -> Iterator[tuple[Case, str]]:
        first: dict[str, str] = {}
        for path in _case_files(self._source, self._header):
            name = path.relative_to(self._source.folder.parent).as_posix()
            count = 0
            for entry in read_entries(path, name):
                count += 1
                if isinstance(entry, Problem):
                    self.problems.append(entry)
                    self.left_out.append(unread_entry(entry))
                    continue
                case, wrong = _read_case(self._track, self._header.name, entry, self.shared)
                if case is not None and case.id in first:
                    told = f"duplicate id '{case.id}', first used at {first[case.id]}"
                    case, wrong = None, [problem_at(entry, ("id",), told)]
                self.problems += wrong
                if case is None:
                    self.left_out.append(wrong_case(entry, wrong))
                    continue
                first[case.id] = f"{entry.file}:{entry.line}"
                self._is_any_good = True
                yield case, json_text(entry.raw)
            if not count:
                self.empty.append(name)

    def refuse_wrong(self) -> None:
        """Raises InputError for what is wrong, after all cases were read; see `read_suite`."""
        if self.problems and not (
            self._is_any_good and isinstance(self._track, Shares) and self._track.keeps_good_cases
        ):
            raise InputError(self.problems)

    @property
    def has_overrides(self) -> bool:
        """Whether people have overridden gold."""
        return (self._source.folder / OVERRIDES_FILE).is_file()

    def overrides(self, cases: Sequence[Case], contents: Sequence[str]) -> tuple[tuple[Override, ...], ScoredGold]:
        """Reads the overrides of the gold, given all cases. Raises InputError if they are wrong."""
        raws = {case.id: content for case, content in zip(cases, contents, strict=True)}
        return read_overrides(self._source, self._track, cases, raws, self.shared)


def _case_files(source: SuiteSource, header: SuiteFile) -> list[Path]:
    """Returns the files that the patterns match, in order. Raises InputError for patterns without a match."""
    files: list[Path] = []
    unmatched: list[Problem] = []
    for index, pattern in enumerate(header.patterns()):
        matched = _matched(source.folder, pattern)
        if not matched:
            place = ("cases",) if isinstance(header.cases, str) else ("cases", index)
            told = f"no file matches '{pattern}'; expected a pattern that matches a file below {source.folder}"
            if pattern.removeprefix("./").startswith(f"{REVIEWS_FOLDER}/"):
                told = (
                    f"the folder '{REVIEWS_FOLDER}' of a suite is for reviews of answers; move the cases to another one"
                )
            unmatched.append(problem_at(only_entry(source.folder / SUITE_FILE), place, told))
        files += matched
    if unmatched:
        raise InputError(unmatched)
    return list(dict.fromkeys(files))


def _matched(folder: Path, pattern: str) -> list[Path]:
    try:
        found = [path for path in folder.glob(pattern) if path.is_file()]
    except (ValueError, NotImplementedError):  # the pattern is empty or absolute
        return []
    others, reviews = [folder / name for name in (SUITE_FILE, OVERRIDES_FILE, LEFT_OUT_FILE)], folder / REVIEWS_FOLDER
    return sorted(path for path in found if path not in others and reviews not in path.parents)


def _read_case(track: Track, suite: str, entry: Entry, shared: Any) -> tuple[Case | None, list[Problem]]:
    if not isinstance(entry.raw, Mapping):
        found = type(entry.raw).__name__
        return None, [Problem(entry.file, entry.line, "", f"expected a mapping that holds a case, found {found}")]
    try:
        return track.read_case(entry.raw, suite, entry.file, entry.line, shared), []
    except CaseError as error:
        return None, [problem_at(entry, place, message) for place, message in error.problems]
    except ValueError as error:
        return None, [Problem(entry.file, entry.line, "", str(error))]
