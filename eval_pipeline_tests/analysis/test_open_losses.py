"""Each model version has its own series: a loss is told until it is made good or somebody acknowledges it."""

from datetime import date

import pytest

from eval_pipeline.analysis.comparisons.making import newest_trends
from eval_pipeline.analysis.comparisons.verdicts import SIDE_BY_SIDE, check_no_drift, check_no_loss
from eval_pipeline.store.tables import TRENDS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline_tests.analysis.histories import evaluated, night, rows
from eval_pipeline_tests.chains import checked, compared
from eval_pipeline_tests.support import Lab, Said, command


def loss_of(lab: Lab, asked: dict[str, date] | None = None) -> str:
    """What the check says of losses; empty where it passes."""
    compared(lab.workspace(), "small")
    verdict = check_no_loss(Inputs(lab.workspace(), "small"), asked)
    return "" if verdict.passed else verdict.text


def test_a_loss_is_told_every_night_until_it_is_made_good(forty: Lab) -> None:
    for count, wrong in enumerate(([0], [*range(14)], [*range(13)], [1])):
        evaluated(forty, count, wrong)
        said = loss_of(forty)
        assert bool(said) == (count in {1, 2})
        if count == 2:
            last = rows(forty, TRENDS)[-1]
            assert last["open_loss_difference"] == pytest.approx(0.35 - 0.95)
            assert last["open_loss_p_value"] < 0.001
            assert f"the loss of {night(1)} is still open: -60.0 points against {night(0)}" in said
            (link,) = check_no_loss(Inputs(forty.workspace(), "small")).facts[SIDE_BY_SIDE]
            assert link.endswith(f"eval_dates={night(0)},{night(2)}"), "the night that it is worse than, and now"
    dates = [(row["open_loss_date"], row["open_loss_against"]) for row in rows(forty, TRENDS)]
    assert dates == [(None, None), (night(1), night(0)), (night(1), night(0)), (None, None)]
    assert loss_of(forty, {"puppet": night(1)}), "a date that is asked for is looked at"
    assert not loss_of(forty, {"puppet": night(3)}), "and no other"


def test_a_later_date_of_another_model_version_hides_no_loss_but_one_that_nobody_uses_has_none(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 1, wrong=range(14))
    evaluated(forty, 5, version="other")
    assert "puppet: -70.0 points" in loss_of(forty)
    assert "puppet: -70.0 points" in loss_of(forty, {"puppet": night(1)})
    assert loss_of(forty, {"other": night(5)}) == "", "what puppet lost is not what was asked"
    forty.versions({"name": "puppet", "provider": "puppet", "active": False}, {"name": "other", "provider": "puppet"})
    assert not loss_of(forty)


def test_a_drift_of_one_model_version_is_told_whatever_dates_others_have(forty: Lab) -> None:
    for count, wrong in enumerate(([], [0, 1, 2], [0, 1, 2, 3, 4], [*range(8)])):
        evaluated(forty, count, wrong)
    assert rows(forty, TRENDS)[-1]["verdict"] == "drift_down"
    evaluated(forty, 9, version="other")
    compared(forty.workspace(), "small")
    assert "puppet" in checked(check_no_drift, forty.workspace(), "small").text


def acknowledged(*more: str, version: str = "puppet") -> Said:
    return command("acknowledge", "--suite", "small", "--model-version", version, *more)


def test_an_acknowledged_loss_fails_no_run_and_the_next_one_does(forty: Lab) -> None:
    evaluated(forty, 0)
    loss_of(forty)
    for version, why, expected in (
        ("puppet", "so", "'puppet' has no open loss on 'small'"),
        ("puppet", " ", "--why is empty"),
        ("nobody", "so", "'nobody' has no series on 'small'; known: puppet"),
    ):
        said = acknowledged("--why", why, version=version)
        assert (said.code, expected in said.err) == (2, True), said.err
    evaluated(forty, 1, wrong=range(8))
    assert "eval-pipeline acknowledge --suite small --model-version puppet" in loss_of(forty)
    assert acknowledged("--who", "a reviewer", "--why", "it was shortened").code == 0
    assert not loss_of(forty)
    assert acknowledged("--why", "again").code == 0
    columns = "suite, model_version, open_loss_date, who, why"
    first, second = forty.sql(f"SELECT {columns} FROM acknowledgements ORDER BY acknowledged_at")
    assert first == ("small", "puppet", night(1), "a reviewer", "it was shortened")
    assert second[-1] == "again"
    assert {row["model_version"] for row in newest_trends(forty.workspace(), "small")} == {"puppet"}
    evaluated(forty, 2, wrong=range(8))
    assert not loss_of(forty), "it is the same loss"
    evaluated(forty, 3, wrong=range(18))
    assert "puppet: -50.0 points" in loss_of(forty), "a further loss beside it"
    evaluated(forty, 4, wrong=[])
    assert not loss_of(forty)
    evaluated(forty, 5, wrong=range(12))
    assert loss_of(forty), "it is another one"


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
