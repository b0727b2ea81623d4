"""Comparisons of a suite in the record: what is held against what, breaks, verdicts, losses, and what they say."""

import json
from dataclasses import replace
from datetime import date
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eval_pipeline.analysis.baseline import baseline_verdict
from eval_pipeline.analysis.comparisons.compared import evaluations_by_name, newest_trends, series_of
from eval_pipeline.analysis.comparisons.evaluations import evaluations_of, latest
from eval_pipeline.analysis.comparisons.making import compare_models, make_trends
from eval_pipeline.analysis.comparisons.pairs import _fronts, comparison_rows
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.analysis.comparisons.trends import trend_rows
from eval_pipeline.analysis.comparisons.turning import turned
from eval_pipeline.analysis.comparisons.verdicts import SIDE_BY_SIDE, check_no_drift, check_no_loss
from eval_pipeline.analysis.gold.suspects import audit_gold
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import MODEL_COMPARISONS, TRENDS, TURN_RESULTS
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.analysis.comparisons.histories import CASES, SILENT, answering, evaluated, night, rows, saying
from eval_pipeline_tests.chains import checked, compared, with_metrics
from eval_pipeline_tests.support import Lab, Said, case, command, number


def test_a_pair_is_compared_on_its_latest_full_evaluations(forty: Lab) -> None:
    evaluated(forty, 0, wrong=range(20))
    evaluated(forty, 1, wrong=[0])
    evaluated(forty, 2, wrong=range(20), scope=Scope(cases=("c00",)))
    evaluated(forty, 0, wrong=range(15), version="other")
    (row,) = rows(forty, MODEL_COMPARISONS)
    assert (row["model_a"], row["model_b"], row["eval_date_a"], row["eval_date_b"]) == (
        "other", "puppet", night(0), night(1),
    )  # fmt: skip
    assert (row["n"], row["clusters"], row["accuracy_a"], row["accuracy_b"]) == (40, 20, 0.25, 0.95)
    assert (row["broken"], row["fixed"], row["changed_conversations"]) == (0, 28, 14)
    assert json.loads(row["fixed_turns"])[:2] == ["small/c01#0", "small/c01#1"]
    assert (row["verdict"], row["method"], row["eval_date"]) == ("b_better", "t_clustered", night(1))
    assert row["low_corrected"] > 0
    assert row["tokens_difference"] == 0.0
    assert row["usd_difference"] is None


def test_a_part_is_not_held_against_the_whole(forty: Lab) -> None:
    """Six turns of one with all of another: neither paired nor on the front, in the table and in the store."""
    evaluated(forty, 0)
    evaluated(forty, 0, wrong=range(12), version="other")
    evaluated(forty, 1, wrong=[0], version="third", scope=Scope(cases=("c00",)))
    found = rows(forty, MODEL_COMPARISONS)
    assert [(row["model_a"], row["model_b"]) for row in found] == [("other", "puppet")]


def test_an_evaluation_put_aside_while_others_are_compared_is_left_out(forty: Lab) -> None:
    """Another run of its date makes it anew; that run compares it afterwards."""
    evaluated(forty, 0)
    evaluated(forty, 0, wrong=range(12), version="other")
    evaluated(forty, 0, wrong=range(4), version="third")
    inputs = Inputs(forty.workspace(), "small")
    assert len(evaluations_by_name(inputs)) == 3, "looked up, as the stage does for what it is made from"
    looked_up = dict(inputs.held)
    forty.workspace().record.path(TURN_RESULTS, RecordKey.of(Partition("small", "third", night(0)))).unlink()
    outputs: Any = Collected()
    for stage in (compare_models, make_trends, audit_gold):
        stage(replace(inputs, held=dict(looked_up)), outputs)
    assert [(row["model_a"], row["model_b"]) for row in outputs.made["model_comparisons"]] == [("other", "puppet")]
    assert {row["model_version"] for row in outputs.made["trends"]} >= {"other", "puppet"}
    assert {row["model_versions"] for row in outputs.made["gold_suspects"]} <= {0, 2}


