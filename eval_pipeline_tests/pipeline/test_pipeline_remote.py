"""Whole evaluations of a model behind an API: the real SDK, a fake server on a real socket."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline.asking import limits
from eval_pipeline.stages.attempts import model_calls
from eval_pipeline_tests.fakes.anthropic_batches import EXPIRED
from eval_pipeline_tests.fakes.anthropic_faults import BATCH_CREATE, LostReply, OnOperation, RandomFaults, Status
from eval_pipeline_tests.fakes.anthropic_messages import Body
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.remote import PACE, RUN, VERSION, answers, charged, contents, holding, prepare
from eval_pipeline_tests.support import Lab

LIMITED = Status(429, "rate_limit_error", "slow down", retry_after="0.01")
OVERLOADED = Status(529, "overloaded_error", "Overloaded", retry_after="0.01")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr(model_calls, "PACE", PACE)
    monkeypatch.setattr(limits, "_limits", {})
    return


@pytest.fixture
def expected(tmp_path: Path) -> tuple[dict[str, object], int]:
    """What an undisturbed run publishes, and how many questions it pays for."""
    with AnthropicServer(answers) as server:
        lab = prepare(Lab.at(tmp_path / "undisturbed"), server)
        lab.evaluate("small", VERSION, publish=True)
        assert set(charged(server).values()) == {1}
        return contents(lab), len(charged(server))


def test_when_a_third_of_the_calls_is_refused_all_turns_are_done_and_none_is_paid_twice(
    lab: Lab, expected: tuple[dict[str, object], int], caplog: pytest.LogCaptureFixture
) -> None:
    faults = RandomFaults({LIMITED: 0.15, OVERLOADED: 0.15}, seed=1)
    with AnthropicServer(answers, faults=faults) as server, caplog.at_level(logging.INFO, limits.__name__):
        made = prepare(lab, server).evaluate("small", VERSION, publish=True)
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
        prepare(lab, server, concurrency=3).evaluate("small", VERSION)
        assert server.as_json()["most_in_flight"] == 3


def test_batches_give_what_single_calls_give_at_half_the_price(
    lab: Lab, expected: tuple[dict[str, object], int]
) -> None:
    with AnthropicServer(answers, batch_polls=2) as server:
        prepare(lab, server, batch=True).evaluate("small", VERSION, publish=True)
    assert [len(batch.requests) for batch in server.model.batches] == [48, 12]
    assert not server.requests()
    assert charged(server) == dict.fromkeys(charged(server), 1)
    found = contents(lab)
    assert [row[:-1] for row in found["attempts"]] == [row[:-1] for row in expected[0]["attempts"]]
    assert [row[-1] * 2 for row in found["attempts"]] == pytest.approx([row[-1] for row in expected[0]["attempts"]])
    assert lab.one("SELECT bool_and(batch) FROM attempts")


def test_conversations_with_their_own_history_go_in_rounds(lab: Lab) -> None:
    with AnthropicServer(answers) as server:
        prepare(lab, server, batch=True, history="own", max_recovery_attempts=0).evaluate("small", VERSION)
    assert [len(batch.requests) for batch in server.model.batches] == [12, 12, 12, 12]


def test_entries_of_a_batch_that_expire_or_fail_are_asked_singly(
    lab: Lab, expected: tuple[dict[str, object], int]
) -> None:
    def entry(custom_id: str, body: Body) -> str | None:
        return {"0": EXPIRED, "1": "api_error", "2": "overloaded_error"}.get(custom_id[0])

    with AnthropicServer(answers, batch_entry=entry) as server:
        prepare(lab, server, batch=True).evaluate("small", VERSION, publish=True)
    single = len(server.requests())
    assert single > 0
    assert lab.one("SELECT count(*) FROM attempts WHERE NOT batch") == single
    assert charged(server) == dict.fromkeys(charged(server), 1)
    found = contents(lab)
    assert [row[:-1] for row in found["attempts"]] == [row[:-1] for row in expected[0]["attempts"]]


def test_a_batch_whose_acceptance_was_never_told_is_found_again(lab: Lab) -> None:
    faults = OnOperation(BATCH_CREATE, [LostReply(), Status(529, "overloaded_error"), None])
    with AnthropicServer(answers, faults=faults) as server:
        prepare(lab, server, batch=True).evaluate("small", VERSION)
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
            assert "key" in said.err
            assert len(said.err.splitlines()) == 1
            assert wrong not in said.text
    assert not charged(server)
    assert not server.model.batches
    assert holding(lab.home.root, wrong) == []


def test_a_budget_reached_stops_all_calls(lab: Lab) -> None:
    with AnthropicServer(answers) as server:
        said = prepare(lab, server, max_cost_usd=0.03).cli(*RUN)
    assert said.code == 1
    assert "the budget of the run is reached, $0.0" in said.err
    spent, status = lab.sql("SELECT usd_spent, status FROM runs")[0]
    assert 0 < spent <= 0.03
    assert status == "incomplete"
    assert 0 < len(server.requests()) == lab.one("SELECT count(*) FROM turn_results") < 48
