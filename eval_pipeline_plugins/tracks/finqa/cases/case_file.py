"""The file format of a case, and its conversion to the data model."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator

from eval_pipeline.answers.printed import printed_number
from eval_pipeline.core.ids import turn_id
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.core.numbers import normalised_text, number_text
from eval_pipeline.core.reading.complaints import told_value
from eval_pipeline.tracks.options import checked_form
from eval_pipeline_plugins.tracks.finqa.cases.document import Document, FinqaCase, FinqaGold, answer_numbers
from eval_pipeline_plugins.tracks.finqa.cases.number_places import Rows
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    Program,
    expanded_operations,
    literal_values,
    operations,
    parse_program,
)

_FORMAT = ConfigDict(extra="forbid", frozen=True)


def _read_answer(value: Any) -> Any:
    if isinstance(value, bool):
        word = "yes" if value else "no"
        raise ValueError(
            f'expected a number, "yes" or "no"; YAML reads a bare {word} as {told_value(value)}: put it in quotes'
        )
    if isinstance(value, str):
        word = normalised_text(value)
        if word not in ("yes", "no"):
            raise ValueError(f'expected a number without quotes, "yes" or "no", found the text "{value[:40]}"')
        return word
    # Checked here, because pydantic's union would report an error for each of its members.
    if not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise ValueError(f'expected a finite number, "yes" or "no", found {told_value(value, 40)}')
    return float(value)


def _any_turns(turns: tuple[Any, ...]) -> tuple[Any, ...]:
    # Checked here, because pydantic would report the minimum length even for turns that exist but are wrong.
    if not turns:
        raise ValueError("expected at least 1 turn")
    return turns


def _read_program(value: Any) -> tuple[str, Program]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = number_text(float(value)) if isinstance(value, float) else str(value)
    if not isinstance(value, str):
        raise ValueError(f'expected a program such as "subtract(5, 3)" or a number, found {told_value(value, 40)}')
    return value, parse_program(value)


_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Text = Annotated[str, Field(min_length=1)]
_Cell = Annotated[str, Field(strict=True)] | _Number


class FeaturesFile(BaseModel):
    """Facts about the conversation by which results are split."""

    model_config = _FORMAT

    has_type2_question: bool = False
    has_duplicate_columns: bool = False
    has_non_numeric_values: bool = False


class DocumentFile(BaseModel):
    """The page of the filing."""

    model_config = _FORMAT

    pre_text: str
    table: tuple[tuple[_Cell, ...], ...]
    post_text: str


class FinqaTurnFile(BaseModel):
    """A question with its gold program, its answer and the answer as printed."""

    model_config = _FORMAT

    question: _Text
    program: Annotated[tuple[str, Program], PlainValidator(_read_program)]
    answer: Annotated[float | str, PlainValidator(_read_answer)]
    printed: _Text | None = None


class FinqaCaseFile(BaseModel):
    """A conversation about one page."""

    model_config = _FORMAT

    id: _Text
    cluster: _Text | None = None
    tags: tuple[str, ...] = ()
    features: FeaturesFile = FeaturesFile()
    document: DocumentFile
    turns: Annotated[tuple[FinqaTurnFile, ...], AfterValidator(_any_turns)]


def read_case(raw: Mapping[str, Json], suite: str, file: str, line: int) -> FinqaCase:
    """Parses a case from the suite's file format.

    Raises:
        CaseError: names each wrong field, e.g. `turns.2.program` for a program that does not parse.
    """
    parsed = checked_form(FinqaCaseFile, raw)
    page, features = parsed.document, parsed.features
    golds = [_gold(turn, page.table) for turn in parsed.turns]
    turns = [
        Turn(turn_id(suite, parsed.id, index), index, turn.question, gold)
        for index, (turn, gold) in enumerate(zip(parsed.turns, golds, strict=True))
    ]
    return Case(
        id=parsed.id,
        cluster=parsed.cluster or parsed.id,
        tags=parsed.tags,
        features={
            "has_type2_question": features.has_type2_question,
            "has_duplicate_columns": features.has_duplicate_columns,
            "has_non_numeric_values": features.has_non_numeric_values,
            "num_dialogue_turns": len(turns),
        },
        context=Document(page.pre_text, page.table, page.post_text, answer_numbers(golds)),
        turns=tuple(turns),
        source_file=file,
        source_line=line,
    )


def _gold(turn: FinqaTurnFile, table: Rows) -> FinqaGold:
    text, program = turn.program
    printed = turn.printed
    return FinqaGold(
        program_text=text,
        program=program,
        expected=turn.answer,
        printed=printed,
        printed_number=None if printed is None else printed_number(printed),
        operations=expanded_operations(program),
        literals=literal_values(program),
        written_operations=len(operations(program)),
        table=table,
    )