class Collected:
    """What stages write, by table."""

    def __init__(self) -> None:
        self.made_from = dict[str, str]()
        self.made = dict[str, list[Any]]()

    def rows(self, table: Table) -> list[Any]:
        return self.made.setdefault(table.name, [])


def test_three_model_versions_are_corrected_for_three_pairs(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 0, wrong=range(12), version="other")
    evaluated(forty, 0, wrong=range(4), version="third")
    found = {(row["model_a"], row["model_b"]): row for row in rows(forty, MODEL_COMPARISONS)}
    assert {row["pairs"] for row in found.values()} == {3}
    assert all(row["p_corrected"] >= row["p_value"] for row in found.values())
    assert found["other", "puppet"]["verdict"] == "b_better"
    few = found["puppet", "third"]
    assert (few["verdict"], few["method"], few["p_value"]) == ("not_significant", "mcnemar_exact", 0.125)
    assert few["low_corrected"] < 0 < few["high_corrected"]
    assert (found["other", "puppet"]["on_front_b"], found["other", "puppet"]["on_front_a"]) == (True, False)


def test_nobody_is_on_a_front_alone() -> None:
    """A part beside the whole, and a model beside a stand-in: neither is held against the other."""

    def fronts(*kinds: tuple[str, bool]) -> list[bool | None]:
        scored = SimpleNamespace(values=dict.fromkeys(("correct", "usd", "tokens"), np.ones(2)))
        group: Any = {
            number: (SimpleNamespace(scope=scope, simulated=simulated), scored)
            for number, (scope, simulated) in enumerate(kinds)
        }
        return [on_front for _, on_front in _fronts(group).values()]

    part = '{"cases":["x"]}'
    assert fronts(("full", False), (part, False)) == [None, None]
    assert fronts(("full", False), ("full", True)) == [None, None]
    assert fronts(("full", False), ("full", False), (part, False)) == [True, True, None]


def test_turns_whose_gold_has_changed_are_not_common(forty: Lab) -> None:
    evaluated(forty, 0, version="other")
    forty.suite(cases=[case("c00", ("51", 51.0), ("add(50, 7)", 57.0)), *CASES[1:]])
    evaluated(forty, 1)
    (row,) = rows(forty, MODEL_COMPARISONS)
    assert row["n"] == 39


def test_a_loss_is_told_on_its_night_and_after(forty: Lab) -> None:
    for count, wrong in enumerate(([0], [1], [*range(14)], [*range(13)])):
        evaluated(forty, count, wrong)
        (*_, last) = rows(forty, TRENDS)
        assert last["verdict"] == ("start", "no_change", "loss", "drift_down")[count]
        loss, drift = (checked(check, forty.workspace(), "small") for check in (check_no_loss, check_no_drift))
        assert (loss.passed, drift.passed) == (count < 2, count != 3)
        if count == 2:
            assert loss.text.startswith(f"puppet: −65 points [−{-100 * last['previous_low']:.0f} to ")
            assert f"against {night(1)} on 40 turns" in loss.text
    found = rows(forty, TRENDS)
    assert [row["previous_date"] for row in found] == [None, night(0), night(1), night(2)]
    assert [row["first_date"] for row in found] == [None, night(0), night(0), night(0)]
    assert [row["accuracy"] for row in found] == [0.95, 0.95, 0.3, 0.35]
    assert (found[2]["previous_broken"], found[2]["previous_fixed"]) == (26, 0)
    evaluated(forty, 4, version="other")
    compared(forty.workspace(), "small")
    drift = checked(check_no_drift, forty.workspace(), "small")
    assert (drift.passed, drift.facts["model_versions"]) == (False, 2), "other dates of others change nothing"
    assert "puppet" in drift.text
    assert {row["model_version"] for row in newest_trends(forty.workspace(), "small")} == {"puppet", "other"}


