"""Finds the answer in a response, in the form that the suite asks for, or the reason why there is none."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import ErrorClass, Failed, Json, Outcome, Ran
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline.tracks.json_response import find_json
from eval_pipeline.tracks.text.answer.labels import (
    asserted,
    bare_line,
    first_line_label,
    is_taken_back,
    label_of,
    mentions_of,
)
from eval_pipeline.tracks.text.answer.mentions import Source
from eval_pipeline.tracks.text.answer.numbers import number_of
from eval_pipeline.tracks.text.answer.schema import schema_problem
from eval_pipeline.tracks.text.answer.section import Section, answer_section, last_line, plain, why_unfinished
from eval_pipeline.tracks.text.settings import AnswerForm

_KEYS = ("answer", "final_answer", "label", "category", "class", "result")
"""Fields of a JSON object in which some models put their answer."""
_QUESTION_SLACK, _FIELD_SLACK = 4, 20
_MOST_CHARS = 100_000
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
    if len(text) > _MOST_CHARS:
        return _failed(f"the response has {len(text):,} characters, at most {_MOST_CHARS:,} are read")
    if form.form == "json":
        return _json(text, form)
    section = _section(text, form)
    problem = None if "unfinished" in form.allow else why_unfinished(section.text)
    if problem is not None:
        return Failed(ErrorClass.SYNTAX, problem)
    told = sources_of(form, question, fields)
    if form.form == "label":
        return _label(text, section, form, told)
    if form.form == "number":
        return _number(section, form, told)
    return _ran("\n".join(map(plain, section.text.splitlines())), section)


def sources_of(form: AnswerForm, question: str, fields: Mapping[str, Json]) -> tuple[Source, ...]:
    """Returns the texts that an answer must not merely quote, with the number of words that may be copied from each."""
    slack = _QUESTION_SLACK if form.form == "label" else _FIELD_SLACK
    texts = [found for found in fields.values() if isinstance(found, str) and found.strip()]
    return (Source(question, _QUESTION_SLACK), *(Source(text, slack) for text in texts))


def _section(text: str, form: AnswerForm) -> Section:
    if form.section == "whole":
        return Section(text.strip(), False)
    return _wrapped(text) or answer_section(text)


def _wrapped(text: str) -> Section | None:
    """Returns the answer of a response that is a JSON object containing one, such as `{"answer": "yes"}`."""
    bare = re.sub(r"(?m)^\s*(?:```|~~~)\w*\s*$", "", text).strip()
    if not bare.startswith("{") or len(bare) > _MOST_JSON_CHARS:
        return None
    try:
        found = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    name = next((name for name in _KEYS if isinstance(found, dict) and name in found), None)
    if name is None or not isinstance(found[name], str | int | float):
        return None
    return Section(str(found[name]), True)


def _label(text: str, section: Section, form: AnswerForm, told: Sequence[Source]) -> Outcome:
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


def _asserted_label(section: Section, form: AnswerForm, told: Sequence[Source]) -> Outcome:
    labels = asserted(section.text, form.labels, told, form.allow)
    expected = f"expected one of {', '.join(form.labels)}"
    if not labels:
        why = "denies or quotes every label that it names" if mentions_of(section.text, form.labels) else "has no label"
        return _failed(f"the answer {why}; {expected}")
    if len(labels) > 1 and "several" not in form.allow:
        return _failed(f"the answer gives {len(labels)} labels ({', '.join(labels)}); {expected}")
    if section.text.rstrip(" *_`\"'”’)").endswith("?"):
        return _failed(f"the answer is a question; {expected}")
    return _ran(labels[-1], section)


def _number(section: Section, form: AnswerForm, told: Sequence[Source]) -> Outcome:
    text = section.text if section.marked or form.section == "whole" else last_line(section.text)
    number, why = number_of(text, marked=section.marked, units=form.units, sources=told, allow=form.allow)
    return _failed(why) if number is None else _ran(number, Section(text, section.marked))


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
