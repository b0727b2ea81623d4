"""The reason why an answer is wrong, as one word."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline_plugins.tracks.text.cases.settings import JsonFields, TextOptions
from eval_pipeline_plugins.tracks.text.comparing.matching import compared_fields, same_number

_SCALES = (100.0, 1e3, 1e6, 1e9)


def failure_mode(
    answer_correct: bool | None,
    answer_score: float | None,
    said: Mapping[str, Any] | None,
    error_class: str | None,
    no_answer: bool,
    expected: Sequence[Json],
    options: TextOptions,
) -> str | None:
    """Returns the first of `FAILURE_MODES` that applies; None for a correct turn, and for one that was not judged."""
    if answer_correct or (answer_correct is None and said is not None):
        return None
    if no_answer:
        return "no_answer"
    if said is None:
        return "unfinished_answer" if error_class == ErrorClass.SYNTAX else "unreadable_answer"
    form = options.answer.form
    if form == "label":
        return "wrong_label"
    if form == "number":
        return _number_fault(float(said["answer"]), expected)
    if form == "json":
        return _fields_fault(said["answer"], expected, options)
    return "partly_right" if answer_score else "wrong_text"


def _number_fault(said: float, expected: Sequence[Json]) -> str:
    if any(right and same_number(-said, right, 0.0, 1e-6) for right in expected):
        return "sign_error"
    scaled = (said * factor for scale in _SCALES for factor in (scale, 1 / scale))
    if any(right and same_number(value, right, 0.0, 1e-6) for value in scaled for right in expected):
        return "scale_error"
    return "wrong_number"


def _fields_fault(said: Json, expected: Sequence[Json], options: TextOptions) -> str:
    rules = (options.parameters("json_fields") or JsonFields()).fields
    found = [compared_fields(said, right, rules) for right in expected]
    nearest = min(found, key=lambda verdicts: sum(verdict != "equal" for verdict in verdicts.values()))
    kinds = set(nearest.values()) - {"equal"}
    return {frozenset({"missing"}): "missing_fields", frozenset({"extra"}): "extra_fields"}.get(
        frozenset(kinds), "wrong_fields"
    )
