"""The `options` in a suite's `suite.yaml`: prompt, few-shot examples, answer form and metrics (docs/text.md)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from eval_pipeline.answers.numbers import FoundNumber, decimal_of
from eval_pipeline.answers.printed import only_number
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import QUOTES, told_value
from eval_pipeline_plugins.tracks.text.cases.schema import check_schema
from eval_pipeline_plugins.tracks.text.comparing.patterns import check_pattern

_STRICT = ConfigDict(extra="forbid", frozen=True)
_Share = Annotated[float, Field(ge=0, le=1)]
_NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Text = Annotated[str, Field(min_length=1)]
Form = Literal["label", "number", "text", "json"]

DEFAULT_TEMPLATE = "{{ question }}"


def _template(source: str) -> str:
    from eval_pipeline_plugins.tracks.text.cases.template import TemplateError, check_template

    try:
        check_template(source)
    except TemplateError as error:
        raise ValueError(str(error)) from None
    return source


def _pattern(pattern: str) -> str:
    check_pattern(pattern)
    return pattern


def _schema(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    check_schema(schema)
    return schema


class PromptSettings(BaseModel):
    """The prompt of a suite.

    Attributes:
        system: the system message; empty for the default of the answer form.
        template: the user message, a Jinja template of `question` and the case's fields.
    """

    model_config = _STRICT

    system: str = ""
    template: Annotated[str, Field(max_length=20_000), AfterValidator(_template)] = DEFAULT_TEMPLATE


class Example(BaseModel):
    """A few-shot example: a question with its right answer.

    Attributes:
        response: the complete response of the example; default: made from `answer`.
    """

    model_config = _STRICT

    question: _Text
    fields: dict[str, Json] = Field(default_factory=dict)
    answer: Json
    response: str | None = None


class AnswerForm(BaseModel):
    """The form of an answer.

    Attributes:
        labels: the allowed labels; as a mapping, each with other names for it.
        json_schema: JSON Schema (2020-12) for JSON answers.
        section: `answer` matches the part that gives the answer, `whole` the whole response.
        allow: what to accept that is rejected by default: `negated`, `unfinished`, `quoted` and `several`.
        units: words after a number that do not change its value, such as `million` if the question asks for millions.
        locale: language of the answers, such as `de` or `pt-BR`, which says how 1.234 is read; None reads it as in
            English, and refuses it where the response is evidently in a language with a decimal comma.
    """

    model_config = _STRICT

    form: Form
    labels: dict[str, list[str]] = Field(default_factory=dict)
    json_schema: Annotated[dict[str, Json], AfterValidator(_schema)] = Field(default_factory=dict)
    section: Literal["answer", "whole"] = "answer"
    allow: frozenset[Literal["negated", "unfinished", "quoted", "several"]] = frozenset()
    units: tuple[str, ...] = ()
    locale: Annotated[str, Field(pattern=r"^[a-z]{2,3}([-_][A-Za-z]{2,4})?$")] | None = None

    def number_of(self, text: str) -> FoundNumber | None:
        """Returns the number that a text consists of, read as answers are; None for any other text."""
        return only_number(text, decimal=decimal_of(self.locale), units=self.units)

    @field_validator("labels", mode="before")
    @classmethod
    def _with_names(cls, labels: Any) -> Any:
        if isinstance(labels, list | dict):
            wrong = next((label for label in labels if not isinstance(label, str)), "")
            if wrong != "":
                hint = QUOTES if isinstance(wrong, bool) else "write it in quotes"
                raise ValueError(f"expected labels that are texts, found {told_value(wrong)}; {hint}")
        if isinstance(labels, list):
            if len(set(map(str, labels))) != len(labels):
                raise ValueError("expected labels that differ")
            return {label: [] for label in labels}
        return labels

    @model_validator(mode="after")
    def _fits(self) -> "AnswerForm":
        if self.form == "label" and len(self.labels) < 2:
            raise ValueError("'form: label' needs 'labels', at least two texts")
        if self.form != "label" and self.labels:
            raise ValueError(f"'labels' are for 'form: label'; this is 'form: {self.form}'")
        if self.form != "json" and self.json_schema:
            raise ValueError(f"'json_schema' is for 'form: json'; this is 'form: {self.form}'")
        names = [name.casefold() for label, others in self.labels.items() for name in (label, *others)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or not all(name.strip() for name in names):
            told = f"'{twice[0]}' names two labels" if twice else "a label is empty"
            raise ValueError(f"{told}; expected labels that differ, whatever their case")
        return self


class Exact(BaseModel):
    """The metric `exact`: the answer equals the expected text.

    Attributes:
        ignore_accents: whether `Sao Paulo` is `São Paulo`; composed and decomposed letters are always the same.
        unordered: whether texts are lists whose order and repetitions do not matter.
        dates: whether dates are compared by value: 3 March 2024 is 2024-03-03; 03/04/2024 is the fourth of March.
    """

    model_config = _STRICT

    ignore_case: bool = True
    ignore_punctuation: bool = True
    dates: bool = False
    ignore_accents: bool = False
    unordered: bool = False


class Tolerance(BaseModel):
    """The metric `number`: the answer is within a tolerance of the expected number; satisfying either one is enough.

    Attributes:
        absolute: in the unit of the number.
        relative: as a share of the expected number.
        percent_or_fraction: whether a share may be given as 12, 12% or 0.12, whichever is expected.
    """

    model_config = _STRICT

    absolute: _NotNegative = 0.0
    relative: _NotNegative = 1e-6
    percent_or_fraction: bool = False


class NoParameters(BaseModel):
    """The parameters of `choice` and `set_f1`, which have none."""

    model_config = _STRICT


class Contains(BaseModel):
    """The metric `contains`: the answer section contains the expected text."""

    model_config = _STRICT

    ignore_case: bool = True


class Pattern(BaseModel):
    """The metric `regex`: the answer section has a match of the pattern (RE2 syntax).

    If the pattern has a group, the first group must contain the expected answer; otherwise any match is enough.
    """

    model_config = _STRICT

    pattern: Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_pattern)]
    ignore_case: bool = True


class JsonField(BaseModel):
    """How a field of a JSON answer is compared.

    Attributes:
        absolute, relative: tolerances of numbers; satisfying either one is enough.
        ignore: whether the field is left out of the comparison.
        unordered: whether the field is a list whose order does not matter.
    """

    model_config = _STRICT

    absolute: _NotNegative = 0.0
    relative: _NotNegative = 1e-9
    ignore_case: bool = False
    unordered: bool = False
    ignore: bool = False


class JsonFields(BaseModel):
    """The metric `json_fields`: the share of right fields; `fields` has rules by path, such as `lines.amount`."""

    model_config = _STRICT

    fields: dict[str, JsonField] = Field(default_factory=dict)


class Rouge(BaseModel):
    """The metric `rouge_l`: ROUGE-L F-measure, of words without endings if `stemming`; right from `threshold` on."""

    model_config = _STRICT

    threshold: _Share = 0.5
    stemming: bool = True


class Rubric(BaseModel):
    """The metric `judge`: a model grades the answer by a rubric: 1 if it fulfils it, 0.5 partly, 0 not at all.

    Attributes:
        rubric: what a right answer has to fulfil.
        model: the model version that judges; None for a Claude model.
        threshold: the lowest grade of a right answer.
    """

    model_config = _STRICT

    rubric: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"\S")]
    model: str | None = None
    threshold: Annotated[float, Field(gt=0, le=1)] = 1.0


class MetricSettings(BaseModel):
    """The metrics of a suite with their parameters; None for those that it does not have."""

    model_config = _STRICT

    exact: Exact | None = None
    number: Tolerance | None = None
    choice: NoParameters | None = None
    contains: Contains | None = None
    regex: Pattern | None = None
    set_f1: NoParameters | None = None
    json_fields: JsonFields | None = None
    rouge_l: Rouge | None = None
    judge: Rubric | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_parameters(cls, raw: Any) -> Any:
        """Converts `choice:` and `[exact, choice]` to metrics with their defaults."""
        if isinstance(raw, list) and all(isinstance(name, str) for name in raw):
            return {name: {} for name in raw}
        if isinstance(raw, Mapping):
            return {name: {} if found is None else found for name, found in raw.items()}
        return raw

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The metrics that the suite has."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)


FITTING: Mapping[Form, Sequence[str]] = {
    "label": ("choice", "exact", "contains", "regex"),
    "number": ("number", "exact", "regex"),
    "text": ("exact", "contains", "regex", "set_f1", "rouge_l", "judge"),
    "json": ("json_fields", "exact", "set_f1", "judge"),
}
"""Metrics by answer form; the first is the default."""


class TextOptions(BaseModel):
    """The `options` of a suite of this track.

    Attributes:
        correct: the metric that decides whether a turn is correct; default: the first of `metrics`.
        examples: few-shot examples, shown in this order before the question.
    """

    model_config = _STRICT

    prompt: PromptSettings = PromptSettings()
    examples: tuple[Example, ...] = ()
    answer: AnswerForm
    metrics: MetricSettings = MetricSettings()
    correct: str = ""

    @model_validator(mode="after")
    def _metrics_fit(self) -> "TextOptions":
        form = self.answer.form
        for name in self.metrics.names:
            if name not in FITTING[form]:
                known = ", ".join(FITTING[form])
                raise ValueError(f"the metric '{name}' does not fit answers of 'form: {form}'; expected one of {known}")
        if self.correct and self.correct not in self.asked:
            raise ValueError(f"'correct' is '{self.correct}'; expected one of the metrics: {', '.join(self.asked)}")
        return self

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """The metrics that the suite has: those named, or else the default of its answer form."""
        return self.metrics.names or (FITTING[self.answer.form][0],)

    @cached_property
    def deciding(self) -> str:
        """The metric that decides whether a turn is correct.

        It is `correct`, or else the first of the form's metrics that the suite has.
        """
        return self.correct or next(name for name in FITTING[self.answer.form] if name in self.asked)

    def parameters(self, metric: str) -> Any:
        """Returns the parameters of a metric; None if the suite does not have it."""
        return self._parameters.get(metric)

    @cached_property
    def _parameters(self) -> Mapping[str, Any]:
        given = {metric: getattr(self.metrics, metric) for metric in self.asked}
        return {metric: _DEFAULTS[metric]() if found is None else found for metric, found in given.items()}


_DEFAULTS: Mapping[str, type[BaseModel]] = {
    "choice": NoParameters,
    "number": Tolerance,
    "exact": Exact,
    "json_fields": JsonFields,
}
