"""The canary of a run on a real wire: what it spares, what it keeps, and how a run goes on after it."""

import json
import re
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.asking import limits
from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.defs.assets.partitions import CANARY, run_context
from eval_pipeline.providers.base import CallError
from eval_pipeline.stages.attempts import canary, model_calls
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.fakes.anthropic_messages import Body, question
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.fakes.misconfigured import CONVERSATIONS, TURNS, MisconfiguredServer, cases, value
from eval_pipeline_tests.remote import PACE, charged
from eval_pipeline_tests.support import DAY, Lab, Puppet, Said, number

PLANNED = CONVERSATIONS * TURNS
RUN = ("run", "--no-report", "--eval-date", DAY.isoformat())
WRONG = {"answer_path": "$.result.calculation", "answer_field": "answr"}
RIGHT = {"answer_path": "$.result.calculation", "answer_field": "calculation"}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr(model_calls, "PACE", PACE)
    monkeypatch.setattr(limits, "_limits", {})


def entry(server: MisconfiguredServer, options: dict[str, Any] = WRONG, **fields: Any) -> dict[str, Any]:
    where = {"base_url": server.url, "path": "/ask"}
    return {"name": "ours", "provider": "http", "max_recovery_attempts": 0, "options": where | options} | fields


def prepare(lab: Lab, server: MisconfiguredServer, options: dict[str, Any] = WRONG, **fields: Any) -> Lab:
    lab.suite(cases=cases())
    lab.versions(entry(server, options, **fields))
    return lab


