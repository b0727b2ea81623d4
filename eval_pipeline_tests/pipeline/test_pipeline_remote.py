"""Whole evaluations of a model behind an API: the real SDK, a fake server on a real socket."""

import json
import logging
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from eval_pipeline.asking import limits
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.providers.base import CallError
from eval_pipeline.stages.attempts import model_calls
from eval_pipeline.stages.checks.budgets import check_budget_kept
from eval_pipeline_tests.fakes import anthropic_faults as faulty
from eval_pipeline_tests.fakes.anthropic_batches import EXPIRED
from eval_pipeline_tests.fakes.anthropic_faults import Asked, BrokenStream, Fault, Status
from eval_pipeline_tests.fakes.anthropic_lab import MODEL
from eval_pipeline_tests.fakes.anthropic_messages import Answer, Body, question
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.remote import PACE, RUN, VERSION, answers, charged, contents, holding, prepare
from eval_pipeline_tests.support import Lab, case, number

LIMITED = Status(429, "rate_limit_error", "slow down", retry_after="0.01")
Undisturbed = tuple[dict[str, list[Any]], int]
OVERLOADED = Status(529, "overloaded_error", "Overloaded", retry_after="0.01")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr(model_calls, "PACE", PACE)
    monkeypatch.setattr(limits, "_limits", {})


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """What an undisturbed run records, and how many questions it pays for."""
    with pytest.MonkeyPatch.context() as patched, AnthropicServer(answers) as server:
        patched.setenv("ANTHROPIC_API_KEY", KEY)
        lab = prepare(Lab.at(tmp_path_factory.mktemp("undisturbed")), server)
        lab.evaluate("small", VERSION)
        assert set(charged(server).values()) == {1}
        return contents(lab), len(charged(server))


def test_when_a_third_of_the_calls_is_refused_all_turns_are_done_and_none_is_paid_twice(
    lab: Lab, expected: Undisturbed, caplog: pytest.LogCaptureFixture
) -> None:
    faults = faulty.RandomFaults({LIMITED: 0.15, OVERLOADED: 0.15}, seed=1)
    with AnthropicServer(answers, faults=faults) as server, caplog.at_level(logging.INFO, limits.__name__):
        made = prepare(lab, server).evaluate("small", VERSION)
    assert contents(lab) == expected[0]
    assert charged(server) == dict.fromkeys(charged(server), 1)
    assert len(charged(server)) == expected[1]
    refused = [entry for entry in server.requests() if entry.outcome in {"429", "529"}]
    assert len(refused) > expected[1] / 5
    assert made["generations"].facts["in_flight_limit_lowest"] < 8
    assert any(" falls from " in message for message in caplog.messages)
    assert any(" rises from " in message for message in caplog.messages)
    assert holding(lab.home.root, KEY) == []
    assert KEY not in caplog.text


def test_no_more_calls_are_in_flight_than_the_model_version_allows(lab: Lab) -> None:
    with AnthropicServer(answers, latency_s=0.01) as server:
        prepare(lab, server, concurrency=3).evaluate("small", VERSION, upto="generations")
        assert server.as_json()["most_in_flight"] == 3


def test_batches_give_what_single_calls_give_at_half_the_price(lab: Lab, expected: Undisturbed) -> None:
    with AnthropicServer(answers, batch_polls=2) as server:
        prepare(lab, server, batch=True).evaluate("small", VERSION)
    assert [len(batch.requests) for batch in server.model.batches] == [48, 12]
    assert not server.requests()
    assert charged(server) == dict.fromkeys(charged(server), 1)
    found = contents(lab)
    assert [row[:-1] for row in found["attempts"]] == [row[:-1] for row in expected[0]["attempts"]]
    assert [row[-1] * 2 for row in found["attempts"]] == pytest.approx([row[-1] for row in expected[0]["attempts"]])
    assert lab.one("SELECT bool_and(batch) FROM attempts")


@pytest.mark.always
def test_conversations_with_their_own_history_go_in_rounds(lab: Lab) -> None:
    with AnthropicServer(answers) as server:
        version = {"batch": True, "history": "own", "max_recovery_attempts": 0}
        prepare(lab, server, **version).evaluate("small", VERSION, upto="generations")
    assert [len(batch.requests) for batch in server.model.batches] == [12, 12, 12, 12]


def test_a_batch_whose_acceptance_was_never_told_is_found_again(lab: Lab) -> None:
    faults = faulty.OnOperation(faulty.BATCH_CREATE, [faulty.LostReply(), Status(529, "overloaded_error"), None])
    with AnthropicServer(answers, faults=faults) as server:
        prepare(lab, server, batch=True).evaluate("small", VERSION, upto="recovery_attempts")
    assert [len(batch.requests) for batch in server.model.batches] == [48, 12]
    assert charged(server) == dict.fromkeys(charged(server), 1)


def test_a_wrong_key_ends_the_run_with_one_sentence_that_does_not_hold_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "sk-ant-wrong-0123456789"
    monkeypatch.setenv("ANTHROPIC_API_KEY", wrong)
    with AnthropicServer(answers) as server:
        for batch in (False, True):
            said = prepare(lab, server, batch=batch).cli(*RUN)
            assert said.code == 1
            assert "ANTHROPIC_API_KEY" in said.err
            assert len(said.err.splitlines()) == 1
            assert wrong not in said.text
    assert not charged(server)
    assert not server.model.batches
    assert holding(lab.home.root, wrong) == []


def test_a_budget_reached_stops_all_calls(lab: Lab) -> None:
    with AnthropicServer(answers) as server:
        prepare(lab, server, max_cost_usd=0.03).evaluate("small", VERSION)
    assert "$0.0" in check_budget_kept(lab.inputs("small", VERSION)).text
    assert 0 < lab.one("SELECT usd_spent FROM runs") <= 0.03
    assert 0 < len(server.requests()) == lab.one("SELECT count(*) FROM turn_results") < 48


