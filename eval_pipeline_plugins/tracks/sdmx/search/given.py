"""Candidates that a file of the suite gives for each turn, in place of the search.

The file has JSON lines. A line belongs to a turn of a case and gives, by data set and dimension, terms in their order,
the best one first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import from_json

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.core.reading.foreign import lines_of
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue, Term
from eval_pipeline_plugins.tracks.sdmx.responses.selection import Place
from eval_pipeline_plugins.tracks.sdmx.search.retrieval import DEEPEST, Candidates, ranks_of

_FORMAT = ConfigDict(extra="forbid", frozen=True)
_MOST_PROBLEMS = 50
_Text = Annotated[str, StringConstraints(min_length=1)]
_Location = tuple[str | int, ...]

TurnKey = tuple[str, int]
"""The case's id and the number of the turn, from 0."""


class CandidateTermFile(BaseModel):
    """A candidate; the name is needed only where several terms of the code list have the id."""

    model_config = _FORMAT

    id: _Text
    name: str | None = None


class CandidateDimensionFile(BaseModel):
    """The candidates of a dimension, the best one first, as ids or as ids with names."""

    model_config = _FORMAT

    dimension_name: _Text
    values: tuple[_Text | CandidateTermFile, ...]


class CandidateDataSetFile(BaseModel):
    """The candidates of a data set."""

    model_config = _FORMAT

    dataset_id: _Text
    dimensions: tuple[CandidateDimensionFile, ...] = ()


class CandidateLine(BaseModel):
    """A line of the file.

    Attributes:
        turn: number of the turn in its conversation, from 0.
        questions: the turn's question and those before it, oldest first, for which the candidates were made. If they
            are given, they have to be those of the case.
        candidates: the data sets, the best one first.
    """

    model_config = _FORMAT

    case_id: _Text
    turn: int = Field(ge=0)
    questions: tuple[str, ...] | None = None
    candidates: tuple[CandidateDataSetFile, ...]


@dataclass(frozen=True, slots=True)
class GivenTurn:
    """The candidates of a turn.

    Attributes:
        line: line in the file, from 1.
        questions: see `CandidateLine`.
        data_sets: the data sets that the line names, in its order.
        places: the candidate terms of each data set and dimension, the best one first.
    """

    line: int
    questions: tuple[str, ...] | None
    data_sets: tuple[str, ...]
    places: Mapping[Place, tuple[Term, ...]]

    def as_json(self) -> Json:
        """Returns the candidates in the form of the file."""
        return candidates_json(self.data_sets, self.places)


class GivenCandidates:
    """The candidates of each turn of a suite."""

    def __init__(
        self, file: str, turns: Mapping[TurnKey, GivenTurn], catalogue: Catalogue, most: int, most_data_sets: int
    ) -> None:
        """Takes the file's name and turns, the catalogue, and the limits of a `Retriever`."""
        self.file, self.turns = file, turns
        self._catalogue, self._most, self._most_data_sets = catalogue, most, most_data_sets

    def candidates(self, case_id: str, turn: int) -> Candidates:
        """Returns what the turn is offered. Dimensions that are small enough are shown as a whole, as always."""
        given = self.turns[case_id, turn]
        known = list(self._catalogue.data_sets)
        chosen = known if len(known) <= self._most_data_sets else given.data_sets[: self._most_data_sets]
        places: dict[Place, tuple[Term, ...]] = {}
        ranks: dict[Place, Mapping[tuple[str, str], int]] = {}
        for id in chosen:
            for dimension in self._catalogue.data_sets[id].dimensions.values():
                place = (id, dimension.id)
                if len(dimension.codes.terms) <= self._most:
                    places[place] = dimension.codes.terms
                    continue
                found = given.places.get(place, ())[: max(self._most, DEEPEST)]
                places[place], ranks[place] = found[: self._most], ranks_of(found)
        return Candidates(places, tuple(chosen), ranks)

    def problem(self, case_id: str, turn: int, questions: Sequence[str]) -> str | None:
        """Returns a sentence if there are no candidates for a turn, or if they were made for other questions."""
        given = self.turns.get((case_id, turn))
        if given is None:
            return f"{self.file} has no candidates for turn {turn} of case '{case_id}'"
        if given.questions is not None and given.questions != tuple(questions):
            return f"{self.file}:{given.line}: the candidates of turn {turn} were made for other questions"
        return None

    def notes(self, known: Mapping[str, int]) -> Iterator[str]:
        """Yields a sentence for each line that no turn uses; `known` has the number of turns of each case."""
        for (case_id, turn), given in self.turns.items():
            if case_id not in known:
                yield f"{self.file}:{given.line}: case_id: no case that can be read has the id '{case_id}'"
            elif turn >= known[case_id]:
                last = known[case_id] - 1
                yield f"{self.file}:{given.line}: turn: expected 0 to {last} for case '{case_id}', found {turn}"


def candidates_json(data_sets: Sequence[str], places: Mapping[Place, Sequence[Term]]) -> Json:
    """Returns candidates in the form of the file's field `candidates`."""
    found: dict[str, list[Json]] = {id: [] for id in data_sets}
    for (data_set, dimension), terms in places.items():
        values = [{"id": term.id, "name": term.name} for term in terms]
        found.setdefault(data_set, []).append({"dimension_name": dimension, "values": values})
    return [{"dataset_id": id, "dimensions": dimensions} for id, dimensions in found.items()]


