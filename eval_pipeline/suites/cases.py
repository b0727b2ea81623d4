"""Reads the cases in the files of a suite, and reports where a file is wrong."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Case, Json
from eval_pipeline.core.reading.complaints import told_value
from eval_pipeline.core.reading.entries import FileEntry, only_entry, problem_at, read_entries
from eval_pipeline.core.reading.json_reading import lost_in_json
from eval_pipeline.core.reading.users_tables import BINARY_FORMATS
from eval_pipeline.suites.case_tables import CaseTable, ColumnsError, ReadRow
from eval_pipeline.suites.files import FoundFile, fits, found_files
from eval_pipeline.suites.headers import (
    LEFT_OUT_FILE,
    OVERRIDES_FILE,
    REVIEWS_FOLDER,
    SUITE_FILE,
    SuiteFile,
    SuiteSource,
    at_their_lines,
)
from eval_pipeline.suites.left_out import LeftOutCase, read_left_out, unread_entry, wrong_case
from eval_pipeline.suites.overrides import Override, ScoredGold, read_overrides
from eval_pipeline.suites.prompts import check_prompts, prompt_files
from eval_pipeline.suites.rehearsal import rehearse, rehearse_table
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.capabilities import Shares

_NO_CASES = (SUITE_FILE, OVERRIDES_FILE, LEFT_OUT_FILE)
"""Files of a suite that hold no cases, even if a pattern matches them."""
_MANY = 4
"""From so many on, problems of the same kind are told once."""


@dataclass(frozen=True, slots=True)
class SuiteCases:
    """The contents of a suite's files.

    Attributes:
        cases: in the order of files and lines.
        contents: each case in the suite's file format, as JSON, for the record.
        problems: why other cases could not be read; only for tracks that keep the good ones.
        left_out: these cases, and those that an importer left out.
        empty: names of files without a case.
        notes: how tables among the files were read, in sentences.
        shared: what the cases have in common; its type belongs to the track.
        overrides: people's overrides of the gold (docs/gold.md).
        scored: the gold used for scoring, with overrides applied.
    """

    cases: tuple[Case, ...]
    contents: tuple[str, ...]
    problems: tuple[Problem, ...]
    left_out: tuple[LeftOutCase, ...]
    empty: tuple[str, ...]
    notes: tuple[str, ...]
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
    problems, empty, notes = tuple(reading.problems), tuple(reading.empty), tuple(reading.notes)
    return SuiteCases(cases, contents, problems, left_out, empty, notes, reading.shared, overrides, scored)


class SuiteReading:
    """Reads the cases of a suite one after the other, each with its content as JSON; iterate over it once.

    Attributes:
        problems, left_out, empty, notes: as in `SuiteCases`, of what was read so far.
        shared: what the cases have in common.
    """

    def __init__(self, source: SuiteSource) -> None:
        """Reads what the cases share. Raises InputError if that is wrong."""
        self._source, self._header, self._track = source, source.require(), source.track()
        self._first: Case | None = None
        self._fields: set[str] = set()
        self.shared: Any = None
        self.problems: list[Problem] = []
        self.left_out: list[LeftOutCase] = []
        self.empty: list[str] = []
        self.notes: list[str] = []
        if isinstance(self._track, Shares):
            try:
                if not self._track.reads_in_sandbox:
                    rehearse(source)
                self.shared = self._track.read_shared(source.folder, self._header.options)
            except InputError as error:
                raise at_their_lines(source, error) from error

    def __iter__(self) -> Iterator[tuple[Case, str]]:
        first: dict[str, str] = {}
        for file in _case_files(self._source, self._header):
            name = f"{self._source.folder.name}/{file.name}"
            if file.wrong:
                self._leave_out(Problem(name, None, "", file.wrong))
                continue
            told, count = len(self.problems), 0
            for found in self._read(file.path, name):
                count += 1
                if isinstance(found, Problem):
                    self._leave_out(found)
                    continue
                entry, row = found
                content = "" if row.case is None else json_text(row.raw)
                lost = lost_in_json(row.raw) if "null" in content or "\ufffd" in content else ()
                wrong = [problem_at(entry, place, message) for place, message in (*row.wrong, *lost)]
                case = None if wrong else row.case
                if case is not None and case.id in first:
                    twice = f"duplicate id '{case.id}', first used at {first[case.id]}"
                    case, wrong = None, [problem_at(entry, ("id",), twice)]
                self.problems += wrong
                if case is None:
                    self.left_out.append(wrong_case(entry, wrong))
                    continue
                first[case.id] = f"{entry.file}:{entry.line}"
                self._first = self._first or case
                if self._header.prompts:
                    self._fields.update(self._track.prompt_fields(case))
                yield case, content
            if not count:
                self.empty.append(name)
            self.problems[told:] = _joined(self.problems[told:])

    def _read(self, path: Path, name: str) -> Iterator[tuple[FileEntry, ReadRow] | Problem]:
        """Yields the entries of a file with what became of each."""
        table: CaseTable | None = None
        if path.suffix.lower() in BINARY_FORMATS:
            rehearse_table(path)
        for entry in read_entries(path, name, self._header.columns.values(), self.notes.append):
            if isinstance(entry, Problem):
                yield entry
                continue
            if entry.columns and table is None:
                try:
                    table = CaseTable.of(entry.columns, self._header.columns)
                except ColumnsError as error:
                    yield self._wrong_columns(name, error)
                    return
                self.notes[-1] = "; ".join([self.notes[-1], *table.notes()])
            yield entry, self._case(entry, table)

    def _case(self, entry: FileEntry, table: CaseTable | None) -> ReadRow:
        def read(raw: Json) -> Case:
            return self._track.read_case(raw, self._header.name, entry.file, entry.line, self.shared)

        if not isinstance(entry.raw, Mapping):
            told = f"expected a mapping that holds a case, found {told_value(entry.raw)}"
            return ReadRow(None, entry.raw, [((), told)])
        try:
            return ReadRow(read(entry.raw), entry.raw) if table is None else table.read(entry, read)
        except CaseError as error:
            return ReadRow(None, entry.raw, error.problems)
        except ValueError as error:
            return ReadRow(None, entry.raw, [((), str(error))])

    def _wrong_columns(self, name: str, error: ColumnsError) -> Problem:
        if not error.field:
            return Problem(name, None, "", str(error))
        header = only_entry(self._source.folder / SUITE_FILE)
        return problem_at(header, ("columns", error.field), f"{name} {error}")

    def _leave_out(self, problem: Problem) -> None:
        self.problems.append(problem)
        self.left_out.append(unread_entry(problem))

    @property
    def is_refused(self) -> bool:
        """Whether what was read so far has something wrong for which the whole suite will be refused."""
        keeps = self._first is not None and isinstance(self._track, Shares) and self._track.keeps_good_cases
        return bool(self.problems) and not keeps

    def refuse_wrong(self) -> None:
        """Raises InputError for what is wrong, after all cases were read; see `read_suite`."""
        if self.is_refused:
            raise InputError(self.problems)
        if self._first and (wrong := [*check_prompts(self._source, self._track, self._first, self._fields)]):
            raise InputError(wrong)

    @property
    def has_overrides(self) -> bool:
        """Whether people have overridden gold."""
        return (self._source.folder / OVERRIDES_FILE).is_file()

    def overrides(self, cases: Sequence[Case], contents: Sequence[str]) -> tuple[tuple[Override, ...], ScoredGold]:
        """Reads the overrides of the gold, given all cases. Raises InputError if they are wrong."""
        raws = {case.id: content for case, content in zip(cases, contents, strict=True)}
        return read_overrides(self._source, self._track, cases, raws, self.shared)


def _case_files(source: SuiteSource, header: SuiteFile) -> list[FoundFile]:
    """Returns what the patterns match, in order, with links and folders that lead nowhere.

    Raises:
        InputError: a pattern leaves the suite's folder or matches nothing.
    """
    prompts = {str(path.relative_to(source.folder)) for path in prompt_files(source.folder, header.patterns())}
    there = [file for file in found_files(source.folder) if file.name not in prompts]
    chosen: list[FoundFile] = []
    problems: list[Problem] = []
    for index, pattern in enumerate(header.patterns()):
        matched = _matched(there, pattern)
        if not matched:
            place = ("cases",) if isinstance(header.cases, str) else ("cases", index)
            entry = only_entry(source.folder / SUITE_FILE)
            problems.append(problem_at(entry, place, _unmatched(source.folder, pattern)))
        chosen += matched
    if problems:
        raise InputError(problems)
    return list(dict.fromkeys(chosen))


def _matched(there: Sequence[FoundFile], pattern: str) -> list[FoundFile]:
    parts = tuple(os.path.normpath(pattern).split("/")) if pattern else ()
    found = [
        file
        for file in there
        if fits(file.parts, parts, below=file.is_folder)
        and file.parts[0] != REVIEWS_FOLDER
        and file.name not in _NO_CASES
    ]
    return sorted(found, key=lambda file: file.parts)


def _unmatched(folder: Path, pattern: str) -> str:
    parts = os.path.normpath(pattern).split("/")
    if parts[0] == "..":
        return f"'{pattern}' leaves the suite, whose files are hashed together; move or link the cases into {folder}"
    if parts[0] == REVIEWS_FOLDER:
        return f"the folder '{REVIEWS_FOLDER}' of a suite is for reviews of answers; move the cases to another one"
    return f"no file matches '{pattern}'; expected a pattern that matches a file below {folder}"


def _joined(problems: Sequence[Problem]) -> list[Problem]:
    """Returns problems of a file; of those that are the same in many lines, as of a wrong column, only the first."""
    counts = Counter((problem.field, problem.message) for problem in problems)
    seen: set[tuple[str, str]] = set()
    kept = []
    for problem in problems:
        kind = (problem.field, problem.message)
        if counts[kind] < _MANY:
            kept.append(problem)
        elif kind not in seen:
            seen.add(kind)
            kept.append(replace(problem, message=f"{problem.message} (and so in {counts[kind] - 1:,} more)"))
    return kept