def test_no_verdict_is_given_across_a_changed_suite_and_a_break_ends_what_is_open(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 1, wrong=range(14))
    forty.suite(cases=[*CASES, case("c20", ("50", 50.0))])
    evaluated(forty, 2, wrong=range(15))
    evaluated(forty, 3, wrong=range(15))
    first, lost, changed, after = rows(forty, TRENDS)
    assert (first["verdict"], first["break_reason"]) == ("start", None)
    assert (lost["verdict"], lost["open_loss_date"]) == ("loss", night(1))
    assert (changed["verdict"], changed["break_reason"], changed["open_loss_date"]) == ("break", "suite", None)
    assert changed["previous_verdict"] is changed["previous_date"] is changed["first_date"] is None
    assert (after["verdict"], after["first_date"], after["break_reason"]) == ("no_change", night(2), None)


def test_a_series_that_goes_on_has_the_rows_that_it_would_have_anew(forty: Lab) -> None:
    for count, wrong in enumerate(([0], [1], [*range(14)], [*range(13)], [*range(30)], [0])):
        evaluated(forty, count, wrong)
        made = rows(forty, TRENDS)
    forty.suite(cases=[*CASES, case("c20", ("50", 50.0))])
    for count, wrong in enumerate(([], range(15), range(14)), start=6):
        evaluated(forty, count, wrong)
    inputs = Inputs(forty.workspace(), "small")
    series = series_of(evaluations_by_name(inputs)["puppet"])
    anew = list(trend_rows(inputs.workspace, series, TurnReader(inputs.workspace)))
    verdicts = ["start", "no_change", "loss", "drift_down", "loss", "gain", "break", "loss", "drift_down"]
    assert [row["verdict"] for row in anew] == verdicts
    for known in range(len(anew) + 1):
        read: list[Partition] = []
        reader = TurnReader(inputs.workspace)
        reader.read = lambda one, read=read, of=reader.read: read.append(one.partition) or of(one)  # type: ignore
        assert list(trend_rows(inputs.workspace, series, reader, anew[:known])) == anew
        assert len({*read}) <= len(anew) - known + 4, "the first, the previous one, a loss, and what was better"
    assert rows(forty, TRENDS)[: len(made)] == made
    assert [row | {"retired": False} for row in anew] == [
        {name: value for name, value in row.items() if name != "suite"} for row in rows(forty, TRENDS)
    ]


