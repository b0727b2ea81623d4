"""Reads questions with answers from JSON Lines, JSON, CSV, Excel or Parquet into the suite's file format.

Columns that are named like a field of a case are used; `--map question=prompt` assigns another column, or a path within
one. Names other than those of a case's fields become fields for the prompt template: `--map passage=context`.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from eval_pipeline.answers.printed import only_number
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.entries import FileEntry, problem_at, read_entries
from eval_pipeline.core.reading.json_reading import parsed_json
from eval_pipeline.core.reading.users_tables import Unreadable
from eval_pipeline.operations.recorded.mapping import has, is_there, value_at
from eval_pipeline.tracks.importing import PlacedCase
from eval_pipeline_plugins.tracks.text.cases.case_file import TURNS, TextCaseFile
from eval_pipeline_plugins.tracks.text.cases.settings import FITTING

_OURS = tuple(TextCaseFile.model_fields)
_LISTS = ("accept", "tags")
_MOST_LABELS, _LONGEST_LABEL = 50, 60
_MOST_PROBLEMS = 50
_LEADING_ZERO, _WHOLE = re.compile(r"\s*[-+]?0\d"), re.compile(r"\s*[-+]?\d+\s*")


def read_rows(
    source: Path,
    limit: int | None,
    columns: Mapping[str, str],
    form: str | None,
    say: Callable[[str], None] = lambda sentence: None,
    labels: Sequence[str] = (),
    metric: str = "",
) -> tuple[list[dict[str, Json]], dict[str, Json]]:
    """Returns the cases of a file and the options of their suite.

    Args:
        source: in one of the formats of `core.entries`.
        limit: maximum number of cases.
        columns: the column for each field of a case or of the prompt template.
        form: answer form; guessed from the answers if None.
        say: gets a sentence on how a table was read.
        labels: labels beside those of the answers, if the form is `label`.
        metric: what compares answers, if the form is `text`; empty for the default.

    Raises:
        InputError: the file cannot be read, or rows lack a question or an answer.
        UsageError: the answer form, or a column, does not exist.
    """
    if form is not None and form not in FITTING:
        raise UsageError(f"unknown answer form '{form}'; expected one of {', '.join(FITTING)}")
    is_list = source.suffix.lower() == ".json"  # of several on one line
    rows = list(islice(_rows(source, {*_OURS, *columns.values()}, say, is_list=is_list), limit))
    if not rows:
        raise InputError([Problem(str(source), None, "", "has no rows")])
    known = dict.fromkeys(name for _, entry in rows for name in (*entry.columns, *entry.raw))
    for name, theirs in columns.items():
        if theirs not in known and not any(has(entry.raw, theirs) for _, entry in rows):
            raise UsageError(f"--map {name}={theirs}: no column '{theirs}'; the file has {', '.join(known)}")
    ours = [name for name in _OURS if name in known and name != "fields" and name not in columns.values()]
    taken = {name: name for name in ours if name != "difficulty" or _are_levels(rows)} | dict(columns)
    cases: list[dict[str, Json]] = []
    problems: list[Problem] = []
    for number, entry in rows:
        if isinstance(entry.raw.get(TURNS), list):  # a case as it is in a suite
            cases.append(PlacedCase(dict(entry.raw), f"row {number}" if is_list else "", entry.line))
            continue
        cells = {theirs: entry.raw.get(theirs) for theirs in taken.values()}
        if wrong := [(theirs, cell.why) for theirs, cell in cells.items() if isinstance(cell, Unreadable)]:
            problems += [problem_at(entry, (theirs,), why) for theirs, why in wrong]
            continue
        case, lacking = _case(number, entry.raw, taken)
        where = f"row {number}" if is_list else ""
        places = [(where, field) if where else (field,) for field in lacking]
        problems += [problem_at(entry, place, f"is empty; {_hint(place[-1], known)}") for place in places]
        cases.append(PlacedCase(case, where, entry.line))
    if problems:
        raise InputError(problems[:_MOST_PROBLEMS])
    known_answers = [turn["answer"] for turn in _turns(cases) if turn.get("answer") is not None]
    chosen = form or (guessed_form(known_answers) if known_answers else "text")
    _as_form(cases, chosen)
    options = _options(cases, chosen, [name for name in taken if name not in _OURS], labels)
    return cases, options | ({"metrics": {metric: None}} if metric and chosen == "text" else {})


def guessed_form(answers: Sequence[Json]) -> str:
    """Returns the answer form that fits all answers: JSON, numbers, labels (a few repeated short texts), or texts."""
    if all(isinstance(answer, dict) for answer in answers):
        return "json"
    if all(_number(answer) is not None and not _is_identifier(answer) for answer in answers):
        return "number"
    texts = [str(answer) for answer in answers]
    labels = set(texts)
    short = all(len(text) <= _LONGEST_LABEL and "\n" not in text for text in labels)
    if short and 2 <= len(labels) <= _MOST_LABELS and 2 * len(labels) <= len(texts):
        return "label"
    return "text"


def _rows(
    source: Path, wanted: Collection[str], say: Callable[[str], None], *, is_list: bool
) -> Iterator[tuple[int, FileEntry]]:
    """Yields the entries of a file, each with the number by which a case without an id is named."""
    for count, entry in enumerate(read_entries(source, str(source), wanted, say), start=1):
        if isinstance(entry, Problem):
            raise InputError([entry])
        if not isinstance(entry.raw, dict):
            raise InputError([Problem(entry.file, entry.line, "", "expected an object with columns")])
        yield count if is_list else entry.line, entry


def _are_levels(rows: Sequence[tuple[int, FileEntry]]) -> bool:
    """Returns whether every row's `difficulty` is a valid level; otherwise the column is ignored."""
    return all(str(entry.raw.get("difficulty", "")).strip().isdecimal() for _, entry in rows)


