"""Reads ConvFinQA (czyssrs/ConvFinQA) into the suite's file format: the cleaned form and the original one.

Cleaned: `{"dev": [{id, doc, dialogue, features}, ...]}`, any number of splits. Original: `train.json` and `dev.json`,
a list of entries with `pre_text`, `post_text`, `table`, `id`, `annotation` and `qa` (or `qa_0` and `qa_1`). The
original form is read from its documentation; `answer_list`, the answers as printed, is not documented and optional.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eval_pipeline.answers.printed import printed_number
from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.numbers import normalised_text
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.tracks.importing import PlacedCase
from eval_pipeline_plugins.foreign_entries import read_json

_FOREIGN = ConfigDict(extra="ignore", strict=True)
_PAGE = re.compile(r"^(?:Single_|Double_)?(.+?)(?:-\d+)?$")
_Finite = Annotated[float, Field(allow_inf_nan=False)]
Cell = str | _Finite | None


class _Doc(BaseModel):
    model_config = _FOREIGN
    pre_text: str
    post_text: str
    table: dict[str, dict[str, Cell]]


class _Dialogue(BaseModel):
    model_config = _FOREIGN
    conv_questions: list[str] = Field(min_length=1)
    conv_answers: list[str | float]
    turn_program: list[str]
    executed_answers: list[_Finite | str]
    qa_split: list[bool | int] = []


class _Features(BaseModel):
    model_config = _FOREIGN
    has_type2_question: bool | None = None
    has_duplicate_columns: bool | None = None
    has_non_numeric_values: bool | None = None


class _Cleaned(BaseModel):
    model_config = _FOREIGN
    id: str
    doc: _Doc
    dialogue: _Dialogue
    features: _Features = _Features()


class _Annotation(BaseModel):
    model_config = _FOREIGN
    dialogue_break: list[str] = Field(min_length=1)
    turn_program: list[str]
    exe_ans_list: list[_Finite | str]
    answer_list: list[str | float] = []
    qa_split: list[bool | int] = []


class _Original(BaseModel):
    model_config = _FOREIGN
    id: str
    pre_text: list[str]
    post_text: list[str]
    table: list[list[Cell]]
    annotation: _Annotation
    qa_1: dict[str, Any] | None = None


def read_convfinqa(source: Path, limit: int | None) -> Iterator[dict[str, Json]]:
    """Yields cases in the suite's file format, in the order of the file.

    Conversations about the same filing page share a cluster.

    Raises:
        InputError: names the file, the line or the field, and what was expected.
    """
    for where, raw in islice(_entries(source), limit):
        original = isinstance(raw, dict) and "annotation" in raw
        try:
            case = _from_original(raw) if original else _from_cleaned(raw)
        except ValidationError as error:
            raise InputError(
                Problem(str(source), None, dotted((where, *location)), message)
                for location, message in complaints(error, _Original if original else _Cleaned)
            ) from None
        except _UnequalError as error:
            raise InputError([Problem(str(source), None, f"{where}.{error.field}", str(error))]) from None
        yield PlacedCase(case, where)


class _UnequalError(Exception):
    def __init__(self, field: str, found: int, expected: int) -> None:
        super().__init__(f"has {found} entries, expected {expected}, one for each question")
        self.field = field


def _entries(source: Path) -> Iterator[tuple[str, Json]]:
    data = read_json(source)
    if isinstance(data, list):
        yield from ((str(index), entry) for index, entry in enumerate(data))
        return
    if not isinstance(data, dict) or not data:
        message = 'expected a list of conversations, or splits such as {"dev": [...]}'
        raise InputError([Problem(str(source), None, "", message)])
    for split, entries in data.items():
        if not isinstance(entries, list):
            raise InputError([Problem(str(source), None, split, "expected a list of conversations")])
        yield from ((f"{split}.{index}", entry) for index, entry in enumerate(entries))


def _from_cleaned(raw: Json) -> dict[str, Json]:
    entry = _Cleaned.model_validate(raw)
    dialogue, given = entry.dialogue, entry.features
    count = len(dialogue.conv_questions)
    for field in ("conv_answers", "turn_program", "executed_answers"):
        _check_length(f"dialogue.{field}", getattr(dialogue, field), count)
    table = _table_from_columns(entry.doc.table)
    turns = zip(
        *(dialogue.conv_questions, dialogue.turn_program, dialogue.executed_answers, dialogue.conv_answers), strict=True
    )
    derived = _features(table, any(dialogue.qa_split))
    stated = {name: value for name, value in given.model_dump().items() if value is not None}
    document: dict[str, Json] = {"pre_text": entry.doc.pre_text, "table": table, "post_text": entry.doc.post_text}
    return _case(entry.id, {**derived, **stated}, document, [_turn(*turn) for turn in turns])


def _from_original(raw: Json) -> dict[str, Json]:
    entry = _Original.model_validate(raw)
    notes = entry.annotation
    count = len(notes.dialogue_break)
    for field in ("turn_program", "exe_ans_list"):
        _check_length(f"annotation.{field}", getattr(notes, field), count)
    # printed answers are listed per step of the original question; they fit only if no step was left out
    printed: list[Any] = list(notes.answer_list) if len(notes.answer_list) == count else [None] * count
    table = [[_cell(cell) for cell in row] for row in entry.table]
    document: dict[str, Json] = {
        "pre_text": " ".join(entry.pre_text),
        "table": table,
        "post_text": " ".join(entry.post_text),
    }
    turns = zip(notes.dialogue_break, notes.turn_program, notes.exe_ans_list, printed, strict=True)
    features = _features(table, any(notes.qa_split) or entry.qa_1 is not None)
    return _case(entry.id, features, document, [_turn(*turn) for turn in turns])


def _check_length(field: str, values: list[Any], count: int) -> None:
    if len(values) != count:
        raise _UnequalError(field, len(values), count)


def _case(
    name: str, features: dict[str, bool], document: dict[str, Json], turns: list[dict[str, Json]]
) -> dict[str, Json]:
    return {"id": name, "cluster": page_of(name), "features": features, "document": document, "turns": turns}


def page_of(name: str) -> str:
    """Returns the filing page of a conversation: `Single_UNP/2014/page_35.pdf-3` → `UNP/2014/page_35.pdf`."""
    match = _PAGE.match(name)
    return match[1] if match else name


def _turn(question: str, program: str, answer: float | str, printed: str | float | None) -> dict[str, Json]:
    turn: dict[str, Json] = {"question": question, "program": program, "answer": _answer(answer)}
    text = "" if printed is None else str(printed).strip()
    return {**turn, "printed": text} if text else turn


def _answer(answer: float | str) -> float | str:
    if not isinstance(answer, str):
        return float(answer)
    number = printed_number(answer)
    return answer if number is None else number.value


def _cell(cell: Cell) -> str | float:
    return "" if cell is None else cell


def _table_from_columns(columns: dict[str, dict[str, Cell]]) -> list[list[str | float]]:
    labels = dict.fromkeys(label for column in columns.values() for label in column)
    rows = [[label, *(_cell(column.get(label)) for column in columns.values())] for label in labels]
    return [["", *columns], *rows]


def _features(table: list[list[str | float]], type2: bool) -> dict[str, bool]:
    header = [normalised_text(str(cell)) for cell in table[0][1:]] if table else []
    named = [name for name in header if name]
    cells = [cell for row in table[1:] for cell in row[1:]]
    return {
        "has_type2_question": type2,
        "has_duplicate_columns": len(set(named)) < len(named),
        "has_non_numeric_values": any(isinstance(cell, str) and printed_number(cell) is None for cell in cells),
    }
