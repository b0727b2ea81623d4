"""The verdict on a suite's gold is found once for the same cases and code; what the checks of a suite say."""

import gc
from copy import copy

import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.stages.attempts.ask import parse_response
from eval_pipeline.stages.checks import kept
from eval_pipeline.stages.checks.ends import check_ends
from eval_pipeline.stages.checks.kept import ends_of_suite
from eval_pipeline.stages.checks.verdicts import CheckVerdict, check_gold
from eval_pipeline.tracks.base import Metric
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.chains import INGESTING, checked, ran_of_suite
from eval_pipeline_tests.support import BROKEN, TWO_CASES, Lab, case


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many cases each check looked at."""
    found: list[int] = []
    check = kept.check_ends

    def looking(track: object, cases: list[Case], *more: object) -> CheckVerdict:
        found.append(len(cases))
        return check(track, cases, *more)

    monkeypatch.setattr(kept, "check_ends", looking)
    return found


def ends(lab: Lab) -> CheckVerdict:
    """As a new process finds it."""
    ran_of_suite(lab.workspace(), "small", *INGESTING)
    return checked(ends_of_suite, lab.workspace(), "small")


def test_what_held_is_not_checked_again(small: Lab, looks: list[int]) -> None:
    first = ends(small)
    assert (first.passed, first.facts["turns"]) == (True, 3)
    assert ends(small) == first
    assert looks == [2]


def test_other_cases_and_other_code_are_checked(small: Lab, looks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    ends(small)
    small.suite(cases=[case("gamma", ("7", 7.0))])
    assert ends(small).facts["turns"] == 4
    monkeypatch.setattr(kept, "ends_code", lambda track: ("=other code",))
    ends(small)
    assert looks == [2, 3, 3]


def test_what_did_not_hold_is_checked_each_time(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [
        CheckVerdict(False, "no"),
        CheckVerdict(False, "no"),
        CheckVerdict(True, "yes"),
        CheckVerdict(False, "not asked"),
    ]
    monkeypatch.setattr(kept, "check_ends", lambda *_: told.pop(0))
    assert [ends(small).text for _ in range(4)] == ["no", "no", "yes", "yes"]


@pytest.mark.parametrize("damage", [b"", b"[1]", b'{"made_from": 3}', b"\xff"])
def test_a_damaged_verdict_is_found_anew(small: Lab, looks: list[int], damage: bytes) -> None:
    first = ends(small)
    (small.home.checked / "small.json").write_bytes(damage)
    assert ends(small) == first
    assert looks == [2, 2]


def test_turns_whose_gold_does_not_hold_are_told_with_the_reason(lab: Lab) -> None:
    wrong = [case("alpha", ("50", 50.0), ("add(50, 7)", 58.0)), case("beta", ("divide(1, 0)", 1.0))]
    verdicts = []
    for cases in (wrong, TWO_CASES):
        lab.suite("small", cases)
        workspace = lab.workspace()
        ran_of_suite(workspace, "small", *INGESTING)
        verdicts.append(checked(check_gold, workspace, "small"))
    told, held = verdicts
    assert not told.passed
    assert (told.facts["turns"], told.facts["wrong_gold"]) == (3, 2)
    alpha, beta = told.facts["examples"]
    assert alpha.startswith("small/alpha#1: ") and "'add(50, 7)' gives 57" in alpha and "58" in alpha
    assert beta.startswith("small/beta#0: ") and "divides by zero" in beta
    assert held.passed


def test_a_response_that_cannot_be_read_leaves_no_cycle() -> None:
    def read() -> bool:
        artefact, error = parse_response(TRACK, BROKEN)
        return artefact is None and error is not None

    gc.collect(0)
    gc.disable()
    try:
        assert all(read() for _ in range(100))
        assert gc.collect(0) < 100, "what was made meanwhile is young"
    finally:
        gc.enable()


def test_a_metric_that_fails_on_gold_is_told_with_the_reason(small: Lab) -> None:
    ran_of_suite(small.workspace(), "small", *INGESTING)
    track = copy(TRACK)
    track.metrics = (Metric(TRACK.primary_metric, lambda absent: True, "boolean", "Wants what is not there."),)
    told = check_ends(track, small.workspace().cases("small")).text
    assert f"3 times the metrics misjudge the gold answer or no answer, as the metric '{TRACK.primary_metric}'" in told
    assert "it takes 'absent'" in told
