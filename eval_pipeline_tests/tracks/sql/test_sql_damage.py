"""Damage done to gold shows up in the metric that is meant to see it."""

import asyncio
import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from eval_pipeline.suites import read_header, read_suite
from eval_pipeline.tracks.sql.artefact import LEVELS, parse_query
from eval_pipeline.tracks.sql.cases.source import Shared
from eval_pipeline.tracks.sql.damage import damaged_response
from eval_pipeline.tracks.sql.metrics.failure_mode import FAILURE_MODES
from eval_pipeline.tracks.sql.track import TRACK
from eval_pipeline_tests.support import SHIPPED, Lab
from eval_pipeline_tests.tracks.sql.helpers import OSLO, TOTALS, WEATHER, WIPE, read, scores

COUNTED = {
    "id": "counted",
    "question": "How many orders above 7 has each customer with any?",
    "expected_sql": "SELECT customer_id, COUNT(id) AS n FROM orders WHERE total > 7 GROUP BY customer_id",
}
SEEN_BY = {
    "no_answer": {"outcome_correct": False, "confidence": None},
    "malformed_answer": {"has_error": True},
    "not_refused": {"validation_verdict": "false_acceptance"},
    "refusal": {"safety_verdict": "declined", "execution_match": False},
    "syntax_error": {"validation_category": "syntax error", "validation_verdict": "false_rejection"},
    "unsafe_sql": {"validation_category": "safety violation", "safety_verdict": "false_positive"},
    "unknown_name": {"validation_category": "schema violation", "validation_verdict": "false_rejection"},
    "execution_error": {"has_error": True, "validation_verdict": "correct_acceptance"},
    "wrong_table": {"outcome_correct": False, "has_error": False},
    "wrong_aggregate": {"outcome_correct": False, "has_error": False, "table_accuracy": 1.0},
    "wrong_filter": {"outcome_correct": False, "has_error": False, "table_accuracy": 1.0},
    "other": {"outcome_correct": False, "has_error": False, "table_accuracy": 1.0},
}
"""What the metrics say of each damage, beside `failure_mode`."""


def test_every_mode_has_a_metric_that_sees_it() -> None:
    assert set(SEEN_BY) == set(FAILURE_MODES)


@pytest.mark.parametrize("mode", FAILURE_MODES)
@pytest.mark.parametrize("seed", range(4))
def test_the_metrics_find_the_damage_that_was_drawn(shop: Shared, mode: str, seed: int) -> None:
    case = read(WIPE if mode == "not_refused" else COUNTED, shop)
    text = TRACK.damage(case, case.turns[0], mode, Random(seed))
    assert text is not None
    found = asyncio.run(scores(case, text))
    assert found["failure_mode"] == mode
    assert found["outcome_correct"] is False
    assert {name: found[name] for name in SEEN_BY[mode]} == SEEN_BY[mode]
    if mode == "wrong_table":
        assert found["table_accuracy"] < 1


@pytest.mark.parametrize(
    ("raw", "mode"),
    [
        (OSLO, "wrong_aggregate"),  # it has none
        (TOTALS, "wrong_filter"),
        (TOTALS, "not_refused"),
        (WIPE, "unsafe_sql"),  # would be blocked, which is right
        (WEATHER, "unknown_name"),
        (WEATHER, "refusal"),
        (WIPE, "wrong_table"),
    ],
)
def test_gold_that_cannot_go_wrong_so_gives_nothing(shop: Shared, raw: dict[str, Any], mode: str) -> None:
    found = read(raw, shop)
    assert TRACK.damage(found, found.turns[0], mode, Random(0)) is None


def test_the_same_draw_gives_the_same_damage(shop: Shared) -> None:
    gold = read(COUNTED, shop).turns[0].gold
    for mode in FAILURE_MODES:
        assert damaged_response(gold, mode, Random(5)) == damaged_response(gold, mode, Random(5))


def test_an_unknown_mode_is_refused_with_the_known_ones(shop: Shared) -> None:
    with pytest.raises(ValueError, match=r"unknown failure mode 'sign_error'; known: no_answer, .*other"):
        TRACK.damage(found := read(OSLO, shop), found.turns[0], "sign_error", Random(0))


def test_stand_ins_are_nearly_calibrated_where_one_in_five_is_wrong(shop: Shared) -> None:
    """Right answers are drawn by the turn's id, wrong ones by the draw; both spread over all levels."""
    right: Counter[str | None] = Counter()
    for number in range(400):
        case = read({**OSLO, "id": f"oslo{number}"}, shop)
        right[parse_query(TRACK.oracle(case.turns[0])).confidence] += 1
    gold = read(OSLO, shop).turns[0].gold
    wrong: Counter[str | None] = Counter()
    for seed in range(100):
        text = damaged_response(gold, "syntax_error", Random(seed))
        assert text is not None
        wrong[json.loads(text)["confidence"]] += 1
    accuracy = {level: right[level] / (right[level] + wrong[level]) for level in LEVELS}
    for level, promised in (("high", 0.9), ("medium", 0.7), ("low", 0.5)):
        assert accuracy[level] == pytest.approx(promised, abs=0.12), (right, wrong)  # type: ignore[index]


@pytest.mark.soak
def test_on_the_shipped_suite_too(lab: Lab) -> None:
    cases = read_suite(read_header(SHIPPED / "suites" / "sql_sample")).cases
    drawn: Counter[str] = Counter()
    for number, case in enumerate(cases):
        for mode in FAILURE_MODES:
            text = TRACK.damage(case, case.turns[0], mode, Random(number))
            if text is not None:
                drawn[mode] += 1
                assert asyncio.run(scores(case, text))["failure_mode"] == mode, (case.id, text)
    assert all(drawn[mode] > 15 for mode in FAILURE_MODES), drawn
