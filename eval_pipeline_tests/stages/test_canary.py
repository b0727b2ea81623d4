"""What is asked first, and what it says."""

from collections.abc import Sequence

import pytest

from eval_pipeline.core.model import Case, Turn
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.stages.attempts.canary import (
    FEWEST,
    TURNS,
    TURNS_BEFORE_BATCHES,
    CanaryResult,
    draw,
    judge,
    sentence,
)
from eval_pipeline.stages.attempts.seen import SeenAttempt, seen_call_error, seen_error
from eval_pipeline.stages.attempts.units import AskingUnit, plan_units
from eval_pipeline_plugins.tracks.finqa.track import TRACK

GOLD = [str(number) for number in range(20)]


def version(**fields: object) -> ModelVersion:
    return ModelVersion.model_validate({"name": "v", "provider": "http"} | fields)


def suite(conversations: int, turns: int) -> list[Case]:
    def conversation(name: str) -> Case:
        asked = tuple(Turn(f"s/{name}#{t}", t, "?", None) for t in range(turns))
        return Case(name, cluster=name, tags=(), features={}, context=None, turns=asked, source_file="", source_line=1)

    return [conversation(f"c{i:03}") for i in range(conversations)]


def units(conversations: int, turns: int, **fields: object) -> list[AskingUnit]:
    return list(plan_units(suite(conversations, turns), version(**fields)))


def ran(answer: str) -> SeenAttempt:
    return SeenAttempt("t", "ran", "", "", answer, f"answer {answer}", True)


UNREAD = seen_error("t", "unreadable", "value_error", "the JSON is not a plan", "{}")
PROSE = seen_error("t", "unreadable", "syntax_error", "no JSON", "well")
FAILED = seen_error("t", "failed", "column_error", "no column 'x1' in table 7", "{}")
CUT = seen_call_error("t", "max_tokens", "cut off", "half", True)
AWAY = seen_call_error("t", "rate_limited", "429", "", False)
RIGHT = [ran(answer) for answer in GOLD]


def test_the_draw_is_the_same_each_time_and_another_for_other_suites_and_versions() -> None:
    planned = units(40, 3)
    drawn = draw(planned, "s", version())
    assert drawn == draw(units(40, 3), "s", version())
    assert drawn != draw(planned, "other", version())
    assert drawn != draw(planned, "s", version(name="w"))
    assert drawn != draw(planned[:90], "s", version())


@pytest.mark.parametrize("history", ["gold", "own"])
@pytest.mark.parametrize("turns", [1, 3, 7])
def test_whole_conversations_are_drawn_until_there_are_enough_turns(turns: int, history: str) -> None:
    planned = units(40, turns, history=history, samples_per_turn=2)
    drawn = [planned[place] for place in draw(planned, "s", version(samples_per_turn=2))]
    count = sum(len(unit.turns) for unit in drawn)
    assert TURNS <= count < TURNS + turns
    assert {unit.sample for unit in drawn} == {0}
    assert count == turns * len({unit.case.id for unit in drawn})


def test_before_a_batch_there_are_fewer() -> None:
    assert len(draw(units(100, 1), "s", version(batch=True))) == TURNS_BEFORE_BATCHES


def test_small_evaluations_have_no_canary() -> None:
    assert draw(units(FEWEST - 1, 1), "s", version()) == frozenset()
    assert len(draw(units(FEWEST, 1), "s", version())) == TURNS


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (RIGHT, CanaryResult.PASSED),
        ([UNREAD] * 20, CanaryResult.BAD),
        ([UNREAD] * 10 + [PROSE] * 10, CanaryResult.BAD),
        ([UNREAD] * 9 + [PROSE] * 9 + RIGHT[:2], CanaryResult.BAD),
        ([UNREAD] * 8 + [PROSE] * 9 + RIGHT[:3], CanaryResult.PASSED),
        ([UNREAD] * 17 + RIGHT[:3], CanaryResult.PASSED),
        ([FAILED] * 18 + RIGHT[:2], CanaryResult.BAD),
        ([FAILED] * 17 + RIGHT[:3], CanaryResult.PASSED),
        ([CUT] * 20, CanaryResult.BAD),
        ([AWAY] * 20, CanaryResult.BAD),
        ([ran("42")] * 18 + RIGHT[:2], CanaryResult.BAD),
        ([ran("42")] * 17 + RIGHT[:3], CanaryResult.PASSED),
    ],
)
def test_what_the_whole_canary_says(seen: Sequence[SeenAttempt], said: CanaryResult) -> None:
    assert judge(seen, 20, GOLD) is said


def test_equal_answers_say_nothing_where_the_right_ones_are_equal() -> None:
    assert judge([ran("yes")] * 20, 20, ["yes"] * 18 + ["no", "no"]) is CanaryResult.PASSED
    assert judge([UNREAD] * 20, 20, ["yes"] * 20) is CanaryResult.BAD


def test_it_is_over_as_soon_as_it_is_certain() -> None:
    assert judge(RIGHT[:2], 20, GOLD) is CanaryResult.OPEN
    assert judge(RIGHT[:3], 20, GOLD) is CanaryResult.OPEN
    assert judge(RIGHT[:4], 20, GOLD) is CanaryResult.PASSED  # no 18 can go wrong in one way any more
    assert judge([RIGHT[0], RIGHT[0], RIGHT[0]], 20, GOLD) is CanaryResult.OPEN
    assert judge([AWAY] * 4, 20, GOLD) is CanaryResult.OPEN
    assert judge([AWAY] * 5, 20, GOLD) is CanaryResult.BAD
    assert judge([CUT] * 19, 20, GOLD) is CanaryResult.OPEN  # these are paid for: nothing is spared by not waiting
    assert judge([AWAY] * 4 + [UNREAD], 20, GOLD) is CanaryResult.OPEN


def test_errors_are_the_same_whatever_they_name() -> None:
    other = seen_error("u", "failed", "column_error", 'no column "y22" in table 9', "")
    assert other.same == FAILED.same
    assert seen_error("u", "failed", "type_error", "no column 'x1' in table 7", "").same != FAILED.same


def test_a_canary_of_which_the_budget_left_little_says_nothing() -> None:
    assert judge([UNREAD] * 4, 4, GOLD[:4]) is CanaryResult.PASSED


def test_only_answers_that_are_nearly_all_the_same_are_told_as_such() -> None:
    assert "1 of 2 answers can be read" in sentence(TRACK, version(), [ran("1"), UNREAD], 9)
    assert "9 of 10 answers are the same, whatever" in sentence(TRACK, version(), [*[ran("1")] * 9, ran("2")], 99)
    assert "10 of 10 answers can be read" in sentence(TRACK, version(), [*[ran("1")] * 8, ran("2"), ran("3")], 99)


def test_messages_are_the_same_whose_beginnings_differ_in_names_and_numbers_only() -> None:
    def same(message: str) -> str:
        return seen_error("t", "failed", "k", message, "{}").same

    assert same("no column 'x1' in table 7") == same('no column "y" in table 12')
    assert same("no column") != same("no table")
    assert same("a" * 160 + "b") == same("a" * 160 + "c")
    assert same("a" * 159 + "b") != same("a" * 159 + "c")
