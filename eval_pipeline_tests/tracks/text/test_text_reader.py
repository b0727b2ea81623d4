"""The reader of answers against labels of real responses, and on texts that are made to take long."""

import json
from collections.abc import Iterator
from time import process_time
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from eval_pipeline.answers import other_readers
from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, read_case
from eval_pipeline_plugins.tracks.text.cases.examples import checked_options
from eval_pipeline_plugins.tracks.text.cases.settings import Exact, Form
from eval_pipeline_plugins.tracks.text.comparing.matching import same_text
from eval_pipeline_plugins.tracks.text.comparing.scoring import is_correct, read_of
from eval_pipeline_plugins.tracks.text.metrics import selected_metrics
from eval_pipeline_plugins.tracks.text.metrics.other_tools import (
    read_otherwise,
    right_by_inspect,
    right_by_promptfoo,
)
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.outside import PUBLIC, given

SETS = golden("text_reader_labels.yaml")["sets"]
FORMS: dict[str, dict[str, Any]] = {
    "gsm": {"answer": {"form": "number"}},
    "math-l5": {"answer": {"form": "number"}},
    "crux": {"answer": {"form": "text"}},
}
HARDEST = {
    "gsm": "microsoft/Phi-3.5-mini-instruct",
    "math-l5": "microsoft/Phi-3.5-mini-instruct",
    "crux": "reka/reka-flash-20240226",
}
"""Models whose responses are the least regular."""


def case_of(options: dict[str, Any], answer: Any) -> TextCase:
    raw = {"id": "one", "question": "What?", "answer": answer}
    return read_case(raw, "suite", "cases.yaml", 1, checked_options(options, "suite.yaml"))


def responses(name: str) -> Iterator[tuple[str, str, str]]:
    """Yields gold, response and label of the model's responses."""
    told, model = SETS[name], HARDEST[name]
    labels = dict(zip((told["prefix"] + item for item in told["items"]), told["models"][model], strict=True))
    for line in given(PUBLIC / "text" / f"zeroeval_{name}_half.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["model"] == model:
            yield row["gold"].removeprefix("# "), row["response"], labels[str(row["id"])]


@pytest.mark.parametrize("name", SETS)
def test_real_responses_are_read_as_a_person_reads_them(name: str) -> None:
    wrong = []
    for gold, response, label in responses(name):
        case = case_of(FORMS[name], gold if name == "crux" else float(gold.replace(",", "")))
        if label != "D" and is_correct(response.strip(), case, case.turns[0]) != (label in "rR"):
            wrong.append((label, gold, response[-100:]))
    assert len(wrong) <= 1, wrong


def test_every_item_has_a_label_of_every_model() -> None:
    for told in SETS.values():
        assert {len(labels) for labels in told["models"].values()} == {len(told["items"])} == {len(told["halves"])}


@pytest.mark.parametrize(
    "part",
    ["<answer>", '"', "$", "1 ", '"answer": "x ', "\\boxed{", "the answer is to a ", '{"a": ', '\\"', '{\\"',
     "6 times 7 is ", "1. so\n", "step 1: ", "whether the answer is ", "I thought 4 but ", "a half "],
)  # fmt: skip
def test_a_hostile_text_takes_time_in_proportion_to_its_length(part: str) -> None:
    """Four times the text takes four times as long; sixteen times would be quadratic."""
    case = case_of({"answer": {"form": "number"}}, 1)

    def cost(size: int) -> float:
        text = part * (size // len(part))
        before = process_time()
        read_of(text, case)
        return process_time() - before

    cost(1_000)
    assert cost(40_000) < 10 * cost(10_000) + 0.05


@pytest.mark.parametrize(
    ("said", "expected", "equal"),
    [
        ("[1,2]", "[1, 2]", True),
        ("[1, -2]", "[1, 2]", False),
        ("(1, 2)", "[1, 2]", False),
        ("[1, 2", "[1, 2]", False),
        ('{"a": true}', "{'a': True}", True),
        ("{'b': 1, 'a': 2}", '{"a": 2, "b": 1}', True),
        ("some text", "'some text'", True),
        ("'Some text'", "'some text'", False),
        ("some  text", "'some text'", False),
    ],
)
def test_an_expected_literal_is_compared_by_value(said: str, expected: str, equal: bool) -> None:
    assert same_text(said, expected, Exact()) is equal


@pytest.mark.parametrize(
    "entry", golden("text_other_readers.yaml"), ids=lambda entry: f"{entry['gold']}: {entry['says']}"
)
def test_other_tools_are_followed_to_the_letter(entry: dict[str, Any]) -> None:
    said = entry["says"], entry["gold"]
    assert other_readers.inspect_match(*said, numeric=entry["numeric"]) is entry["inspect"]
    assert other_readers.promptfoo_icontains(*said) is entry["promptfoo"]
    if entry["numeric"]:
        assert other_readers.lm_eval_strict(*said) is entry["strict"]
        assert other_readers.lm_eval_flexible(*said) is entry["flexible"]


def test_a_turn_is_read_otherwise_if_any_tool_that_applies_differs() -> None:
    assert read_otherwise(True, True, True, True) is False
    assert read_otherwise(True, None, True, False) is True
    assert read_otherwise(False, True, False, False) is True
    assert read_otherwise(None, True, True, True) is None
    assert read_otherwise(True, None, None, None) is None


@pytest.mark.parametrize("form", get_args(Form))
def test_metrics_of_other_tools_are_those_of_suites_whose_answers_these_read(form: str) -> None:
    options: Any = SimpleNamespace(answer=SimpleNamespace(form=form))
    names = {metric.name for metric in selected_metrics((), form)}
    for judge in (right_by_inspect, right_by_promptfoo):
        assert (judge("7", ["7"], options) is not None) is (judge.__name__ in names)


@pytest.mark.parametrize(
    ("said", "expected", "rules", "equal"),
    [
        ("Zu\u0308rich", "Zürich", {}, True),
        ("Sao Paulo", "São Paulo", {}, False),
        ("Sao Paulo", "São Paulo", {"ignore_accents": True}, True),
        ("beta, alpha and gamma", "alpha, beta, gamma", {"unordered": True}, True),
        ("beta, alpha", "alpha, beta, gamma", {"unordered": True}, False),
        ("beta, alpha, gamma", "alpha, beta, gamma", {}, False),
        ("3 March 2024.", "2024-03-03", {"dates": True}, True),
        ("3 March 2024", "2024-03-03", {}, False),
        ("March 2024", "2024-03", {"dates": True}, True),
        ("March 2024", "2024-03-01", {"dates": True}, False),
        ("2024-03-04", "2024-03-03", {"dates": True}, False),
        ("soon", "2024-03-03", {"dates": True}, False),
        ("<5", ">5", {}, False),
        ("<5", "5", {}, False),
    ],
)
def test_texts_are_equal_by_the_options_of_a_suite(
    said: str, expected: str, rules: dict[str, bool], equal: bool
) -> None:
    assert same_text(said, expected, Exact.model_validate(rules)) is equal


@pytest.mark.parametrize(
    ("says", "right"), [("12%", True), ("0.12", True), ("12", True), ("1.2", False), ("1200", False)]
)
def test_a_share_may_be_a_percentage_or_a_fraction(says: str, right: bool) -> None:
    case = case_of({"answer": {"form": "number"}, "metrics": {"number": {"percent_or_fraction": True}}}, 0.12)
    assert is_correct(says, case, case.turns[0]) is right