def line_text(case_id: str, turn: int, questions: Sequence[str], candidates: Json) -> str:
    """Returns a line of the file."""
    return json_text({"case_id": case_id, "turn": turn, "questions": list(questions), "candidates": candidates})


def read_given(path: Path, name: str, catalogue: Catalogue) -> dict[TurnKey, GivenTurn]:
    """Reads a file of candidates.

    Raises:
        InputError: the file cannot be read, or lines of it are wrong; see `given_turns`.
    """
    try:
        return given_turns(lines_of(path), name, catalogue)
    except OSError as error:
        raise InputError([Problem(name, None, "", f"cannot be read: {error}")]) from None


def given_turns(lines: Iterable[bytes], name: str, catalogue: Catalogue) -> dict[TurnKey, GivenTurn]:
    """Reads lines of candidates.

    Raises:
        InputError: names line and field of each problem, up to a limit: a line is no JSON or has other fields, the
            catalogue lacks a data set, dimension or term, a turn has several lines, or there are no lines.
    """
    found: dict[TurnKey, GivenTurn] = {}
    problems: list[Problem] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if len(problems) >= _MOST_PROBLEMS:
            problems.append(Problem(name, number, "", "the lines from here on were not checked"))
            break
        try:
            parsed = CandidateLine.model_validate(from_json(line))
        except ValidationError as error:
            problems += [
                Problem(name, number, dotted(wrong.location), wrong.message)
                for wrong in complaints(error, CandidateLine)
            ]
            continue
        except ValueError as error:
            problems.append(Problem(name, number, "", f"expected a JSON object on one line: {error}"))
            continue
        key = (parsed.case_id, parsed.turn)
        if key in found:
            told = f"turn {key[1]} of case '{key[0]}' has candidates in line {found[key].line} already"
            problems.append(Problem(name, number, "turn", told))
            continue
        wrongs = list(_problems(parsed.candidates, catalogue))[:_MOST_PROBLEMS]
        problems += [Problem(name, number, dotted(("candidates", *place)), message) for place, message in wrongs]
        if not wrongs:
            found[key] = _given(number, parsed, catalogue)
    if not found and not problems:
        problems = [Problem(name, None, "", "there are no candidates in it; expected a line for each turn")]
    if problems:
        raise InputError(problems)
    return found


def given_turn(number: int, line: Mapping[str, Json], catalogue: Catalogue) -> GivenTurn:
    """Returns the candidates of a line that was checked before."""
    return _given(number, CandidateLine.model_validate(line), catalogue)


def _problems(entries: Sequence[CandidateDataSetFile], catalogue: Catalogue) -> Iterator[tuple[_Location, str]]:
    for index, entry in enumerate(entries):
        data_set = catalogue.meant(entry.dataset_id)
        if (problem := catalogue.data_set_problem(data_set)) is not None:
            yield (index, "dataset_id"), problem
            continue
        for number, dimension in enumerate(entry.dimensions):
            at: _Location = (index, "dimensions", number)
            id = dimension.dimension_name
            if (problem := catalogue.dimension_problem(data_set, id)) is not None:
                yield (*at, "dimension_name"), problem
                continue
            for place, value in enumerate(dimension.values):
                if (problem := _value_problem(data_set, id, value, catalogue)) is not None:
                    yield (*at, "values", place), problem


def _value_problem(data_set: str, dimension: str, value: str | CandidateTermFile, catalogue: Catalogue) -> str | None:
    id = value if isinstance(value, str) else value.id
    if (problem := catalogue.term_problem(data_set, dimension, id)) is not None:
        return problem
    if _terms(data_set, dimension, value, catalogue):
        return None
    shown = "' or '".join(term.name for term in catalogue.find(data_set, dimension, id))
    return f"the catalogue calls '{id}' of {data_set} {dimension} '{shown}'"


def _terms(data_set: str, dimension: str, value: str | CandidateTermFile, catalogue: Catalogue) -> tuple[Term, ...]:
    """Returns the terms that a value means: several if it has no name and they share their id."""
    if isinstance(value, str):
        return catalogue.find(data_set, dimension, value)
    known = catalogue.find(data_set, dimension, value.id)
    return known if value.name is None else tuple(term for term in known if term.name == value.name)


def _given(number: int, parsed: CandidateLine, catalogue: Catalogue) -> GivenTurn:
    places: dict[Place, dict[Term, None]] = {}
    data_sets: dict[str, None] = {}
    for entry in parsed.candidates:
        data_set = catalogue.meant(entry.dataset_id)
        data_sets[data_set] = None
        for dimension in entry.dimensions:
            terms = places.setdefault((data_set, dimension.dimension_name), {})
            for value in dimension.values:
                terms.update(dict.fromkeys(_terms(data_set, dimension.dimension_name, value, catalogue)))
    held = {place: tuple(terms) for place, terms in places.items()}
    return GivenTurn(number, parsed.questions, tuple(data_sets), held)