def test_evaluations_scored_otherwise_are_not_tested(forty: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(forty, 0)
    evaluated(forty, 0, version="other")
    with_metrics(monkeypatch, TRACK, (replace(metric, version="next") for metric in TRACK.metrics))
    evaluated(forty, 1, wrong=range(15))
    (row,) = rows(forty, MODEL_COMPARISONS)
    assert (row["verdict"], row["p_value"], row["method"]) == (None, None, "none")
    assert "differ in scorer" in row["reason"]
    series = [row for row in rows(forty, TRENDS) if row["model_version"] == "puppet"]
    assert [(row["verdict"], row["break_reason"]) for row in series] == [("start", None), ("break", "scorer")]


def test_parts_of_the_suite_and_what_is_half_made_are_no_part_of_the_series(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 1, wrong=[0], scope=Scope(cases=("c00",)))
    evaluated(forty, 2)
    assert [row["eval_date"] for row in rows(forty, TRENDS)] == [night(0), night(2)]
    record = forty.workspace().record
    key = RecordKey.of(Partition("small", "puppet", night(2)))
    kept = record.read(TURN_RESULTS, key, [column.name for column in TURN_RESULTS.columns]).slice(1)
    with record.writer(TURN_RESULTS, key, {}) as writer:
        writer.write(kept.to_pydict())
    assert [row["eval_date"] for row in rows(forty, TRENDS)] == [night(0)]


def test_nothing_is_done_where_nothing_changed_and_other_series_are_taken_over(
    forty: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eval_pipeline.analysis.comparisons.scored import TurnReader

    for count in (0, 1):
        evaluated(forty, count)
    evaluated(forty, 0, version="other")
    before = rows(forty, TRENDS)
    assert compared(forty.workspace(), "small")
    read: list[Partition] = []
    original = TurnReader.read
    monkeypatch.setattr(
        TurnReader,
        "read",
        lambda self, found: read.append(found.partition) or original(self, found),  # type: ignore[func-returns-value]
    )
    assert rows(forty, TRENDS) == before
    assert read == []
    evaluated(forty, 1, version="other")
    assert not compared(forty.workspace(), "small")
    assert len(rows(forty, TRENDS)) == 4
    trends_read = [partition for partition in read if partition == Partition("small", "puppet", night(0))]
    assert trends_read == [], "the series of puppet has not changed"


@pytest.mark.always
def test_the_baseline_gate_and_compare_tell_a_loss_and_refuse_what_they_do_not_know(forty: Lab) -> None:
    evaluated(forty, 0)
    evaluated(forty, 0, wrong=range(14), version="other")
    workspace = forty.workspace()
    sentence = baseline_verdict(workspace, Partition("small", "other", night(0)), "puppet")
    assert sentence.startswith("small, other: worse than puppet on 40 turns: −70 points [−9")
    assert baseline_verdict(workspace, Partition("small", "puppet", night(0)), "other") is None
    assert "no evaluation" in str(baseline_verdict(workspace, Partition("small", "puppet", night(0)), "third"))
    said = command("compare", "other", "puppet")
    assert said.code == 0, said.text
    assert "puppet is significantly better" in said.out
    assert "only puppet right" in said.out
    (row,) = json.loads(command("compare", "puppet", "other", "--format", "json").out)
    assert (row["difference"], row["verdict"], len(row["broken_turns"])) == (-0.7, "a_better", 28)
    for second in (["third"], ["puppet"], ["nobody"], ["other", "--format", "x"]):
        refused = command("compare", "puppet", *second)
        assert (refused.code, refused.out) == (2, ""), second


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
            assert f"the loss of {night(1)} is still open: −60.0 points against {night(0)}" in said
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
    assert "puppet: −70 points" in loss_of(forty)
    assert "puppet: −70 points" in loss_of(forty, {"puppet": night(1)})
    assert loss_of(forty, {"other": night(5)}) == "", "what puppet lost is not what was asked"
    evaluated(forty, 6, wrong=range(14), version="other")
    told = loss_of(forty)
    for name in ("puppet", "other"):
        assert f"{name}: −70 points" in told
        assert f"`eval-pipeline acknowledge --suite small --model-version {name} --why …`" in told
    forty.versions({"name": "puppet", "provider": "puppet", "active": False}, {"name": "other", "provider": "puppet"})
    told = loss_of(forty)
    assert "other: −70 points" in told and "puppet: " not in told


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
    assert "puppet: −50 points" in loss_of(forty), "a further loss beside it"
    evaluated(forty, 4, wrong=[])
    assert not loss_of(forty)
    evaluated(forty, 5, wrong=range(12))
    assert loss_of(forty), "it is another one"


@pytest.mark.parametrize("silent", [range(0), range(12, 18)])
def test_turned_is_what_is_made_the_other_way_round(forty: Lab, silent: range) -> None:
    wrong = dict.fromkeys(range(4, 12), number(-1)) | dict.fromkeys(silent, SILENT)
    answering(forty, "puppet", saying({1: number(7)}.get))
    answering(forty, "other", saying(wrong.get, 130))
    workspace = forty.workspace()
    found = evaluations_of(workspace, "small")
    a, b = latest(found["puppet"]), latest(found["other"])
    (there,), (back,) = (comparison_rows([pair], TurnReader(workspace)) for pair in ((a, b), (b, a)))
    assert there["broken"] != there["fixed"]
    assert there["tokens_difference"] != 0
    mine = turned(there)
    assert mine.keys() == back.keys()
    for name, value in back.items():
        exactly = value if not isinstance(value, float) else pytest.approx(value)
        assert mine[name] == exactly, name
    assert turned(mine) == there
