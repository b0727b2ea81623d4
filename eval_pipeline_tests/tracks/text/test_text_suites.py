"""Suites from strangers: templates, patterns and schemas are bounded; what is wrong is a sentence with its field."""

import time
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.model import Failed, Ran
from eval_pipeline.suites import read_header, read_suite
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.text.answer.patterns import compiled
from eval_pipeline.tracks.text.examples import checked_options
from eval_pipeline.tracks.text.metrics.failure_mode import FAILURE_MODES
from eval_pipeline.tracks.text.scoring import metrics_of, mode_of, read_of
from eval_pipeline.tracks.text.template import MOST_OUTPUT, TemplateError, render
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import SHIPPED
from eval_pipeline_tests.tracks.text.test_text_answers import case_of

FOUND = golden("text_suites.yaml")


@pytest.mark.parametrize("entry", FOUND["templates"], ids=lambda entry: entry["template"][:50])
def test_a_hostile_template_is_refused_with_a_sentence(entry: dict[str, Any]) -> None:
    values = {"question": "Who?", "many": list(range(2000)), "long": "x" * 50_000, "nested": {"a": [1, 2]}}
    began = time.process_time()
    with pytest.raises(TemplateError, match=entry["says"]):
        render(entry["template"], values)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("entry", FOUND["rendered"], ids=lambda entry: entry["template"][:50])
def test_a_template_says_what_it_should(entry: dict[str, Any]) -> None:
    assert render(entry["template"], entry["values"]) == entry["text"]


@settings(max_examples=60, deadline=2000)
@given(st.text(alphabet="{}%| a.x()[]'*~for in end", max_size=60))
def test_any_template_is_text_or_a_sentence(source: str) -> None:
    said = None
    try:
        made = render(source, {"a": "b", "x": [1, 2]})
    except TemplateError as error:
        made, said = "", str(error)
    assert len(made) <= MOST_OUTPUT
    assert said is None or said


@pytest.mark.parametrize("entry", FOUND["options"], ids=lambda entry: entry["says"][:50])
def test_wrong_options_are_a_sentence_with_the_field(entry: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        checked_options(entry["options"], "s/suite.yaml")
    assert entry["says"] in str(caught.value)
    assert entry["field"] in str(caught.value)


def test_a_field_that_the_template_lacks_is_told_with_the_case() -> None:
    with pytest.raises(CaseError, match="'passage' is undefined; the case has question"):
        case_of({"answer": {"form": "text"}, "prompt": {"template": "{{ passage }}"}})


def test_a_pattern_takes_linear_time() -> None:
    assert compiled("(a*)*b").search("a" * 100_000) is None  # else it would not end


@pytest.mark.parametrize("entry", FOUND["scores"], ids=lambda entry: entry["says"][:50])
def test_graded_metrics_worked_by_hand(entry: dict[str, Any]) -> None:
    case = case_of(entry["options"], answer=entry["answer"], accept=entry.get("accept", []))
    told = metrics_of(entry["says"], case, case.turns[0])
    for name, value in entry["metrics"].items():
        assert told[name] == (pytest.approx(value, abs=1e-4) if isinstance(value, float) else value), name


@pytest.mark.parametrize("suite", ["tickets_sample", "invoices_sample"])
def test_simulated_models_fail_as_drawn(suite: str) -> None:
    source = read_header(SHIPPED / "suites" / suite)
    track, shown = source.track(), set()
    for index, case in enumerate(read_suite(source).cases):
        for mode in FAILURE_MODES:
            text = track.damage(case, case.turns[0], mode, Random(index))  # type: ignore[attr-defined]
            if text is not None:
                assert mode_of(text, case, case.turns[0]) == mode
                shown.add(mode)
    labels = {"no_answer", "unfinished_answer", "unreadable_answer", "wrong_label"}
    fields = {"no_answer", "unfinished_answer", "unreadable_answer", "missing_fields", "extra_fields", "wrong_fields"}
    assert shown >= (labels if suite == "tickets_sample" else fields - {"missing_fields", "extra_fields"})


@settings(max_examples=100, deadline=2000)
@given(st.text(max_size=200), st.sampled_from(["label", "number", "text", "json"]))
def test_any_response_is_read_or_is_an_error(said: str, form: str) -> None:
    answers: dict[str, Any] = {"label": "yes", "number": 1, "text": "yes", "json": {"a": 1}}
    labels = {"labels": ["yes", "no"]} if form == "label" else {}
    case = case_of({"answer": {"form": form, **labels}}, answer=answers[form])
    assert isinstance(read_of(said, case), Ran | Failed)


def test_a_long_hostile_response_is_read_in_time() -> None:
    case = case_of({"answer": {"form": "text"}, "metrics": ["contains"]}, question="a b " * 500, answer="a b")
    began = time.process_time()
    metrics_of("Answer: " + "a b " * 5_000, case, case.turns[0])
    assert time.process_time() - began < 5
