"""The rule by which an evaluation of drawn cases stops, as text."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import UsageError
from eval_pipeline.reports.contents.draws import drawn_text
from eval_pipeline_tests.goldens import golden

RULES = golden("until_rules.yaml")
NAMES = st.text(st.characters(categories=("L", "N"), include_characters="-_.", exclude_characters="İıſK"), min_size=1)


@pytest.mark.parametrize("rule", RULES, ids=[entry["text"] or "empty" for entry in RULES])
def test_a_rule_reads_as_written(rule: dict[str, Any]) -> None:
    if "error" in rule:
        with pytest.raises(UsageError, match=rule["error"]):
            Until.parse(rule["text"])
        return
    found = Until.parse(rule["text"])
    assert found.label() == rule["label"]
    assert found == Until(
        rule.get("half_width"), rule.get("baseline", ""), rule.get("usd"), rule.get("ranked", False), rule.get("share")
    )


@given(st.integers(1, 49_999), st.integers(1, 10**9), NAMES)
def test_the_written_form_of_a_rule_gives_the_rule_back(points: int, cents: int, name: str) -> None:
    for text in (f"±{Decimal(points) / 1000:f}pp", f"budget {Decimal(cents) / 100:f}usd", f"decided-against {name}"):
        rule = Until.parse(text)
        assert Until.parse(rule.label()) == rule
        assert Until.parse(rule.label()).label() == rule.label()


@given(st.text())
def test_any_text_is_a_rule_or_a_usage_error(text: str) -> None:
    try:
        rule = Until.parse(text)
    except UsageError:
        return
    assert sum([rule.half_width is not None, bool(rule.baseline), rule.usd is not None, rule.ranked]) == 1


@pytest.mark.parametrize(
    ("rule", "evaluations", "words"),
    [
        ("±2pp", 0, "chosen uniformly, as there are no earlier evaluations"),
        ("±2pp", 1, "chosen by 1 earlier evaluation"),
        ("budget 5usd", 1000, "chosen by 1,000 earlier evaluations"),
        ("ranked", 3, "chosen uniformly, the same for all that are ranked"),
    ],
)
def test_how_cases_are_chosen_is_told(rule: str, evaluations: int, words: str) -> None:
    assert Until.parse(rule).chosen(evaluations) == words
    row = {
        "look": 1, "metric": "correct", "value": 0.5, "low": 0.4, "high": 0.6, "evaluations": evaluations, "turns": 10,
        "suite_turns": 20, "until": Until.parse(rule).label(), "effective": 10.0, "stopped": None,
    }  # fmt: skip
    assert drawn_text([row]).startswith(f"10 of 20 turns asked until '{row['until']}', {words}; ")