STAYING: dict[str, tuple[Fault, str]] = {
    "limited": (faulty.RATE_LIMITED, "rate_limited"),
    "asked-to-wait": (Status(429, "rate_limit_error", retry_after="0"), "rate_limited"),
    "overloaded": (faulty.OVERLOADED, "overloaded"),
    "broken": (Status(500), "overloaded"),
    "event": (faulty.ErrorEvent(), "overloaded"),
    "cut": (BrokenStream(), "connection"),
    "reset": (faulty.Reset(), "connection"),
    "garbled": (faulty.Malformed(), "bad_response"),
    "hanging": (faulty.Hang(), "timeout"),
    "too-long": (Status(413, "request_too_large"), "bad_request"),
}
STOPPED = {"refusing": ("refusal", "refused"), "endless": ("max_tokens", "max_tokens")}
PASSING: dict[str, Fault] = {"once": faulty.OVERLOADED, "torn-once": BrokenStream()}
FINE = "fine"

Rows = dict[str, tuple[Any, ...]]


@pytest.fixture
def claude(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes a suite of one turn a case and a model version `claude` that asks a server."""

    def pause(self: RetryPolicy, error: CallError, retries: int, rng: Random) -> float | None:
        return 0.0 if error.retryable and retries < 2 else None

    monkeypatch.setattr(RetryPolicy, "pause", pause)

    def write(server: AnthropicServer, *names: str, **fields: Any) -> None:
        options = {"base_url": server.url, "timeout_s": 1.5, **fields.pop("options", {})}
        lab.suite(cases=[case(name, ("50", 50.0)) for name in names])
        lab.versions({"name": "claude", "provider": "anthropic", "model": MODEL, "options": options, **fields})

    return write


def answer(body: Body) -> Answer:
    stop = STOPPED.get(question(body).split()[0], ("end_turn", ""))[0]
    return Answer(number(50), stop)


def attempts(lab: Lab) -> Rows:
    columns = "split_part(turn_id, '/', 2), outcome, call_error, retries, stop_reason, input_tokens, batch"
    return {row[0].split("#")[0]: row[1:] for row in lab.sql(f"SELECT {columns} FROM attempts WHERE number = 0")}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_fault_has_its_name_on_the_attempt_and_the_run_goes_on(
    stream: bool, lab: Lab, claude: Callable[..., None]
) -> None:
    passed: set[str] = set()

    def fault(asked: Asked) -> Fault | None:
        name = asked.question.split()[0].rstrip("?")
        if name in PASSING and name not in passed:
            passed.add(name)
            return PASSING[name]
        return STAYING[name][0] if name in STAYING else None

    with AnthropicServer(answer, faults=fault) as server:
        claude(server, *STAYING, *STOPPED, *PASSING, FINE, options={"stream": stream})
        lab.evaluate(version="claude", upto="turn_metrics")
        rows = attempts(lab)

    assert {name: row[:2] for name, row in rows.items() if name in STAYING} == {
        name: ("call_error", kind) for name, (_, kind) in STAYING.items()
    }
    assert {row[2] for name, row in rows.items() if name in STAYING and name != "too-long"} == {2}
    assert rows["too-long"][2] == 0
    for name, (stop_reason, kind) in STOPPED.items():
        outcome, call_error, retries, told, tokens, batch = rows[name]
        assert (outcome, call_error, retries, told, batch) == ("call_error", kind, 0, stop_reason, False)
        assert tokens > 100  # it was paid for
    assert {name: row[:3] for name, row in rows.items() if name in PASSING} == dict.fromkeys(PASSING, ("ran", None, 1))
    assert rows[FINE][:3] == ("ran", None, 0)
    right = {name for (name,) in lab.sql("SELECT case_id FROM turn_results WHERE correct")}
    assert right == {FINE, *PASSING}


def test_a_batch_with_expired_and_errored_entries_is_completed_singly(lab: Lab, claude: Callable[..., None]) -> None:
    names = [f"case{number}" for number in range(7)]
    bad = {"case1": EXPIRED, "case2": "overloaded_error", "case3": "invalid_request_error", "case6": "api_error"}

    def entry(custom_id: str, body: Body) -> str | None:
        return bad.get(question(body).split()[0])

    def fault(asked: Asked) -> Fault | None:
        refused = asked.operation == faulty.MESSAGES and asked.question.startswith("case3")
        return Status(400, "invalid_request_error") if refused else None

    with AnthropicServer(answer, batch_entry=entry, batch_polls=0, faults=fault) as server:
        claude(server, *names, batch=True)
        lab.evaluate(version="claude", upto="generations")
        rows = attempts(lab)
    assert {name: row[5] for name, row in rows.items()} == {
        "case0": True, "case1": False, "case2": False, "case3": None, "case4": True, "case5": True, "case6": False
    }  # fmt: skip
    assert rows["case3"][:2] == ("call_error", "bad_request")
    assert len(server.model.batches) == 1
    assert set(server.model.charged.values()) == {1}


def test_the_key_is_in_no_file_of_the_home(lab: Lab, claude: Callable[..., None]) -> None:
    fault = Status(500, "api_error", echo_key=True)
    with AnthropicServer(lambda body: f"{number(50)} {KEY}", faults=[fault, None]) as server:
        claude(server, "a", "b")
        lab.evaluate(version="claude", publish=True)
    assert lab.home.journal.exists()
    assert holding(lab.home.root, KEY) == []
    shown = json.dumps(lab.sql("SELECT response, metadata, error_message FROM attempts"), default=str)
    assert KEY not in shown
    assert "[redacted]" in shown
