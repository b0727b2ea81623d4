"""Candidates of each turn of a suite, by the track's own search or by a program of the user's."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.operations.suite_work.candidates import SuiteCandidates
from eval_pipeline.operations.suite_work.programs import program_output
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import SuiteSource

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.sdmx.case_file import SdmxContext
    from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue

_OPTION = "candidates_file"


def suite_candidates(source: SuiteSource, command: str | None, timeout_s: float) -> SuiteCandidates:
    """Returns the candidates of every turn of a suite. Those that the suite's own file gives are not used.

    Args:
        source: a suite of this track.
        command: command line of a program that gives the candidates; None: the track's own search.
        timeout_s: seconds that the program may take.

    Raises:
        UsageError: the program fails or does not give candidates for each turn.
        InputError: the suite cannot be read, or lines that the program gave are wrong.
    """
    header = source.require()
    options = {name: value for name, value in header.options.items() if name != _OPTION}
    found = read_suite(replace(source, header=header.model_copy(update={"options": options})))
    lines = (
        _searched(found.cases)
        if command is None
        else _by_program(found.cases, found.shared.catalogue, command, timeout_s)
    )
    return SuiteCandidates(tuple(lines), found.problems)


def _searched(cases: Sequence[Case]) -> Iterator[str]:
    from eval_pipeline_plugins.tracks.sdmx.search.given import line_text

    for case, turn in _turns(cases):
        context: SdmxContext = case.context
        offered = context.candidates(turn)
        places: dict[str, list[Json]] = {data_set: [] for data_set in offered.data_sets}
        for (data_set, dimension), ranks in offered.ranks.items():
            values = [{"id": code, "name": name} for code, name in sorted(ranks, key=ranks.__getitem__)]
            places[data_set].append({"dimension_name": dimension, "values": values})
        entries = [{"dataset_id": data_set, "dimensions": found} for data_set, found in places.items()]
        yield line_text(case.id, turn.index, _questions(case, turn), entries)


def _by_program(cases: Sequence[Case], catalogue: "Catalogue", command: str, timeout_s: float) -> Iterator[str]:
    from eval_pipeline_plugins.tracks.sdmx.search.given import given_turns, line_text

    asked = {(case.id, turn.index): _questions(case, turn) for case, turn in _turns(cases)}
    said = [json_text({"case_id": case_id, "turn": turn, "questions": told}) for (case_id, turn), told in asked.items()]
    written = program_output(_words(command), "".join(f"{line}\n" for line in said).encode(), timeout_s)
    given = given_turns(written.split(b"\n"), f"output of {command}", catalogue)
    unknown = [(key, found.line) for key, found in given.items() if key not in asked]
    if unknown:
        (case_id, turn), line = unknown[0]
        raise UsageError(f"output of {command}:{line}: nothing was asked about turn {turn} of case '{case_id}'")
    missing = [key for key in asked if key not in given]
    if missing:
        (case_id, turn), others = missing[0], len(missing) - 1
        more = f", and for {others:,} other turns" if others else ""
        raise UsageError(f"'{command}' gave no candidates for turn {turn} of case '{case_id}'{more}")
    for (case_id, turn), questions in asked.items():
        yield line_text(case_id, turn, questions, given[case_id, turn].as_json())


def _turns(cases: Sequence[Case]) -> Iterator[tuple[Case, Turn]]:
    return ((case, turn) for case in cases for turn in case.turns)


def _questions(case: Case, turn: Turn) -> list[str]:
    return [earlier.question for earlier in case.turns[: turn.index + 1]]


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the command line '{command}' cannot be read: {error}") from None
    if not words:
        raise UsageError("the command line is empty; expected a program and its arguments")
    return words
