"""What earns a point: right answers as models say them, and no way of getting one without giving the answer."""

import subprocess
import sys
from textwrap import dedent
from typing import Any

import pytest

from eval_pipeline.core.model import Ran
from eval_pipeline.tracks.text.case_file import TextCase, read_case
from eval_pipeline.tracks.text.evidence import difference_of
from eval_pipeline.tracks.text.examples import checked_options
from eval_pipeline.tracks.text.scoring import is_correct, metrics_of, read_of
from eval_pipeline_tests.goldens import golden

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
    outcome = read_of(entry["says"], case_of({"answer": {"form": "number"}}, answer=1))
    assert (outcome.value["answer"] if isinstance(outcome, Ran) else None) == entry["gives"]


def test_rouge_leaves_the_stream_of_a_notebook_open() -> None:
    """What `rouge-score` logs with closes the stream it was imported under when logging is set up anew."""
    script = """
        import io, logging, sys
        sys.stderr = of_the_notebook = io.StringIO()
        from eval_pipeline.tracks.text.metrics.graded import _scorer
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