def _case(number: int, row: Mapping[str, Any], taken: Mapping[str, str]) -> tuple[dict[str, Json], list[str]]:
    """Converts a row to a case; also returns the names of required fields that it lacks."""
    values = {ours: value_at(row, theirs) for ours, theirs in taken.items()}
    found = {ours: value for ours, value in values.items() if is_there(value) and value != ""}
    case: dict[str, Json] = {"id": str(found.pop("id", f"row-{number}"))}
    fields = {name: found.pop(name) for name in list(found) if name not in _OURS}
    for name in _LISTS:
        if name in found:
            found[name] = _list(found[name])
    if isinstance(found.get("difficulty"), str) and str(found["difficulty"]).strip().isdecimal():
        found["difficulty"] = int(found["difficulty"])
    for name in ("question", "cluster", "response"):
        if name in found:
            found[name] = _text(found[name])
    lacking = [name for name in ("question", "answer") if name not in found]
    return case | found | ({"fields": fields} if fields else {}), lacking


def _as_form(cases: Sequence[dict[str, Json]], form: str) -> None:
    """Converts answers to the type of the form: texts of CSV become numbers or JSON."""
    turns = [turn for turn in _turns(cases) if turn.get("answer") is not None]
    codes = any(_is_identifier(turn["answer"]) for turn in turns)
    for case in turns:
        answer = case["answer"]
        if codes and isinstance(answer, float) and answer.is_integer():  # a short code among decimals of Parquet
            answer = int(answer)
        if form == "number" and (number := _number(answer)) is not None and not _is_identifier(answer):
            case["answer"] = number
        elif form == "json" and isinstance(answer, str):
            with suppress(ValueError, RecursionError):  # reading the case says what is wrong
                case["answer"] = parsed_json(answer)
        elif form == "label" or (form == "text" and not _is_texts(answer)):
            case["answer"] = _text(answer)


def _turns(cases: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
    """Returns what has question and answer: the cases, or the turns of those that have several."""
    turns = [turn for case in cases for turn in (case.get(TURNS) or [case])]
    return [turn for turn in turns if isinstance(turn, dict)]


def _is_texts(answer: Json) -> bool:
    return isinstance(answer, list) and all(isinstance(item, str) for item in answer)


def _options(
    cases: Sequence[Mapping[str, Json]], form: str, fields: Sequence[str], labels: Sequence[str]
) -> dict[str, Json]:
    answer: dict[str, Json] = {"form": form}
    if form == "label":
        told = (str(turn["answer"]) for turn in _turns(cases) if turn.get("answer") is not None)
        answer["labels"] = list(dict.fromkeys((*labels, *told)))
    options: dict[str, Json] = {"answer": answer}
    if fields:
        shown = [f"{{% if {name} is defined %}}{{{{ {name} }}}}\n\n{{% endif %}}" for name in fields]
        options["prompt"] = {"template": "".join([*shown, "{{ question }}"])}
    return options


def _hint(field: str, known: Mapping[str, Any]) -> str:
    return f"--map {field}=COLUMN says where it is; the file has {', '.join(map(str, known))}"


def _number(answer: Json) -> float | None:
    if isinstance(answer, bool):
        return None
    if isinstance(answer, int | float):
        return float(answer) if abs(answer) < sys.float_info.max else None
    found = only_number(answer) if isinstance(answer, str) else None
    return None if found is None or found.percent else found.value


def _is_identifier(answer: Json) -> bool:
    """Whether an answer would be another one as a number: `02108` and 9007199254740993 are codes, no quantities."""
    text = str(answer) if isinstance(answer, str | int) else ""
    return bool(_LEADING_ZERO.match(text) or (_WHOLE.fullmatch(text) and float(text) != int(text)))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [part.strip() for part in str(value).split(",") if part.strip()]
