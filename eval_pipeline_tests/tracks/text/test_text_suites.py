"""Suites from strangers are bounded, and wrong ones are told by their field; what earns a point, and what does not."""

import subprocess
import sys
import time
from random import Random
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.model import Failed, Ran
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.tracks.text import FAILURE_MODES
from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, read_case
from eval_pipeline_plugins.tracks.text.cases.examples import checked_options
from eval_pipeline_plugins.tracks.text.cases.template import MOST_OUTPUT, TemplateError, render
from eval_pipeline_plugins.tracks.text.comparing.evidence import difference_of
from eval_pipeline_plugins.tracks.text.comparing.patterns import compiled
from eval_pipeline_plugins.tracks.text.comparing.scoring import is_correct, metrics_of, mode_of, read_of
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import SHIPPED

FOUND = golden("text_answers.yaml")


def case_of(options: dict[str, Any], question: str = "What?", answer: Any = "x", **further: Any) -> TextCase:
    raw = {"id": "one", "question": question, "answer": answer, **further}
    return read_case(raw, "suite", "cases.yaml", 1, checked_options(options, "suite.yaml"))


def task(name: str) -> TextCase:
    return case_of(**FOUND["tasks"][name])


@pytest.mark.parametrize("entry", FOUND["forged"], ids=lambda entry: f"{entry['task']}: {entry['says'][:50]}")
def test_a_forged_answer_earns_nothing(entry: dict[str, str]) -> None:
    case = task(entry["task"])
    told = metrics_of(entry["says"], case, case.turns[0])
    assert told["answer_correct"] is False
    assert told["answer_score"] == 0
    assert told["failure_mode"] is not None


@pytest.mark.parametrize("entry", FOUND["honest"], ids=lambda entry: f"{entry['task']}: {entry['says'][:50]}")
def test_a_right_answer_as_models_say_it_is_correct(entry: dict[str, str]) -> None:
    case = task(entry["task"])
    assert is_correct(entry["says"], case, case.turns[0]), read_of(entry["says"], case)


def test_there_are_enough_forged_answers() -> None:
    assert len(FOUND["forged"]) >= 60
    assert {entry["task"] for entry in FOUND["forged"]} == set(FOUND["tasks"])


@pytest.mark.parametrize("entry", FOUND["numbers"], ids=lambda entry: entry["says"])
def test_a_number_is_read_as_it_is_said(entry: dict[str, Any]) -> None:
    outcome = read_of(entry["says"], case_of({"answer": {"form": "number", "locale": entry.get("locale")}}, answer=1))
    assert (outcome.value["answer"] if isinstance(outcome, Ran) else None) == entry["gives"]


@pytest.mark.parametrize("entry", FOUND["letters"], ids=lambda entry: entry["says"])
def test_a_label_is_read_as_it_is_said(entry: dict[str, Any]) -> None:
    labels = entry.get("labels", ["A", "B", "C", "D"])
    outcome = read_of(entry["says"], case_of({"answer": {"form": "label", "labels": labels}}, answer=labels[0]))
    assert (outcome.value["answer"] if isinstance(outcome, Ran) else None) == entry["gives"]


def test_rouge_leaves_the_stream_of_a_notebook_open() -> None:
    """What `rouge-score` logs with closes the stream it was imported under when logging is set up anew."""
    script = """
        import io, logging, sys
        sys.stderr = of_the_notebook = io.StringIO()
        from eval_pipeline_plugins.tracks.text.metrics.graded import _scorer
        _scorer(True)
        sys.stderr = sys.__stderr__
        logging.shutdown()
        print(of_the_notebook.closed)
    """
    pytest.importorskip("rouge_score", reason="the package rouge-score is not installed")
    done = subprocess.run([sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('{"a": 2, "l": [{"b": 1}, {"b": 2}]}', "different fields: a"),
        ('{"a": 1, "l": [{"b": 1}, {"b": 9}]}', "different fields: l[].b"),
        ('{"l": [{"b": 1, "c": 0}, {"b": 2, "c": 0}, {"b": 3}]}', "missing fields: a; extra fields: l[].c, l[].b"),
    ],
)
def test_a_wrong_json_answer_is_described_by_its_fields(said: str, told: str) -> None:
    case = case_of({"answer": {"form": "json"}}, answer={"a": 1, "l": [{"b": 1}, {"b": 2}]})
    outcome = read_of(said, case)
    assert isinstance(outcome, Ran)
    assert difference_of(case, case.turns[0], outcome.value) == told


SUITES = golden("text_suites.yaml")


@pytest.mark.parametrize("entry", SUITES["templates"], ids=lambda entry: entry["template"][:50])
def test_a_hostile_template_is_refused_with_a_sentence(entry: dict[str, Any]) -> None:
    values = {"question": "Who?", "many": list(range(2000)), "long": "x" * 50_000, "nested": {"a": [1, 2]}}
    began = time.process_time()
    with pytest.raises(TemplateError, match=entry["says"]):
        render(entry["template"], values)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("entry", SUITES["rendered"], ids=lambda entry: entry["template"][:50])
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


@pytest.mark.parametrize("entry", SUITES["options"], ids=lambda entry: entry["says"][:50])
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


@pytest.mark.parametrize("entry", SUITES["scores"], ids=lambda entry: entry["says"][:50])
def test_graded_metrics_worked_by_hand(entry: dict[str, Any]) -> None:
    case = case_of(entry["options"], answer=entry["answer"], accept=entry.get("accept", []))
    told = metrics_of(entry["says"], case, case.turns[0])
    for name, value in entry["metrics"].items():
        assert told[name] == (pytest.approx(value, abs=1e-4) if isinstance(value, float) else value), name


@pytest.mark.always
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
