"""Materialising in a real instance: versions, metadata, staleness, blocking checks, what is skipped."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.chain.evaluation import chain_of, evaluating
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system import interrupts
from eval_pipeline.defs.assets import suite_assets
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.operations.upkeep.resuming import partitions_of
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.watching.running import seen
from eval_pipeline.workspace.watching.status import Status, end_line, status_of
from eval_pipeline.workspace.watching.watch import Watch, wish_path
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.chains import stage_is_current, with_metrics
from eval_pipeline_tests.defs.runs import ASKING, REPORTS, SCORING, losing_a_turn, materialise, stale, versions
from eval_pipeline_tests.support import DAY, TWO_CASES, Lab, Puppet, case


def test_a_partition_has_versions_metadata_and_checks_on_record(small: Lab, instance: dg.DagsterInstance) -> None:
    first = materialise(small, instance)
    assert first.success
    found = versions(first)
    assert len(found) == 13 + 6  # the comparisons
    assert len({data for data, _ in found.values()}) >= 11 + 2
    for event in first.get_asset_materialization_events():
        shown = event.step_materialization_data.materialization.metadata
        assert "dagster/row_count" in shown
        assert shown["reused"].value is False
        if "eval_date" in shown:
            assert event.partition == "puppet"
            assert shown["eval_date"].value == DAY.isoformat()
    dated = {e.asset_key.path[-1] for e in first.get_asset_materialization_events() if e.partition}
    assert found.keys() - dated == {
        *("raw_dataset", "cases", "model_comparisons", "trends", "gold_suspects", "reviews", "comparison_published")
    }
    latest = instance.get_latest_materialization_event(dg.AssetKey(["small", "turn_metrics"]))
    assert latest is not None
    assert latest.asset_materialization is not None
    assert latest.asset_materialization.metadata["accuracy"].value == 1.0
    verdicts = first.get_asset_check_evaluations()
    assert all(check.passed for check in verdicts)
    assert {check.check_name for check in verdicts} == set(
        "every_case_read gold_holds oracle_and_null every_turn_scored_once no_metric_errors budget_kept readable "
        "plausible gold_usable no_significant_loss no_drift served_as_before".split()
    )
    places = {(check.asset_key.path[-1], check.partition) for check in first.get_asset_check_evaluations()}
    assert places == {("turn_metrics", "puppet"), ("cases", None), ("trends", None)}
    # Equal contents, equal data versions: nothing below becomes stale.
    assert versions(materialise(small, instance)) == found


def test_a_run_that_somebody_ends_while_it_scores_is_canceled(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = Watch.working

    def wished(self: Watch, what: str, *of: Any) -> Iterator[Any]:
        for item in working(self, what, *of):
            self.wished = what == "scoring"
            yield item

    monkeypatch.setattr(Watch, "working", wished)
    assert not materialise(small, instance, only=SCORING).success
    assert [run.status for run in instance.get_runs()] == [dg.DagsterRunStatus.CANCELED]


def test_a_run_that_somebody_ends_while_a_stage_looks_for_nobody_is_canceled_within_it(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated = suite_assets._evaluated

    def wished(context: dg.AssetExecutionContext, evaluation: Any, stage: Stage, inputs: Any) -> Any:
        if stage.name == "statistics":
            wish_path(small.home, context.run.run_id).touch()
            Event().wait(60)
            pytest.fail("nobody interrupts it")
        return evaluated(context, evaluation, stage, inputs)

    monkeypatch.setattr(interrupts, "BEAT_S", 0.01)
    with monkeypatch.context() as patched:
        patched.setattr(suite_assets, "_evaluated", wished)
        assert not materialise(small, instance).success
    assert [run.status for run in instance.get_runs()] == [dg.DagsterRunStatus.CANCELED]
    assert instance.get_latest_materialization_event(dg.AssetKey(["small", "turn_metrics"]))
    assert not instance.get_latest_materialization_event(dg.AssetKey(["small", "statistics"]))
    (card,) = seen(small.home)
    assert (card.state, card.status.step, card.progress) == ("stopped", "statistics", "canceled at statistics")
    assert (card.status.first["done"], card.status.first["readable"]) == (3, 3)
    assert materialise(small, instance).success
    assert seen(small.home) == [], "the run that makes it takes its place"


def test_a_run_is_one_card_from_its_first_stage_to_its_last(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two suites of a model version take turns; what was asked and spent of each stays, and the end is told once."""
    small.suite("other", [case("one", ("50", 50.0))])
    written, told = list[Status](), list[str]()
    write = Watch._write
    monkeypatch.setattr(Watch, "_write", lambda self: (written.append(status_of(self.status.text())), write(self)))
    monkeypatch.setattr("eval_pipeline.workspace.watching.watch.end_line", lambda *of: told.append(end_line(*of)))
    assert materialise(small, instance, "small", "other").success
    assert {(one.id, one.began, one.state) for one in written} == {(written[0].id, written[0].began, "running")}
    (run,) = instance.get_runs()
    assert written[0].id == run.run_id
    steps = [(one.place[0], one.step) for one in written]
    assert {"cases", "generations", "asking", "turn_metrics", "published", "trends", "comparison_published"} <= {
        step for suite, step in steps if suite == "small"
    }
    later = [one for one in written if one.step == "published"]
    assert {(one.place[0], one.first["done"], one.tokens) for one in later} == {("small", 3, 330), ("other", 1, 110)}
    assert {(one.number, one.evaluations) for one in later} == {(1, 2), (2, 2)}
    assert told == ["dagster: done"]
    assert seen(small.home) == []


