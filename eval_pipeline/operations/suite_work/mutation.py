"""Mutation scores of a suite, and the table rows that would raise them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from eval_pipeline.core import shown
from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Case
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Mutates
from eval_pipeline.tracks.scored.mutation_score import MutationScore, Survivor, TurnMutants, mutation_score

FILE = "equivalent_mutants.yaml"
"""In a suite's folder: mutants that are equivalent to the gold, listed by hand."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    turn: str
    mutants: tuple[str, ...]
    why: str


_entries = TypeAdapter(tuple[_Entry, ...])


def equivalent_mutants(folder: Path, suite: str) -> dict[str, tuple[str, ...]]:
    """Returns, by turn, the mutants that a suite lists as equivalent to its gold.

    Raises:
        InputError: the file does not have the expected form.
    """
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        entries = _entries.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        problems = [Problem(str(path), None, dotted(one.location), one.message) for one in complaints(error)]
        raise InputError(problems) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(path), None, "", "is not YAML in UTF-8")]) from error
    found: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        turn = f"{suite}/{entry.turn}"
        found[turn] = (*found.get(turn, ()), *entry.mutants)
    return found


def suite_mutants(track: Track, cases: Iterable[Case]) -> Iterator[TurnMutants]:
    """Yields the outcome of the mutants for each turn that has some."""
    if isinstance(track, Mutates):
        for case in cases:
            for turn in case.turns:
                found = track.turn_mutants(case, turn)
                if found is not None and found.mutants:
                    yield found


def score_lines(name: str, turns: Sequence[TurnMutants], equivalent: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yields a line for each turn with surviving mutants, a line for each of these mutants, and one for the suite."""
    for turn in turns:
        own = mutation_score([turn], equivalent)
        if own.survivors:
            yield f"{turn.turn_id}: {_figures(own)}"
            yield from (_line(one) for one in own.survivors[turn.turn_id])
    whole = mutation_score(turns, equivalent)
    yield f"{name}: {_figures(whole)}; {whole.equivalent} more are listed as equivalent"


def proposals(turns: Iterable[TurnMutants], equivalent: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Returns, for each surviving mutant, table rows that distinguish it from the gold, if some are known."""
    score = mutation_score(turns, equivalent)
    return [
        {
            "turn": turn_id,
            "as_if": one.words,
            "rows": dict(one.tables),
            "expected": one.expected,
            "mutant_gives": one.returned,
        }
        for turn_id, survivors in score.survivors.items()
        for one in survivors
        if one.tables
    ]


def _figures(score: MutationScore) -> str:
    share = "no mutants" if score.share is None else f"mutation score {shown.score(score.share)}"
    return f"{share} ({score.killed} of {score.mutants} mutants give another result)"


def _line(survivor: Survivor) -> str:
    rows = "; ".join(f"{name}: {_rows(text)}" for name, text in survivor.tables.items())
    told = f"; told apart by {rows}" if rows else ""
    return f"  the result is the same as if {survivor.words}{told}"


def _rows(text: str) -> str:
    """Returns the rows of a table given as text, without its header, separated by slashes."""
    return " / ".join(text.splitlines()[1:])
