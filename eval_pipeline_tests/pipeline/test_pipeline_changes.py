"""After a change just that is done again which follows from it."""

import json
from dataclasses import replace

import pytest
import yaml

from eval_pipeline.analysis.aggregates import aggregates_of
from eval_pipeline.workspace.evaluations import causes, evaluations
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.chains import with_metrics, with_other_code
from eval_pipeline_tests.support import TWO_CASES, Lab, Puppet, number, response

AGGREGATES = aggregates_of(TRACK)
PRICED = {"name": "puppet", "provider": "puppet", "price": {"input": 10, "output": 20}}
ASKING = {"generations", "recovery_attempts"}
AFTER = {"error_analysis", "coverage", "gold_editions"}
"""Aggregates that read the attempts or the cases too."""


def done_again(lab: Lab, upto: str = "") -> set[str]:
    """Names of the stages that another evaluation does not find up to date."""
    return {name for name, result in lab.evaluate(upto=upto).items() if not result.reused}


def test_a_changed_metric_is_scored_again_without_asking(
    evaluated: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorers = "SELECT DISTINCT metric, scorer_version FROM metrics WHERE metric <> 'plan_steps' ORDER BY 1"
    before = evaluated.sql(scorers)
    assert len(before) == len(TRACK.metrics) - 1
    changed = [
        replace(metric, version="2", function=lambda: 17) if metric.name == "plan_steps" else metric
        for metric in TRACK.metrics
    ]
    with_metrics(monkeypatch, TRACK, changed)
    assert done_again(evaluated) == {"turn_metrics", *AGGREGATES}
    assert not puppet.asked
    assert puppet.opened == 0
    rows = evaluated.sql("SELECT DISTINCT metric, value, scorer_version FROM metrics WHERE metric = 'plan_steps'")
    assert rows == [("plan_steps", 17.0, "2")]
    assert evaluated.one("SELECT mean FROM statistics WHERE metric = 'plan_steps' AND split = 'all'") == 17.0
    assert evaluated.sql(scorers) == before


def test_a_changed_case_asks_for_its_own_turns_only(evaluated: Lab, puppet: type[Puppet]) -> None:
    path = evaluated.home.data / "suites" / "small" / "cases" / "alpha.yaml"
    changed = yaml.safe_load(path.read_text())
    changed["document"]["pre_text"] += " it was restated."
    path.write_text(yaml.safe_dump(changed, sort_keys=False))
    assert done_again(evaluated) >= {"raw_dataset", "cases", *ASKING, "evidence", "turn_metrics", *AFTER}
    assert puppet.turns_asked() == ["alpha#0", "alpha#1"]
    after, before = evaluations(evaluated.workspace(), "small")
    assert causes(before, after) == ["cases changed"]


def test_a_new_and_a_removed_case_leave_the_others_alone(published: Lab, puppet: type[Puppet]) -> None:
    folder = published.suite(cases=[TWO_CASES[1] | {"id": "gamma"}])
    (folder / "cases" / "beta.yaml").unlink()
    published.evaluate(publish=True)
    assert puppet.turns_asked() == ["gamma#0"]
    assert published.sql("SELECT DISTINCT case_id FROM turn_results ORDER BY 1") == [("alpha",), ("gamma",)]
    assert published.sql("SELECT DISTINCT case_id FROM cases ORDER BY 1") == [("alpha",), ("gamma",)]


def test_a_file_that_only_looks_different_asks_nothing(evaluated: Lab, puppet: type[Puppet]) -> None:
    """A comment changes the suite's hash and nothing that a model or a metric sees."""
    path = evaluated.home.data / "suites" / "small" / "cases" / "beta.yaml"
    path.write_text("# reviewed\n" + path.read_text())
    # Where a case lies in its file is a column of `cases`, which these three read.
    assert done_again(evaluated).isdisjoint(AGGREGATES.keys() - {"gold_editions", "coverage", "statistics"})
    assert not puppet.asked


def test_a_changed_price_changes_the_dollars_without_a_call(lab: Lab, puppet: type[Puppet]) -> None:
    """Those of recovery attempts, too."""
    lab.suite()
    lab.versions(PRICED)
    puppet.answer = staticmethod(lambda call: response("{", 100, 10) if call.number == 0 else call.gold.oracle())
    lab.evaluate()
    before = lab.one("SELECT usd_total FROM cost_per_correct_answer")
    assert before == pytest.approx(6 * (100 * 10 + 10 * 20) / 1e6)
    lab.versions(PRICED | {"price": {"input": 30, "output": 60}})
    puppet.reset()
    lab.evaluate(publish=True)
    assert not puppet.asked
    assert lab.one("SELECT usd_total FROM cost_per_correct_answer") == pytest.approx(3 * before)
    assert lab.one("SELECT sum(usd) FROM attempts") == pytest.approx(3 * before)
    assert json.loads(lab.one("SELECT settings FROM model_versions"))["price"]["input"] == 30


def test_limits_and_notes_of_a_model_version_may_change(evaluated: Lab, puppet: type[Puppet]) -> None:
    evaluated.versions(
        {"name": "puppet", "provider": "puppet", "concurrency": 2, "description": "new", "active": False}
    )
    assert done_again(evaluated) == set()
    assert not puppet.asked


@pytest.mark.parametrize(
    "change",
    [
        {"max_tokens": 5},
        {"samples_per_turn": 2},
        {"max_recovery_attempts": 0},
        {"history": "own"},
        {"model": "other"},
        {"sampling": {"temperature": 0.5}},
    ],
)
def test_what_can_change_a_response_makes_another_evaluation(
    evaluated: Lab, puppet: type[Puppet], change: dict[str, object]
) -> None:
    evaluated.versions({"name": "puppet", "provider": "puppet", **change})
    evaluated.evaluate(run_id="later", upto="statistics")
    after, before = evaluations(evaluated.workspace(), "small")
    (setting,) = [next(iter(value)) if isinstance(value, dict) else name for name, value in change.items()]
    assert causes(before, after) == [f"options changed: {setting}"]


def test_a_changed_option_of_the_suite_makes_only_the_aggregates_again(evaluated: Lab, puppet: type[Puppet]) -> None:
    evaluated.suite(options={"ceiling_threshold": 0.8})
    assert done_again(evaluated) == {"raw_dataset", "cases", *AGGREGATES}  # the files are read, and give the same cases
    assert not puppet.asked
    assert evaluated.sql("SELECT DISTINCT threshold FROM complexity_ceiling") == [(0.8,)]


def test_a_changed_parser_runs_the_journalled_responses_again(
    evaluated: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_other_code(monkeypatch, "attempts_code")
    puppet.answer = staticmethod(lambda call: number(-99))
    assert done_again(evaluated, "turn_metrics") >= ASKING
    assert not puppet.asked
    assert evaluated.one("SELECT count(*) FROM turn_results WHERE correct") == 3


def test_changed_predictions_are_refused_under_the_same_name(lab: Lab) -> None:
    lab.suite()
    rows = [{"case_id": "alpha", "turn_index": 0, "answer": "50"}]
    file = lab.home.root.parent / "predictions.jsonl"
    arguments = ("import", "predictions", str(file), "--suite", "small", "--model-version", "mine")
    for answer, code in (("50", 0), ("50", 0), ("51", 2)):
        file.write_text(json.dumps(rows[0] | {"answer": answer}) + "\n")
        said = lab.cli(*arguments)
        assert said.code == code, said.text
    assert "give another --model-version" in said.err