@pytest.mark.parametrize("error", [EvalError("no room"), RuntimeError("a fault")])
def test_a_run_of_which_a_stage_fails_is_one_card_that_says_why_until_it_is_made(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: Any) -> Any:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("eval_pipeline.stages.score.attempted_turns", fails)
        assert not materialise(small, instance, only=SCORING).success
    (card,) = seen(small.home)
    assert (card.state, card.status.problems) == ("failed", [str(error)])
    assert partitions_of(card.status.request) == [Partition("small", "puppet", DAY)]
    assert materialise(small, instance, only=SCORING).success
    assert seen(small.home) == []


def test_after_a_changed_scorer_only_what_is_below_has_other_versions(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    before = versions(materialise(small, instance))
    assert stale(small, instance) == {}
    changed = [replace(m, version="2", function=lambda: 3.0) if m.name == "plan_steps" else m for m in TRACK.metrics]
    with_metrics(monkeypatch, TRACK, changed)
    Puppet.reset()
    assert stale(small, instance).keys() == {"turn_metrics", "gold_editions"}  # what is below, once that has other data
    assert stale(small, instance)["turn_metrics"] == {"code"}
    after = versions(materialise(small, instance))
    assert stale(small, instance) == {}
    assert not Puppet.asked
    assert {name for name in before if before[name][1] != after[name][1]} == {"turn_metrics", "gold_editions"}
    other_data = {name for name in before if before[name][0] != after[name][0]}
    above = {"raw_dataset", "cases", "generations", "recovery_attempts", "evidence"}
    assert {"turn_metrics", "statistics"} <= other_data
    assert other_data.isdisjoint(above)


def test_a_check_that_blocks_stops_its_own_suite_only(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, copies: list[Path]
) -> None:
    """Scoring loses a turn of one suite; the two others are published together."""
    small.suite("other", [case("one", ("50", 50.0))])
    small.suite("lossy", [case("one", ("50", 50.0)), case("two", ("7", 7.0))])
    losing_a_turn(monkeypatch, lambda inputs: inputs.suite == "lossy")
    result = materialise(small, instance, "lossy", "other", "small")
    assert not result.success
    made = {tuple(event.asset_key.path) for event in result.get_asset_materialization_events()}
    assert ("lossy", "turn_metrics") in made
    assert {name for suite, name in made if suite == "lossy"}.isdisjoint({"statistics", "published"})
    assert {("other", "published"), ("small", "published")} <= made
    assert len(copies) == 1
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert [(check.asset_key.path[0], check.check_name) for check in failed] == [("lossy", "every_turn_scored_once")]
    assert "of 2 planned turns 1 are missing" in (failed[0].description or "")
    assert small.sql("SELECT DISTINCT suite FROM statistics ORDER BY ALL") == [("other",), ("small",)]


def test_what_is_ready_early_is_published_with_the_rest_of_the_run(
    small: Lab, instance: dg.DagsterInstance, copies: list[Path]
) -> None:
    """Of one suite only the last step is chosen, of the other all: without a priority the first publishes at once."""
    materialise(small, instance)
    copies.clear()
    small.suite("other", [case("one", ("50", 50.0))])
    of_other = [f"other/{stage.name}" for stage in chain_of(TRACK) if stage.name not in REPORTS]
    result = materialise(small, instance, "other", "small", only=["small/published", *of_other])
    assert result.success
    assert small.sql("SELECT DISTINCT suite FROM statistics ORDER BY ALL") == [("other",), ("small",)]
    steps = [event.step_key for event in result.all_events if event.is_step_start]
    assert steps.index("small__published") > steps.index("other__statistics")
    assert len(copies) == 1


def test_what_the_user_can_mend_is_a_failure_without_a_trace(small: Lab, instance: dg.DagsterInstance) -> None:
    (small.home.data / "suites" / "small" / "cases" / "beta.yaml").write_text("id: beta\n")
    result = materialise(small, instance, only=ASKING)
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    data = failure.step_failure_data
    assert data.user_failure_data is not None
    assert "small/cases/beta.yaml:1: turns: is missing" in (data.user_failure_data.description or "")
    assert not instance.get_latest_materialization_event(dg.AssetKey(["small", "generations"]))


ELSEWHERE = {"predictions": {"other": {"file": "mine/other.jsonl", "content_hash": "0"}}}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"provider": "recorded", **ELSEWHERE}, "has no predictions for the suite"),
        ({"provider": "simulated"}, "has no rates for the track 'finqa'"),
    ],
)
def test_a_version_skips_suites_that_it_cannot_answer_and_says_why(
    small: Lab, instance: dg.DagsterInstance, settings: dict[str, Any], why: str
) -> None:
    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "mine", **settings})
    instance.add_dynamic_partitions(DIMENSION, ["mine"])
    result = materialise(small, instance, partition_key="mine")
    assert result.success
    made = {event.asset_key.path[-1] for event in result.get_asset_materialization_events()}
    assert made == {"raw_dataset", "cases"}
    skipped = {event.step_key for event in result.all_events if event.event_type == dg.DagsterEventType.STEP_SKIPPED}
    assert {"small__recovery_attempts", "small__turn_metrics", "small__published"} <= skipped
    alone = materialise(small, instance, only=["small/turn_metrics"], partition_key="mine")
    told = [check.description or "" for check in alone.get_asset_check_evaluations()]
    assert told
    assert all(why in text for text in told)


