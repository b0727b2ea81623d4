"""What an evaluation stands beside: the line at the end of a run."""

from dataclasses import replace
from datetime import date, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.analysis.comparisons.chosen import standing
from eval_pipeline.analysis.comparisons.chosen.sides import Side
from eval_pipeline.analysis.comparisons.chosen.standing import beside_text
from eval_pipeline.core.model import Partition
from eval_pipeline_tests.analysis.comparisons.held import BEGUN, side
from eval_pipeline_tests.support import DAY

NEXT = DAY + timedelta(days=1)
CLOCK = f"{BEGUN.astimezone():%H:%M}"


def at(right: str, day: date = DAY, *, earlier: str = "", hours: int = 0, **told: Any) -> Side:
    """An evaluation of `a` on record; `earlier` is its id if it is not the newest of its date."""
    found = side("a", right)
    place = Partition("small", "a", day, earlier)
    made = {"partition": place, "newest": not earlier, "id": earlier or "f" * 10}
    evaluated = replace(found.evaluated, partition=place, scope=told.pop("scope", "full"))
    return Side(evaluated, replace(found.told, begun_at=BEGUN + timedelta(hours=hours), **made | told))


RIGHT, WRONG = "1" * 30, "1" * 15 + "0" * 15
COMPARE = "eval-pipeline compare a@before a --suite small"


@pytest.mark.parametrize(
    ("sides", "day", "expected"),
    [
        ([at(RIGHT)], DAY, None),
        (
            [at(RIGHT, earlier="1" * 10), at(WRONG, hours=1, prompt_text='{"after": "x"}')],
            DAY,
            f"100% → 50% since {CLOCK}; prompt changed; 15 broken, 0 fixed: {COMPARE}",
        ),
        (
            [at(WRONG), at(WRONG[::-1], NEXT, epoch="night")],
            NEXT,
            f"50% → 50% since {DAY}; asked anew; 15 broken, 15 fixed, not significant: {COMPARE}",
        ),
        # Of a date that is not the newest, the ids are told, as `before` would mean another.
        (
            [at(RIGHT, earlier="1" * 10), at(WRONG, id="2" * 10), at(RIGHT, NEXT)],
            DAY,
            f"100% → 50% since {CLOCK}; 15 broken, 0 fixed: eval-pipeline compare 1111111111 2222222222 --suite small",
        ),
        ([at(RIGHT), at(WRONG[:15], NEXT, scope="cases=c00")], NEXT, None),
        ([at(RIGHT)], NEXT, None),
    ],
)
def test_an_evaluation_is_told_beside_the_one_before_it(
    sides: list[Side], day: date, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "sides_of", lambda *_: sides)
    found = beside_text(SimpleNamespace(record=None), Partition("small", "a", day))  # type: ignore[arg-type]
    assert found == expected


def test_what_is_not_comparable_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    other = at(WRONG, NEXT)
    other = replace(other, evaluated=replace(other.evaluated, held=other.evaluated.held, made_with={"scorer": "next"}))
    before = at(RIGHT)
    before = replace(before, evaluated=replace(before.evaluated, made_with={"scorer": "same"}))
    monkeypatch.setattr(standing, "sides_of", lambda *_: [before, other])
    found = beside_text(SimpleNamespace(record=None), Partition("small", "a", NEXT))  # type: ignore[arg-type]
    assert str(found).startswith(f"since {DAY}: not compared: they were not scored by the same code")
