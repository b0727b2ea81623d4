"""The suite's file format of a case (docs/text.md), and its conversion to the data model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from eval_pipeline.answers.labels import label_of
from eval_pipeline.core.covering.population import PROBABILITY, SIZE, STRATUM
from eval_pipeline.core.ids import turn_id
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.core.reading.complaints import QUOTES, told_value
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.options import checked_form
from eval_pipeline_plugins.tracks.text.cases.schema import schema_problem
from eval_pipeline_plugins.tracks.text.cases.settings import AnswerForm, TextOptions
from eval_pipeline_plugins.tracks.text.cases.template import TemplateError, render

_Text = Annotated[str, Field(min_length=1)]
TURNS = "turns"
"""Field of a case with several turns."""


@dataclass(frozen=True, slots=True)
class TextContext:
    """The setting of a case.

    Attributes:
        fields: further values that the prompt template may use.
        options: options of the suite.
    """

    fields: Mapping[str, Json]
    options: TextOptions


@dataclass(frozen=True, slots=True)
class TextGold:
    """The definition of a right answer.

    Attributes:
        accepted: right answers, the preferred one first; empty if none is known.
        response: a complete right response; empty if it follows from the answer.
        form: the form of an answer.
    """

    accepted: tuple[Json, ...]
    response: str
    form: AnswerForm
    difficulty: int = 0


TextCase: TypeAlias = Case[TextContext, TextGold]
TextTurn: TypeAlias = Turn[TextGold]


class Sampled(BaseModel):
    """How a case was drawn from a population of conversations.

    Attributes:
        stratum: the part of the population that it was drawn from.
        of: number of conversations in that part.
        probability: with which each of them was drawn.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    stratum: _Text
    of: Annotated[int, Field(ge=1)]
    probability: Annotated[float, Field(gt=0, le=1)]


class TextTurnFile(BaseModel):
    """A turn of a conversation.

    Attributes:
        answer: the right answer; null if it is not known.
        accept: further right answers.
        response: as in `TextCaseFile`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: _Text
    answer: Json
    accept: list[Json] = Field(default_factory=list)
    response: str = ""


class _Identified(BaseModel):
    """The first field of a case."""

    id: _Text


class TextCaseFile(TextTurnFile, _Identified):
    """One case: a question with its right answer.

    Attributes:
        fields: further values that the prompt template may use.
        answer: the right answer; null if it is not known.
        accept: further right answers.
        response: a complete right response, for examples and simulated models if `answer` alone is not one.
        difficulty: 0 for the easiest cases; accuracy is reported for each level.
        sampled: how it was drawn, if it stands for more than itself.
    """

    fields: dict[str, Json] = Field(default_factory=dict)
    difficulty: Annotated[int, Field(ge=0, le=20)] = 0
    tags: list[_Text] = Field(default_factory=list)
    cluster: _Text | None = None
    sampled: Sampled | None = None


class TextConversationFile(BaseModel):
    """One case with several turns, whose other fields are those of `TextCaseFile`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: _Text
    turns: Annotated[list[TextTurnFile], Field(min_length=1)]
    fields: dict[str, Json] = Field(default_factory=dict)
    difficulty: Annotated[int, Field(ge=0, le=20)] = 0
    tags: list[_Text] = Field(default_factory=list)
    cluster: _Text | None = None
    sampled: Sampled | None = None


def read_case(raw: Mapping[str, Json], suite: str, file: str, line: int, options: TextOptions) -> TextCase:
    """Reads a case of a suite with these options.

    Raises:
        CaseError: names each field that is wrong.
    """
    form: TextCaseFile | TextConversationFile
    told: list[tuple[tuple[str | int, ...], TextTurnFile]]
    if TURNS in raw:
        form = checked_form(TextConversationFile, raw)
        told = [((TURNS, number), one) for number, one in enumerate(form.turns)]
    else:
        form = checked_form(TextCaseFile, raw)
        told = [((), form)]
    problems: list[tuple[tuple[str | int, ...], str]] = []
    golds = [_gold(form, one, place, options, problems) for place, one in told]
    if "question" in form.fields:
        problems.append((("fields", "question"), "is a field of the case already; expected another name"))
    else:
        try:
            for _, one in told:
                render(options.prompt.template, {**form.fields, "question": one.question})
        except TemplateError as error:
            problems.append((("fields",), f"options.prompt.template of the suite: {error}"))
    if problems:
        raise CaseError(problems)
    turns = tuple(
        Turn(turn_id(suite, form.id, index), index, one.question, gold)
        for index, ((_, one), gold) in enumerate(zip(told, golds, strict=True))
    )
    drawn = form.sampled
    features: dict[str, bool | int | float | str] = {}
    if drawn is not None:
        features = {STRATUM: drawn.stratum, SIZE: drawn.of, PROBABILITY: drawn.probability}
    context = TextContext(form.fields, options)
    return Case(form.id, form.cluster or form.id, tuple(form.tags), features, context, turns, file, line)


def _gold(
    form: TextCaseFile | TextConversationFile,
    one: TextTurnFile,
    place: tuple[str | int, ...],
    options: TextOptions,
    problems: list[tuple[tuple[str | int, ...], str]],
) -> TextGold:
    answers: list[tuple[tuple[str | int, ...], Json]] = [] if one.answer is None else [(("answer",), one.answer)]
    accepted = []
    for field, answer in [*answers, *((("accept", i), found) for i, found in enumerate(one.accept))]:
        try:
            accepted.append(read_gold(answer, options.answer))
        except ValueError as error:
            problems.append(((*place, *field), str(error)))
    return TextGold(tuple(accepted), one.response, options.answer, form.difficulty)


def read_gold(answer: Json, form: AnswerForm) -> Json:
    """Returns the right answer in the suite's form. Raises a ValueError if it does not have that form."""
    if form.form == "label":
        found = label_of(str(answer), form.labels) if isinstance(answer, str | int | bool) else None
        if found is None:
            hint = f"; {QUOTES}" if isinstance(answer, bool) else ""
            raise ValueError(f"expected one of {', '.join(form.labels)}, found {told_value(answer)}{hint}")
        return found
    if form.form == "number":
        return _number(answer, form)
    if form.form == "json":
        if not isinstance(answer, dict | list):
            raise ValueError(f"expected a JSON object or list, found {told_value(answer)}")
        if (problem := schema_problem(form.json_schema, answer)) is not None:
            raise ValueError(f"does not fit options.answer.json_schema: {problem}")
        return answer
    if isinstance(answer, list) and answer and all(isinstance(item, str) and item.strip() for item in answer):
        return answer
    if isinstance(answer, bool) or not isinstance(answer, str | int | float) or not str(answer).strip():
        hint = f"; {QUOTES}" if isinstance(answer, bool) else ""
        raise ValueError(f"expected a text, or a list of texts for 'set_f1', found {told_value(answer)}{hint}")
    return str(answer)


def _number(answer: Any, form: AnswerForm) -> float:
    if isinstance(answer, int | float) and not isinstance(answer, bool) and abs(answer) < 1e300:
        return float(answer)
    found = form.number_of(answer) if isinstance(answer, str) else None
    if found is None or found.percent:
        raise ValueError(f"expected a number, found {told_value(answer)}")
    return found.value