def test_later_steps_alone_are_skipped_too_where_there_are_no_predictions(
    small: Lab, instance: dg.DagsterInstance
) -> None:
    elsewhere = {"other": {"file": "mine/other.jsonl", "content_hash": "0"}}
    small.versions({"name": "mine", "provider": "recorded", "predictions": elsewhere})
    instance.add_dynamic_partitions(DIMENSION, ["mine"])
    for name in ("recovery_attempts", "evidence", "turn_metrics", "statistics", "published"):
        result = materialise(small, instance, only=[f"small/{name}"], partition_key="mine")
        assert result.success, name
        assert not result.get_asset_materialization_events(), name


def test_who_follows_the_marks_until_none_is_left_has_everything_made_anew(
    small: Lab, instance: dg.DagsterInstance
) -> None:
    """Though no arrow leads from the files to the aggregates, whose options they hold, nor from gold to scores."""
    materialise(small, instance)
    small.suite(options={"ceiling_threshold": 0.9})
    materialise(small, instance, only=["small/raw_dataset"])
    marked = follow_the_marks(small, instance)
    assert marked[0] == {"cases"}
    assert "complexity_ceiling" in set().union(*marked)
    assert small.sql("SELECT DISTINCT threshold FROM complexity_ceiling") == [(0.9,)]
    small.suite(cases=[{**found, "tags": ["new"]} for found in TWO_CASES], options={"ceiling_threshold": 0.9})
    materialise(small, instance, only=["small/raw_dataset"])
    follow_the_marks(small, instance)
    workspace, partition = small.workspace(), Partition("small", "puppet", DAY)
    for stage in evaluating(chain_of(TRACK)):
        assert not stage.writes or stage_is_current(workspace, partition, stage.name), stage.name
    assert not Puppet.asked, "no prompt has changed"


def follow_the_marks(lab: Lab, instance: dg.DagsterInstance) -> list[set[str]]:
    """Materialises what is marked as out of date, until nothing is: what was marked, time after time."""
    found: list[set[str]] = []
    Puppet.reset()
    while marked := set(stale(lab, instance)):
        found.append(marked)
        assert len(found) < 20
        assert materialise(lab, instance, only=[f"small/{name}" for name in marked]).success
    return found


def test_a_changed_first_attempt_changes_the_error_analysis(small: Lab) -> None:
    """Turns that recovered score the same, whatever had been wrong with them first."""
    small.evaluate()
    workspace, partition = small.workspace(), Partition("small", "puppet", DAY)
    assert stage_is_current(workspace, partition, "error_analysis")
    key = RecordKey.of(partition)
    header, rows = workspace.record.header(GENERATIONS, key), workspace.record.read(GENERATIONS, key).to_pydict()
    assert header is not None
    columns = {column.name: rows[column.name] for column in GENERATIONS.columns} | {"error_message": ["other"] * 3}
    with workspace.record.writer(GENERATIONS, key, header.made_from) as writer:
        writer.write(columns)
    assert not stage_is_current(workspace, partition, "error_analysis")