def test_a_second_run_says_the_same_and_asks_nothing(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        first = prepare(lab, server).cli(*RUN)
        asked = server.asked
        second = lab.cli(*RUN)
    assert first.code == second.code == 1
    assert canary.TURNS <= asked < canary.TURNS + 2 * TURNS
    assert server.asked == asked
    assert second.err == first.err
    assert lab.sql("SELECT status FROM runs") == [("failed",), ("failed",)]


def test_what_was_answered_is_shown_on_the_terminal_and_kept_by_nobody_else(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(cases=cases())
    lab.versions({"name": "puppet", "provider": "puppet"})
    puppet.answer = staticmethod(lambda call: f"{call.turn_id} is unreadable, it says zebra-quartz-7391")
    said = lab.cli(*RUN)
    assert "stopped after the first" in said.err
    assert "(e.g. to small/" in said.err and "zebra-quartz-7391" in said.err
    kept = [path for path in lab.home.dagster.rglob("*") if path.is_file()]
    assert any(b"stopped after the first" in path.read_bytes() for path in kept)
    assert not [path for path in kept if b"zebra" in path.read_bytes()]


def test_what_is_in_flight_is_not_tried_again_after_a_stop(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(cases=cases())
    lab.versions({"name": "puppet", "provider": "puppet", "concurrency": 4})
    puppet.answer = staticmethod(lambda call: CallError(CallErrorKind.BAD_REQUEST, "HTTP 400: no model of that name"))
    said = lab.cli(*RUN)
    assert "no answer can be read (5 × bad_request); e.g. to small/" in said.err, "no response is quoted: it is told"
    assert len(puppet.asked) < canary.HOPELESS + 4


def test_the_canary_is_of_whole_conversations(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        prepare(lab, server).cli(*RUN)
        turns = sorted(server.questions)
    conversations = {conversation for conversation, _ in turns}
    assert turns == [(conversation, turn) for conversation in sorted(conversations) for turn in range(TURNS)]
    assert conversations != set(range(len(conversations)))  # drawn, not the first ones


def test_mended_under_the_same_name_it_runs(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        assert prepare(lab, server).cli(*RUN).code == 1
        lab.versions(entry(server, RIGHT))
        said = lab.cli(*RUN)
        asked = server.asked
    assert said.code == 0, said.err
    assert lab.sql("SELECT count(*), bool_and(correct) FROM turn_results") == [(PLANNED, True)]
    assert asked == PLANNED + canary.TURNS


def test_what_has_results_still_refuses_other_settings(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        assert prepare(lab, server, RIGHT).cli(*RUN).code == 0
        lab.versions(entry(server, WRONG))
        said = lab.cli("run", "--no-report", "--eval-date", "2026-03-02")
    assert said.code == 1
    assert "has results made with other settings (changed: options)" in said.err


def test_no_canary_goes_on_and_the_check_fails(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        first = prepare(lab, server).cli(*RUN)
        told = lab.cli(*RUN, "--no-canary")
        assert server.asked == PLANNED  # what the canary was answered counts
        again = lab.cli(*RUN)
        assert server.asked == PLANNED
    assert "stopped after the first 20 of 60 turns" in first.err
    for said in (told, again):
        assert said.code == 1
        assert f"only 0 of {PLANNED} answers can be read ({PLANNED} × value_error)" in said.err
        assert "set options.answer_field to 'calculation'" in said.err
        assert "0.0% readable" in said.out
    assert lab.one("SELECT status FROM runs ORDER BY started_at DESC LIMIT 1") == "complete"


def test_the_243_unreadable_answers_of_a_wrong_answer_field_are_no_plain_zero(lab: Lab) -> None:
    """As it was met: 243 turns, headline 0.0%, exit 0."""
    lab.suite(cases=[{**found, "id": f"{found['id']}_{copy}"} for copy in range(5) for found in cases()][:61])
    with MisconfiguredServer({"says": "calculation"}) as server:
        lab.versions(entry(server))
        said = lab.cli(*RUN)
        went_on = lab.cli(*RUN, "--no-canary")
    assert (said.code, went_on.code) == (1, 1)
    assert "stopped after the first 20 of 244 turns: no answer can be read" in said.err
    assert "only 0 of 244 answers can be read" in went_on.err


@pytest.mark.parametrize("setting", ["0", "false"])
def test_the_environment_takes_the_canary_away_for_every_run(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("EVAL_CANARY", setting)
    with MisconfiguredServer({"says": "calculation"}) as server:
        said = prepare(lab, server).cli(*RUN)
        assert server.asked == PLANNED
    assert "answers can be read" in said.err


def test_a_tag_of_a_run_takes_the_canary_away(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_context("r", {}).canary
    assert not run_context("r", {CANARY: "false"}).canary
    monkeypatch.setenv("EVAL_CANARY", "0")
    assert not run_context("r", {}).canary
    assert run_context("r", {CANARY: "true"}).canary


def test_nothing_is_stopped_where_hardly_anything_is_left_to_pay(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        prepare(lab, server).cli(*RUN, "--no-canary")
        said = lab.cli("run", "--no-report", "--eval-date", "2026-03-02")
        assert server.asked == PLANNED
    assert "stopped" not in said.err
    assert said.code == 1


def test_small_evaluations_and_those_that_go_well_are_asked_once(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        said = prepare(lab, server).cli(*RUN, "--sample-size", "12")
        assert server.asked == 12 * TURNS
        assert "only 0 of 48 answers can be read" in said.err
    assert said.code == 1


def test_a_suite_that_is_stopped_stops_no_other(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        prepare(lab, server)
        lab.suite("tiny", cases=cases()[:2])
        said = lab.cli(*RUN)
    assert "small, ours: stopped after the first" in said.err
    assert "tiny, ours: check readable: only 0 of 8" in said.err
    assert lab.sql("SELECT DISTINCT suite FROM turn_results") == [("tiny",)]


def test_conversations_with_their_own_history_have_a_canary_too(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        said = prepare(lab, server, history="own").cli(*RUN)
        assert canary.TURNS <= server.asked <= canary.TURNS + TURNS
        lab.versions(entry(server, RIGHT, history="own"))
        assert lab.cli(*RUN).code == 0
    assert "stopped after the first" in said.err


def test_samples_of_a_turn_are_part_of_the_rest(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        said = prepare(lab, server, samples_per_turn=3).cli(*RUN)
        assert server.asked == canary.TURNS
    assert f"of {3 * PLANNED} turns" in said.err


def test_oracle_null_and_simulated_models_have_none_and_no_check(lab: Lab) -> None:
    lab.suite(cases=cases())
    lab.versions({"name": "null", "provider": "null"}, {"name": "oracle", "provider": "oracle"})
    said = lab.cli(*RUN)
    assert (said.code, "can be read" in said.text, "warning" in said.text) == (0, False, False)


def answers(says: Callable[[float], str]) -> Callable[[Body], str]:
    def said(body: Body) -> str:
        conversation, turn = re.findall(r"\bq(\d+) (\d+)\?", question(body))[-1]
        return says(value(int(conversation), int(turn)))

    return said


def batched(lab: Lab, server: AnthropicServer, **fields: Any) -> Said:
    lab.suite(cases=cases())
    version = {"name": "claude", "provider": "anthropic", "model": "claude-fake-1", "max_tokens": 200, "batch": True}
    version |= {"price": {"input": 1, "output": 2}, "options": {"base_url": server.url}, "max_recovery_attempts": 0}
    lab.versions(version | fields)
    return lab.cli(*RUN)


def test_before_a_batch_a_few_calls_are_made_at_once(lab: Lab) -> None:
    with AnthropicServer(answers(lambda right: f"It is {right:g}.")) as server:
        first, second = batched(lab, server), lab.cli(*RUN)
        singly = len(server.requests())
        assert not server.model.batches
    assert first.code == 1
    assert first.err == second.err
    assert canary.TURNS_BEFORE_BATCHES <= singly < canary.TURNS_BEFORE_BATCHES + TURNS
    assert f"stopped after the first {singly} of {PLANNED} turns: no answer can be read" in first.err


def test_what_was_asked_before_a_batch_is_not_asked_in_it(lab: Lab) -> None:
    with AnthropicServer(answers(number), batch_polls=2) as server:
        said = batched(lab, server)
        singly = len(server.requests())
        assert [len(batch.requests) for batch in server.model.batches] == [PLANNED - singly]
    assert said.code == 0, said.err
    assert canary.TURNS_BEFORE_BATCHES <= singly < canary.TURNS_BEFORE_BATCHES + TURNS
    assert set(charged(server).values()) == {1}
    assert lab.sql("SELECT count(*), bool_and(correct) FROM turn_results") == [(PLANNED, True)]
    assert lab.one("SELECT count(*) FROM attempts WHERE NOT batch") == singly


def test_a_budget_that_is_reached_within_the_canary_is_told_as_such(lab: Lab) -> None:
    with AnthropicServer(answers(number)) as server:
        said = batched(lab, server, batch=False, max_tokens_total=1)
    assert "the budget of the run is too small for one call" in said.err
    assert "stopped" not in said.err


def test_the_check_is_an_asset_check_with_the_severity_of_what_it_found(lab: Lab) -> None:
    from eval_pipeline.chain.evaluation import stage_of
    from eval_pipeline.defs.assets.describe import check_result

    with MisconfiguredServer({"says": "calculation"}) as server:
        prepare(lab, server).cli(*RUN, "--no-canary")
    inputs = lab.inputs("small", "ours")
    checks = {check.name: check for check in stage_of(inputs.track, "turn_metrics").checks}
    found = check_result("readable", checks["readable"].verdict(inputs))
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert Workspace(lab.home).model_versions.keys() == {"ours"}
    assert json.loads(json.dumps(dict(checks["readable"].verdict(inputs).facts)))["readable"] == 0
