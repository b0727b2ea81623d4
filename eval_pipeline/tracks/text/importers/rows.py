"""Reads questions with answers from JSON Lines, JSON, CSV or Parquet into the suite's file format.

Columns that are named like a field of a case are used; `--map question=prompt` assigns another column. Names other than
those of a case's fields become fields for the prompt template: `--map passage=context`.
"""

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from eval_pipeline.answers.printed import only_number
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.foreign import parsed_json
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.foreign_csv import open_csv
from eval_pipeline.tracks.foreign_entries import json_objects, read_text
from eval_pipeline.tracks.import_places import Placed
from eval_pipeline.tracks.text.case_file import TextCaseFile
from eval_pipeline.tracks.text.settings import FITTING

_OURS = tuple(TextCaseFile.model_fields)
_LISTS = ("accept", "tags")
_MOST_LABELS, _LONGEST_LABEL = 50, 60
_MOST_PROBLEMS = 50
_NO_TEXT = "holds bytes that are not UTF-8 text"
_OF_LINES = {".jsonl", ".ndjson", ".csv", ".tsv"}
"""Files whose rows are known by their line; others count them from 1."""
_LEADING_ZERO, _WHOLE = re.compile(r"\s*[-+]?0\d"), re.compile(r"\s*[-+]?\d+\s*")
Row = tuple[int, Mapping[str, Any]]


def read_rows(
    source: Path, limit: int | None, columns: Mapping[str, str], form: str | None
) -> tuple[list[dict[str, Json]], dict[str, Json]]:
    """Returns the cases of a file and the options of their suite.

    Args:
        source: `.jsonl`, `.json`, `.csv`, `.tsv` or `.parquet`.
        limit: maximum number of cases.
        columns: the column for each field of a case or of the prompt template.
        form: answer form; guessed from the answers if None.

    Raises:
        InputError: the file cannot be read, or rows lack a question or an answer.
        UsageError: the answer form, or a column, does not exist.
    """
    if form is not None and form not in FITTING:
        raise UsageError(f"unknown answer form '{form}'; expected one of {', '.join(FITTING)}")
    rows = list(islice(_rows(source), limit))
    if not rows:
        raise InputError([Problem(str(source), None, "", "has no rows")])
    known = dict.fromkeys(name for _, row in rows for name in row)
    for name, theirs in columns.items():
        if theirs not in known:
            raise UsageError(f"--map {name}={theirs}: no column '{theirs}'; the file has {', '.join(known)}")
    ours = [name for name in _OURS if name in known and name != "fields" and name not in columns.values()]
    taken = {name: name for name in ours if name != "difficulty" or _are_levels(rows)} | dict(columns)
    cases: list[dict[str, Json]] = []
    problems: list[Problem] = []
    for number, row in rows:
        if wrong := [theirs for theirs in dict.fromkeys(taken.values()) if not _is_text(row.get(theirs))]:
            problems += [Problem(str(source), number, name, _NO_TEXT) for name in wrong]
            continue
        case, lacking = _case(number, row, taken)
        where, line = ("", number) if source.suffix.lower() in _OF_LINES else (f"row {number}", None)
        for field in lacking:
            field_there = f"{where}.{field}" if where else field
            problems.append(Problem(str(source), line, field_there, f"is empty; {_hint(field, known)}"))
        cases.append(Placed(case, where, line))
    if problems:
        raise InputError(problems[:_MOST_PROBLEMS])
    chosen = form or guessed_form([case["answer"] for case in cases])
    _as_form(cases, chosen)
    return cases, _options(cases, chosen, [name for name in taken if name not in _OURS])


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


def _rows(source: Path) -> Iterator[Row]:
    suffix = source.suffix.lower()
    if suffix in {".jsonl", ".ndjson", ".json"}:
        for count, (_, line, entry) in enumerate(json_objects(source), start=1):
            if not isinstance(entry, dict):
                where = "" if line else f"row {count}"
                raise InputError([Problem(str(source), line, where, "expected an object with columns")])
            yield line or count, entry
    elif suffix in {".csv", ".tsv"}:
        lines = StringIO(read_text(source), newline="")
        for row, named in open_csv(lines, str(source), "\t" if suffix == ".tsv" else ",").named():
            yield row.last_line, named
    elif suffix in {".parquet", ".pq"}:
        yield from enumerate(_parquet(source), start=1)
    else:
        raise UsageError(f"cannot read '{source.name}'; expected .jsonl, .json, .csv, .tsv or .parquet")


def _are_levels(rows: Sequence[Row]) -> bool:
    """Returns whether every row's `difficulty` is a valid level; otherwise the column is ignored."""
    return all(str(row.get("difficulty", "")).strip().isdecimal() for _, row in rows)


def _parquet(source: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(source, pre_buffer=False)  # buffers would keep all of the file in memory
        first = 1
        for batch in file.iter_batches(1_000):
            try:
                yield from batch.to_pylist()
            except UnicodeDecodeError as error:  # Parquet's writers do not check that texts are UTF-8
                raise InputError(_undecodable(source, first, batch)) from error
            first += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError([Problem(str(source), None, "", f"cannot be read as Parquet: {error}")]) from error


def _undecodable(source: Path, first: int, batch: Any) -> Iterator[Problem]:
    """Yields the first value of each column that is no UTF-8 text although its column says so."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for number, value in enumerate(column, start=first):
            try:
                value.as_py()
            except UnicodeDecodeError:
                yield Problem(str(source), number, name, _NO_TEXT)
                break


def _case(number: int, row: Mapping[str, Any], taken: Mapping[str, str]) -> tuple[dict[str, Json], list[str]]:
    """Converts a row to a case; also returns the names of required fields that it lacks."""
    values = {ours: _plain(row.get(theirs)) for ours, theirs in taken.items()}
    found = {ours: value for ours, value in values.items() if value is not None and value != ""}
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
    codes = any(_is_identifier(case["answer"]) for case in cases)
    for case in cases:
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


def _is_texts(answer: Json) -> bool:
    return isinstance(answer, list) and all(isinstance(item, str) for item in answer)


def _options(cases: Sequence[Mapping[str, Json]], form: str, fields: Sequence[str]) -> dict[str, Json]:
    answer: dict[str, Json] = {"form": form}
    if form == "label":
        answer["labels"] = list(dict.fromkeys(str(case["answer"]) for case in cases))
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


def _is_text(value: Any) -> bool:
    """Returns whether all bytes in a value of Parquet, which may be nested, are UTF-8 text."""
    if isinstance(value, dict):
        return all(map(_is_text, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_text, value))
    if isinstance(value, bytes):
        try:
            value.decode()
        except UnicodeDecodeError:
            return False
    return True


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [part.strip() for part in str(value).split(",") if part.strip()]


def _exact(value: Decimal) -> Json:
    """Returns a decimal as a number, or as its text if it has more digits than a number of JSON keeps."""
    if value == value.to_integral_value():
        return float(value) if float(value) == value else int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def _plain(value: Any) -> Json:
    """Returns a value as JSON: dates and decimals of Parquet become texts and numbers."""
    if isinstance(value, Decimal):
        return _exact(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
