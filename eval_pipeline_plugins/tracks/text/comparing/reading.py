"""Finds the answer in a response, in the form that the suite asks for, or the reason why there is none."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.answers.chosen_number import WantedNumber, number_of
from eval_pipeline.answers.envelope import (
    MOST_CHARS,
    Section,
    answer_section,
    breaks_off_in_json,
    last_line,
    why_unfinished,
)
from eval_pipeline.answers.json_text import ArtefactError, find_json
from eval_pipeline.answers.labels import (
    asserted,
    bare_line,
    concluded,
    first_line_label,
    is_taken_back,
    label_of,
    mentions_of,
    outside_asides,
)
from eval_pipeline.answers.markers import COMMA
from eval_pipeline.answers.markup import plain, without_latex
from eval_pipeline.answers.mentions import QuotableText
from eval_pipeline.answers.numbers import Decimal, decimal_of
from eval_pipeline.answers.wording import without_item_number
from eval_pipeline.core.model import ErrorClass, Failed, Json, Outcome, Ran
from eval_pipeline_plugins.tracks.text.cases.schema import schema_problem
from eval_pipeline_plugins.tracks.text.cases.settings import AnswerForm

_MOST_CHARS_OF_LAST = 200
_QUESTION_SLACK, _FIELD_SLACK = 4, 20
_MOST_JSON_CHARS = 50_000


def read_answer(text: str, form: AnswerForm, question: str, fields: Mapping[str, Json]) -> Outcome:
    """Returns the answer that a response gives.

    Args:
        text: the response without any reasoning.
        form: the form that the suite asks for.
        question: question of the turn; quoting it is not an answer.
        fields: further texts of the case, of which an answer may copy a little.

    Returns:
        `Ran` with `answer` (label, number, text or JSON), `section` (the text that was matched) and `marked` (whether
        the response introduces it), or `Failed` with a sentence that can be shown to the model.
    """
    if len(text) > MOST_CHARS:
        return _failed(f"the response has {len(text):,} characters, at most {MOST_CHARS:,} are read")
    if form.form == "json":
        return _json(text, form)
    section = _section(text, form)
    if (problem := _why_unfinished(text, section, form)) is not None:
        return Failed(ErrorClass.SYNTAX, problem)
    told = sources_of(form, question, fields)
    if form.form == "label":
        return _label(text, section, form, told)
    if form.form == "number":
        return _number(text, section, form, told)
    return _ran(section.text if section.closed else "\n".join(map(plain, section.text.splitlines())), section)


def sources_of(form: AnswerForm, question: str, fields: Mapping[str, Json]) -> tuple[QuotableText, ...]:
    """Returns the texts that an answer must not merely quote, with the number of words that may be copied from each."""
    slack = _QUESTION_SLACK if form.form == "label" else _FIELD_SLACK
    texts = [found for found in fields.values() if isinstance(found, str) and found.strip()]
    return (QuotableText(question, _QUESTION_SLACK), *(QuotableText(text, slack) for text in texts))


def _section(text: str, form: AnswerForm) -> Section:
    """Returns the part of a response that gives the answer; a JSON value may introduce it again."""
    if form.section == "whole":
        return Section(text.strip(), False)
    section = answer_section(text)
    if not section.closed:
        return section
    inner = answer_section(section.text)
    return inner if inner.marked and inner.closed else section


def _why_unfinished(text: str, section: Section, form: AnswerForm) -> str | None:
    """Returns why a response is not finished, or None.

    Paragraphs after an introduced answer explain it, so that they may break off.
    """
    if form.section == "answer" and not section.marked and breaks_off_in_json(text):
        return "the JSON breaks off, or is broken, before it gives an answer"
    if "unfinished" in form.allow:
        return None
    if section.marked and form.form != "text":
        section = Section(re.split(r"\n[ \t]*\n", section.text, maxsplit=1)[0], True, section.closed)
    end = section.text.rstrip()[-_MOST_CHARS_OF_LAST:]
    named = mentions_of(end, form.labels) if form.labels else []
    if (named and named[-1].span[1] == len(end)) or end.rpartition(" ")[2] in form.labels:
        section = Section(f"{section.text.rstrip()}.", section.marked, section.closed)  # a label may be `A`
    return why_unfinished(section)


def _label(text: str, section: Section, form: AnswerForm, told: Sequence[QuotableText]) -> Outcome:
    text, section = _set_plainly(text), Section(_set_plainly(section.text), section.marked, section.closed)
    if (found := label_of(section.text, form.labels)) is not None and (section.marked or "\n\n" not in text.strip()):
        return _ran(found, section)
    if section.marked:
        if (found := first_line_label(section.text, form.labels)) is not None:
            return _ran(found, section)
    elif form.section == "answer" and (found := bare_line(text, form.labels)) is not None:
        if not is_taken_back(text, found, form.labels):
            return _ran(found, Section(found, False))
        return _failed("the answer takes its label back; expected one label")
    if not section.marked and not mentions_of(section.text, form.labels):
        section = Section(text.strip(), False)
    return _asserted_label(section, form, told)


def _set_plainly(text: str) -> str:
    """Returns the text without LaTeX and without the marks of Markdown that make letters bold."""
    return re.sub(r"\*{1,3}|`{1,3}", "", without_latex(text))


def _asserted_label(section: Section, form: AnswerForm, told: Sequence[QuotableText]) -> Outcome:
    labels = asserted(section.text, form.labels, told, form.allow)
    expected = f"expected one of {', '.join(form.labels)}"
    if not labels:
        why = "denies or quotes every label that it names" if mentions_of(section.text, form.labels) else "has no label"
        return _failed(f"the answer {why}; {expected}")
    if len(labels) > 1 and len(last := concluded(section.text, form.labels, told, form.allow)) == 1:
        labels = last
    if len(labels) > 1 and len(main := outside_asides(section.text, form.labels, told, form.allow)) == 1:
        labels = main
    if len(labels) > 1 and "several" not in form.allow:
        return _failed(f"the answer gives {len(labels)} labels ({', '.join(labels)}); {expected}")
    if section.text.rstrip(" *_`\"'”’)").endswith("?"):
        return _failed(f"the answer is a question; {expected}")
    return _ran(labels[-1], section)


def _number(text: str, section: Section, form: AnswerForm, told: Sequence[QuotableText]) -> Outcome:
    said = section.text
    if not section.marked and form.section == "answer":
        said = without_item_number(_last_line_with_digits(said) or last_line(said), text)
    decimal: Decimal = decimal_of(form.locale) if form.locale else "?" if COMMA.search(text) else "."
    number, why = number_of(said, WantedNumber(section.marked, section.closed, decimal, form.units, told, form.allow))
    return _failed(why) if number is None else _ran(number, Section(said, section.marked, section.closed))


def _last_line_with_digits(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if re.search(r"\d", line)), "")


def _json(text: str, form: AnswerForm) -> Outcome:
    kind = form.json_schema.get("type", ["object", "array"])
    kinds = [kind] if isinstance(kind, str) else list(kind)
    what = "an array" if kinds == ["array"] else "an object" if kinds == ["object"] else "an object or an array"

    def wanted(found: Json) -> bool:
        return (isinstance(found, dict) and "object" in kinds) or (isinstance(found, list) and "array" in kinds)

    try:
        found = find_json(text, wanted, what, f"JSON that is {what}", _MOST_JSON_CHARS)
    except ArtefactError as error:
        return Failed(error.error_class, error.message)
    problem = schema_problem(form.json_schema, found)
    if problem is not None:
        return _failed(f"the JSON does not fit the schema: {problem}")
    return _ran(found, Section("", True))


def _ran(answer: Any, section: Section) -> Ran:
    return Ran({"answer": answer, "section": section.text, "marked": section.marked})


def _failed(message: str) -> Failed:
    return Failed(ErrorClass.VALUE, message)
