"""Scoring again what is on record: nobody is asked, whatever became of the model version or of its calls."""

from pathlib import Path

import pytest

from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.operations.runs.rescoring import ChosenEvaluations, Rescored, evaluations, outdated, rescore
from eval_pipeline.providers.base import CallError
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline_tests.chains import with_other_code
from eval_pipeline_tests.support import DAY, Lab, Puppet

HERE = Partition("small", "puppet", DAY)


def scored_again(lab: Lab) -> Rescored:
    """Brings the evaluation to code as it is now, as a process started anew does."""
    return rescore(lab.workspace(), [HERE])[0]


def waiting(lab: Lab) -> list[Partition]:
    """Which evaluations other code has scored."""
    workspace = lab.workspace()
    return outdated(workspace, evaluations(workspace, ChosenEvaluations()))


@pytest.fixture
def evaluated(small: Lab, puppet: type[Puppet], module_folder: Path) -> Lab:
    made = small.made_once(module_folder / "evaluated", lambda lab: lab.evaluate(publish=True))
    puppet.asked.clear()
    return made


def test_other_code_of_any_stage_waits_until_it_is_scored_again(
    evaluated: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert waiting(evaluated) == []
    stages = ("cases_code", "attempts_code", "evidence_code", "scoring_code", "aggregate_code")
    for one in stages:
        with monkeypatch.context() as patch:
            with_other_code(patch, one)
            assert waiting(evaluated) == [HERE], one
    with_other_code(monkeypatch, *stages)
    found = scored_again(evaluated)
    assert not found.problem and found.before == found.after
    assert waiting(evaluated) == []
    assert not puppet.asked


def test_a_dry_run_names_what_waits_and_scores_nothing(evaluated: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with_other_code(monkeypatch, "scoring_code")
    said = evaluated.cli("rescore", "--dry-run")
    assert said.code == 0 and "small · puppet · 2026-03-01: 3 turns" in said.out, said.text
    assert waiting(evaluated) == [HERE]


def test_what_figures_were_is_kept_once(evaluated: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    before = evaluated.one("SELECT count(*) FROM statistics")
    with_other_code(monkeypatch, "scoring_code")
    for _ in range(2):
        scored_again(evaluated)
        assert evaluated.one("SELECT count(*) FROM superseded_statistics") == before


@pytest.mark.always
def test_a_model_version_that_is_gone_is_scored_again(
    evaluated: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated.versions({"name": "another", "provider": "puppet"})
    with_other_code(monkeypatch, "scoring_code")
    assert waiting(evaluated) == [HERE]
    found = scored_again(evaluated)
    assert not found.problem and found.before == found.after
    assert waiting(evaluated) == [] and not puppet.asked


def test_one_that_another_run_puts_aside_meanwhile_stops_no_other(
    evaluated: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_other_code(monkeypatch, "scoring_code")
    gone = Partition("small", "gone", DAY)
    first, second = rescore(evaluated.workspace(), [gone, HERE])
    assert "turn_results" in first.problem and (first.turns, first.after) == (0, None)
    assert not second.problem and waiting(evaluated) == []


@pytest.mark.always
def test_calls_that_failed_stay_failed(small: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = puppet.answer
    puppet.answer = staticmethod(
        lambda call: (
            CallError(CallErrorKind.BAD_REQUEST, "the line is dead") if call.case_id == "alpha" else oracle(call)
        )
    )
    small.evaluate(publish=True)
    query = "SELECT case_id, turn_index, call_error FROM attempts ORDER BY ALL"
    before = small.sql(query)
    assert {kind for case, _, kind in before if case == "alpha"} == {"bad_request"}
    puppet.reset()
    with_other_code(monkeypatch, "attempts_code")
    assert not scored_again(small).problem
    assert small.sql(query) == before
    assert not puppet.asked


def test_a_evaluation_of_a_part_is_scored_again_as_it_was_asked_for(
    small: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    small.evaluate(scope=Scope(cases=("alpha",)), epoch="night", publish=True)
    puppet.asked.clear()
    turns = small.one("SELECT count(*) FROM turn_results")
    with_other_code(monkeypatch, "attempts_code")
    assert scored_again(small).turns == turns
    assert small.one("SELECT count(*) FROM turn_results") == turns and not puppet.asked


def test_no_run_is_left_under_way(evaluated: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with_other_code(monkeypatch, "scoring_code")
    monkeypatch.setattr("eval_pipeline.stages.score.score", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scored_again(evaluated)
    assert evaluated.sql("SELECT status FROM runs WHERE status = 'running'") == []


def test_changed_questions_are_no_matter_of_scoring(evaluated: Lab, puppet: type[Puppet]) -> None:
    path = evaluated.home.data / "suites" / "small" / "cases" / "alpha.yaml"
    path.write_text(path.read_text().replace("question: ", "question: Now, ", 1))
    found = scored_again(evaluated)
    assert "`eval-pipeline run`" in found.problem and found.after is None
    assert not puppet.asked
