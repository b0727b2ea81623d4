"""Wrong configurations on a real wire: none ends as a plain low accuracy, and a canary spares what would be paid."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from eval_pipeline.asking import limits
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.defs.assets.describe import check_result
from eval_pipeline.defs.assets.partitions import CANARY, run_context
from eval_pipeline.operations.upkeep.keeping import remarks
from eval_pipeline.providers.base import CallError
from eval_pipeline.stages.attempts import canary, model_calls
from eval_pipeline.stages.attempts.canary import CanaryError
from eval_pipeline.stages.checks.budgets import check_budget_kept
from eval_pipeline.stages.checks.readable import check_readable
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.runs import run_rows
from eval_pipeline_tests.fakes.anthropic_messages import Body, question
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.fakes.misconfigured import CONVERSATIONS, TURNS, MisconfiguredServer, cases, value
from eval_pipeline_tests.remote import PACE, charged
from eval_pipeline_tests.support import DAY, Lab, Puppet, number

GOLDEN = Path(__file__).parents[1] / "golden" / "misconfigurations.yaml"
TABLE: list[dict[str, Any]] = yaml.safe_load(GOLDEN.read_text("utf-8"))
PLANNED = CONVERSATIONS * TURNS
LATER = DAY.replace(day=2)
OURS = "ours"
RUN = ("run", "--no-report", "--eval-date", DAY.isoformat())
WRONG = {"answer_path": "$.result.calculation", "answer_field": "answr"}
RIGHT = {"answer_path": "$.result.calculation", "answer_field": "calculation"}


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without pauses, a few of them."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fake-0123456789")
    monkeypatch.setattr(RetryPolicy.pause, "__code__", _pause.__code__)
    monkeypatch.setattr(model_calls, "PACE", PACE)
    monkeypatch.setattr(limits, "_limits", {})


def _pause(self: RetryPolicy, error: Any, retries: int, rng: Any) -> float | None:
    return 0.0 if error.retryable and retries < 2 else None


def prepare(lab: Lab, url: str, options: dict[str, Any] = WRONG, provider: str = "http", **fields: Any) -> Lab:
    """The suite, and a model version at an address."""
    own = {"base_url": url, "path": "/ask"} if provider == "http" else {"base_url": f"{url}/v1"}
    options = own | options
    options["base_url"] = options["base_url"].replace("{url}", url)
    lab.suite(cases=cases())
    version = {"name": OURS, "provider": provider, "options": options, "max_recovery_attempts": 0, "concurrency": 8}
    version |= {"deadline_s": 10} | ({"model": "m"} if provider == "openai" else {})
    lab.versions(version | fields)
    return lab


def asked(lab: Lab, version: str = OURS, *, upto: str = "generations", **fields: Any) -> None:
    lab.evaluate(version=version, upto=upto, **fields)


def stopped(lab: Lab, version: str = OURS, **fields: Any) -> CanaryError:
    """How the canary of an evaluation stops it."""
    with pytest.raises(CanaryError) as caught:
        asked(lab, version, **fields)
    assert "stopped after the first" in str(caught.value)
    return caught.value


def statuses(lab: Lab, version: str = OURS) -> list[Any]:
    return [row["status"] for row in run_rows(lab.workspace(), Partition("small", version, DAY))]


def all_right(lab: Lab) -> bool:
    return lab.sql("SELECT count(*), bool_and(correct) FROM turn_results") == [(PLANNED, True)]


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry["name"].replace(" ", "-"))
def test_none_ends_as_a_plain_low_accuracy(entry: dict[str, Any], lab: Lab) -> None:
    raised = ""
    with MisconfiguredServer(entry["server"]) as server:
        prepare(lab, server.url, entry.get("options", {}), entry["provider"], **entry.get("version", {}))
        try:
            asked(lab, upto="turn_metrics")
        except EvalError as error:
            raised = f"{error} {error.example}"
    told = raised or "\n".join(remarks(lab.inputs(version=OURS)))
    for part in entry.get("says", ()):
        assert part in " ".join(told.split())
    assert "cannot be reached" not in told
    assert len(raised.splitlines()) == (entry["ends"] in {"stopped", "fatal"})
    match entry["ends"]:
        case "stopped":
            assert "stopped after the first" in told
            assert f"of {PLANNED} turns" in told
            assert "--no-canary" in told
            assert server.asked <= 3 * 23  # a few conversations, and retries
        case "told":
            assert told.startswith(f"small, {OURS}: this looks like the configuration")
        case "understood":
            assert told == ""
            assert check_readable(lab.inputs(version=OURS)).passed
            assert all_right(lab)
        case other:
            assert other == "fatal"


def test_a_second_run_says_the_same_and_asks_nothing(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        first = stopped(prepare(lab, server.url))
        turns = sorted(server.questions)
        second = stopped(lab, run_id="second")
    assert canary.TURNS <= len(turns) == server.asked < canary.TURNS + 2 * TURNS
    assert (str(second), second.example) == (str(first), first.example)
    assert statuses(lab) == ["failed", "failed"]
    conversations = {conversation for conversation, _ in turns}
    assert turns == [(conversation, turn) for conversation in sorted(conversations) for turn in range(TURNS)]
    assert conversations != set(range(len(conversations)))  # drawn, not the first ones


def test_the_command_shows_what_was_answered_its_note_keeps_none_of_it_and_no_canary_goes_on(
    lab: Lab, puppet: type[Puppet]
) -> None:
    lab.suite(cases=cases())
    lab.suite("tiny", cases=cases()[:2])
    lab.versions({"name": "puppet", "provider": "puppet", "max_recovery_attempts": 0})
    puppet.answer = staticmethod(lambda call: f"{call.turn_id} is unreadable, it says zebra-quartz-7391")
    said = lab.cli(*RUN)
    assert said.code == 1
    told = {line.split(": ")[1]: line for line in said.err.splitlines()}
    assert f"stopped after the first 20 of {PLANNED} turns" in told["small, puppet"]
    assert "(e.g. to small/" in told["small, puppet"] and "zebra-quartz-7391" in told["small, puppet"]
    assert "only 0 of 8 answers can be read" in told["tiny, puppet"], "one that is stopped stops no other"
    kept = list(lab.home.commands.rglob("*.jsonl"))
    assert any(b"stopped after the first" in path.read_bytes() for path in kept)
    assert not [path for path in kept if b"zebra" in path.read_bytes()]

    said = lab.cli(*RUN, "--suite", "small", "--no-canary")
    assert said.code == 1
    assert f"only 0 of {PLANNED} answers can be read" in said.err
    assert f"{PLANNED} had a response that could not be read; {PLANNED} count as wrong" in said.out
    assert len(puppet.asked) == PLANNED + 8  # what the canary was answered counts
    assert statuses(lab, "puppet")[-1] == "complete"


@pytest.mark.always
def test_what_is_in_flight_is_not_tried_again_after_a_stop(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(cases=cases())
    lab.versions({"name": "puppet", "provider": "puppet", "concurrency": 4})
    puppet.answer = staticmethod(lambda call: CallError(CallErrorKind.BAD_REQUEST, "HTTP 400: no model of that name"))
    error = stopped(lab, "puppet")
    assert "no answer can be read (5 × bad_request); e.g. to small/" in str(error)
    assert error.example == "", "no response is quoted: it is told"
    assert len(puppet.asked) < canary.HOPELESS + 4


def test_mended_under_the_same_name_it_runs(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        stopped(prepare(lab, server.url))
        asked(prepare(lab, server.url, RIGHT), upto="turn_metrics")
        assert server.asked == PLANNED + canary.TURNS
        assert all_right(lab)


def test_without_a_canary_it_goes_on_the_check_fails_and_nothing_is_left_to_stop(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        asked(prepare(lab, server.url), upto="turn_metrics", canary=False)
        asked(lab, upto="turn_metrics")
        asked(lab, day=LATER)
        assert server.asked == PLANNED
    inputs = lab.inputs(version=OURS)
    (check,) = [one for one in stage_of(inputs.track, "turn_metrics").checks if one.name == "readable"]
    verdict = check.verdict(inputs)
    assert f"only 0 of {PLANNED} answers can be read ({PLANNED} × value_error)" in verdict.text
    assert "set options.answer_field to 'calculation'" in verdict.text
    assert json.loads(json.dumps(dict(verdict.facts)))["readable"] == 0
    found = check_result("readable", verdict)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)


def test_a_tag_of_a_run_or_the_environment_takes_the_canary_away(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_context("r", {}).canary
    assert not run_context("r", {CANARY: "false"}).canary
    for setting in ("0", "false"):
        monkeypatch.setenv("EVAL_CANARY", setting)
        assert not run_context("r", {}).canary
        assert run_context("r", {CANARY: "true"}).canary


def test_small_evaluations_are_asked_once(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        asked(prepare(lab, server.url), scope=Scope(12))
        assert server.asked == 12 * TURNS


def test_conversations_with_their_own_history_have_a_canary_too(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        stopped(prepare(lab, server.url, history="own"))
        assert canary.TURNS <= server.asked <= canary.TURNS + TURNS
        asked(prepare(lab, server.url, RIGHT, history="own"))


def test_samples_of_a_turn_are_part_of_the_rest(lab: Lab) -> None:
    with MisconfiguredServer({"says": "calculation"}) as server:
        error = stopped(prepare(lab, server.url, samples_per_turn=3))
        assert server.asked == canary.TURNS
    assert f"of {3 * PLANNED} turns" in str(error)


def test_oracle_and_null_have_none_and_no_check(lab: Lab) -> None:
    lab.suite(cases=cases())
    lab.versions({"name": "null", "provider": "null"}, {"name": "oracle", "provider": "oracle"})
    for name in ("null", "oracle"):
        asked(lab, name, upto="turn_metrics")
        assert check_readable(lab.inputs(version=name)).passed
        assert remarks(lab.inputs(version=name)) == []


def answers(says: Callable[[float], str]) -> Callable[[Body], str]:
    def said(body: Body) -> str:
        conversation, turn = re.findall(r"\bq(\d+) (\d+)\?", question(body))[-1]
        return says(value(int(conversation), int(turn)))

    return said


def batched(lab: Lab, server: AnthropicServer, **fields: Any) -> Lab:
    lab.suite(cases=cases())
    version = {"name": OURS, "provider": "anthropic", "model": "claude-fake-1", "max_tokens": 200, "batch": True}
    version |= {"price": {"input": 1, "output": 2}, "options": {"base_url": server.url}, "max_recovery_attempts": 0}
    lab.versions(version | fields)
    return lab


def test_before_a_batch_a_few_calls_are_made_at_once(lab: Lab) -> None:
    with AnthropicServer(answers(lambda right: f"It is {right:g}.")) as server:
        first, second = stopped(batched(lab, server)), stopped(lab)
        singly = len(server.requests())
        assert not server.model.batches
    assert str(first) == str(second)
    assert canary.TURNS_BEFORE_BATCHES <= singly < canary.TURNS_BEFORE_BATCHES + TURNS
    assert f"stopped after the first {singly} of {PLANNED} turns: no answer can be read" in str(first)


def test_what_was_asked_before_a_batch_is_not_asked_in_it(lab: Lab) -> None:
    with AnthropicServer(answers(number), batch_polls=2) as server:
        asked(batched(lab, server), upto="turn_metrics")
        singly = len(server.requests())
        assert [len(batch.requests) for batch in server.model.batches] == [PLANNED - singly]
    assert canary.TURNS_BEFORE_BATCHES <= singly < canary.TURNS_BEFORE_BATCHES + TURNS
    assert set(charged(server).values()) == {1}
    assert all_right(lab)
    assert lab.inputs(version=OURS).read(GENERATIONS, ["batch"])["batch"].to_pylist().count(False) == singly


@pytest.mark.always
def test_a_budget_that_is_reached_within_the_canary_is_told_as_such(lab: Lab) -> None:
    with AnthropicServer(answers(number)) as server:
        asked(batched(lab, server, batch=False, max_tokens_total=1))
    verdict = check_budget_kept(lab.inputs(version=OURS))
    assert not verdict.passed
    assert "too small for one call" in verdict.text
