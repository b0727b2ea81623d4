"""Golds that do not hold: what they give as evidence, and how the tracks tell of them."""

import asyncio
from typing import Any

import pytest

from eval_pipeline.stages.gold import gold_failure
from eval_pipeline.tracks.sql.cases.source import Shared
from eval_pipeline.tracks.sql.evidence import gather
from eval_pipeline.tracks.sql.track import TRACK
from eval_pipeline_tests.tracks.sql.helpers import OSLO, answer, attempt, read

NUMBERS = "SELECT CAST(name AS INTEGER) FROM customers"
"""Accepted by the validator, but it does not run."""
RIGHT = "SELECT name FROM customers WHERE city = 'Oslo'"


@pytest.mark.parametrize(
    ("accepted", "sql", "fails"),
    [
        ([NUMBERS], NUMBERS, None),  # an answer that fails is told first: only `check_gold` runs the gold
        ([NUMBERS], RIGHT, NUMBERS),
        ([RIGHT, NUMBERS], RIGHT, NUMBERS),  # else only right answers of such a case would count
        ([RIGHT], NUMBERS, None),
        ([RIGHT], RIGHT, None),
    ],
)
def test_gold_that_fails_beside_an_answer_is_told(shop: Shared, accepted: Any, sql: str, fails: str | None) -> None:
    case = read(OSLO | {"expected_sql": accepted}, shop)
    tried = asyncio.run(attempt(case, answer(sql)))
    found = gold_failure(gather(case, case.turns[0], tried))
    assert (found is not None) == (fails is not None)
    assert bool(TRACK.check_gold(case)) == (NUMBERS in accepted)
