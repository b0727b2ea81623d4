"""Each model version has its own series: a loss is told until it is made good or somebody acknowledges it."""

from datetime import date
from typing import Any

import pytest

from eval_pipeline.analysis.comparisons.making import newest_trends
from eval_pipeline.analysis.comparisons.verdicts import SIDE_BY_SIDE, check_no_drift, check_no_loss
from eval_pipeline.store.tables import TRENDS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline_tests.analysis.histories import CASES, evaluated, night, rows
from eval_pipeline_tests.chains import checked, compared
from eval_pipeline_tests.support import Lab, case, command


def loss_of(lab: Lab, asked: dict[str, date] | None = None) -> str:
    """What the check says of losses; empty where it passes."""
    compared(lab.workspace(), "small")
    verdict = check_no_loss(Inputs(lab.workspace(), "small"), asked)
    return "" if verdict.passed else verdict.text


def test_a_loss_is_told_every_night_until_it_is_made_good(forty: Lab) -> None:
    for count, wrong in enumerate(([0], [*range(14)], [*range(13)], [1])):
        evaluated(forty, count, wrong)
        assert bool(loss_of(forty)) == (count in {1, 2})
    dates = [(row["open_loss_date"], row["open_loss_against"]) for row in rows(forty, TRENDS)]
    assert dates == [(None, None), (night(1), night(0)), (night(1), night(0)), (None, None)]


def test_the_open_loss_is_tested_against_the_night_before_it(forty: Lab) -> None:
    for count, wrong in enumerate(([0], [*range(14)], [*range(13)])):
        evaluated(forty, count, wrong)
    last = rows(forty, TRENDS)[-1]
    assert last["open_loss_difference"] == pytest.approx(0.35 - 0.95)
    assert last["open_loss_p_value"] < 0.001
    assert f"the loss of {night(1)} is still open: -60.0 points against {night(0)}" in loss_of(forty)
    verdict = check_no_loss(Inputs(forty.workspace(), "small"))
    assert verdict.facts[SIDE_BY_SIDE] == [
        f"/suites/small/compare?versions=puppet,puppet&eval_dates={night(0)},{night(2)}"
    ], "the night that it is worse than, and now"


def test_a_later_date_of_another_model_version_hides_no_loss(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 1, wrong=range(14))
    evaluated(forty, 5, version="other")
    assert "puppet: -70.0 points" in loss_of(forty)
    assert "puppet: -70.0 points" in loss_of(forty, {"puppet": night(1)})
    assert loss_of(forty, {"other": night(5)}) == "", "what puppet lost is not what was asked"


def test_a_date_that_is_asked_for_is_looked_at_and_no_other(forty: Lab) -> None:
    for count, wrong in enumerate(([0], [*range(14)], [1])):
        evaluated(forty, count, wrong)
    assert loss_of(forty, {"puppet": night(1)})
    assert not loss_of(forty, {"puppet": night(2)})


def test_model_versions_that_nobody_uses_fail_nothing(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 1, wrong=range(14))
    evaluated(forty, 5, version="other")
    forty.versions({"name": "puppet", "provider": "puppet", "active": False}, {"name": "other", "provider": "puppet"})
    assert not loss_of(forty)


def test_a_drift_of_one_model_version_is_told_whatever_dates_others_have(forty: Lab) -> None:
    for count, wrong in enumerate(([], [0, 1, 2], [0, 1, 2, 3, 4], [*range(8)])):
        evaluated(forty, count, wrong)
    assert rows(forty, TRENDS)[-1]["verdict"] == "drift_down"
    evaluated(forty, 9, version="other")
    compared(forty.workspace(), "small")
    assert "puppet" in checked(check_no_drift, forty.workspace(), "small").text


def test_a_break_ends_what_is_open(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 1, wrong=range(14))
    forty.suite(cases=[*CASES, case("c20", ("50", 50.0))])
    evaluated(forty, 2, wrong=range(14))
    last = rows(forty, TRENDS)[-1]
    assert (last["verdict"], last["open_loss_date"]) == ("break", None)


def acknowledged(*more: str) -> Any:
    return command("acknowledge", "--suite", "small", "--model-version", "puppet", *more)


def test_an_acknowledged_loss_fails_no_run_and_the_next_one_does(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 1, wrong=range(10))
    assert "eval-pipeline acknowledge --suite small --model-version puppet" in loss_of(forty)
    said = acknowledged("--who", "a reviewer", "--why", "the prompt was shortened on purpose")
    assert said.code == 0, said.text
    assert not loss_of(forty)
    assert forty.sql("SELECT suite, model_version, open_loss_date, who, why FROM acknowledgements") == [
        ("small", "puppet", night(1), "a reviewer", "the prompt was shortened on purpose")
    ]
    evaluated(forty, 2, wrong=range(10))
    assert not loss_of(forty), "it is the same loss"
    evaluated(forty, 3, wrong=[])
    evaluated(forty, 4, wrong=range(12))
    assert loss_of(forty), "it is another one"


def test_a_further_loss_beside_an_acknowledged_one_is_told(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 1, wrong=range(8))
    loss_of(forty)
    assert acknowledged("--why", "known").code == 0
    evaluated(forty, 2, wrong=range(18))
    assert "puppet: -50.0 points" in loss_of(forty)


def test_every_model_version_that_lost_is_named_with_what_ends_it(forty: Lab) -> None:
    names = ("puppet", "other")
    forty.versions(*({"name": name, "provider": "puppet"} for name in names))
    for name in names:
        evaluated(forty, 0, version=name)
        evaluated(forty, 1, wrong=range(14), version=name)
    told = loss_of(forty)
    for name in names:
        assert f"{name}: -70.0 points" in told
        assert f"`eval-pipeline acknowledge --suite small --model-version {name} --why …`" in told


def test_what_cannot_be_acknowledged_is_one_sentence(forty: Lab) -> None:
    evaluated(forty, 0)
    for arguments, expected in (
        (("--why", "so"), "'puppet' has no open loss on 'small'; there is nothing to acknowledge"),
        (("--why", " "), "--why is empty; expected the reason"),
    ):
        said = acknowledged(*arguments)
        assert (said.code, said.err.strip().splitlines()[-1]) == (2, f"error: {expected}")
    said = command("acknowledge", "--suite", "small", "--model-version", "nobody", "--why", "so")
    assert (said.code, "'nobody' has no series on 'small'; known: puppet" in said.err) == (2, True)


def test_acknowledging_again_adds_a_row(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 1, wrong=range(14))
    assert [acknowledged("--why", text).code for text in ("one", "two")] == [0, 0]
    assert forty.sql("SELECT why FROM acknowledgements ORDER BY acknowledged_at") == [("one",), ("two",)]
    assert {row["model_version"] for row in newest_trends(forty.workspace(), "small")} == {"puppet"}
