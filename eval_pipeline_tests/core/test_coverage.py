"""How far turns get: the golden cases, and what must hold for any attempts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.covering.coverage import WORDS, Coverage, Try, turns_reached
from eval_pipeline.core.model import CallErrorKind
from eval_pipeline_tests.goldens import golden

CASES = golden("coverage.yaml")["cases"]
errors = st.none() | st.sampled_from([kind.value for kind in CallErrorKind])
tries = st.lists(st.builds(Try, st.sampled_from("abcde"), st.integers(0, 1), errors, st.booleans(), st.booleans()))


def counted(case: dict[str, Any]) -> Coverage:
    return Coverage.of(turns_reached(Try(turn, 0, *rest) for turn, *rest in case["tries"]).values(), case["planned"],
                       case["scored"])  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any]) -> None:
    reached = turns_reached(Try(turn, 0, *rest) for turn, *rest in case["tries"])
    assert {turn: list(found) for (turn, _), found in reached.items()} == case["reached"]
    found = counted(case)
    assert found.columns() == case["counts"]
    assert found.gaps() == case["gaps"]
    assert found.is_whole == (not case["gaps"])


@given(tries)
def test_who_was_not_asked_did_not_answer_and_who_did_not_answer_cannot_be_read(made: list[Try]) -> None:
    reached = turns_reached(made)
    assert reached.keys() == {(one.turn_id, one.sample) for one in made}
    for found in reached.values():
        assert found.answered or not found.readable
    silent = [one for one in made if not one.responded and one.call_error not in {"refused", "max_tokens"}]
    assert not any(found.answered for found in turns_reached(silent).values())


@given(st.tuples(*[st.integers(0, 2000)] * 5), st.sampled_from(["", "_a", "_b"]))
def test_columns_and_back(counts: tuple[int, ...], suffix: str) -> None:
    found = Coverage(*counts)
    assert Coverage.from_row(found.columns(suffix), suffix) == found
    assert [word for word in WORDS if f"{word} " in found.text()] == list(WORDS)


def test_what_nobody_knows_is_not_called_a_gap() -> None:
    assert Coverage().text() == "not on record"
    assert (Coverage().gaps(), Coverage().is_whole, Coverage().is_known) == ("", True, False)
    assert Coverage(None, 2, 2, 2, 2).text() == "asked 2 · answered 2 · readable 2 · scored 2"
