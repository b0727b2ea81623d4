"""A judge that fails: the question has an error and the value 0.0, and everything else goes on."""

import asyncio
import io
import logging
import traceback
from pathlib import Path

import pytest

from eval_pipeline.asking.answers import Counters, utc_today
from eval_pipeline.asking.budgets import Budget
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.errors import EvalError
from eval_pipeline.judge.judge import LLMJudge
from eval_pipeline.judge.judgement import TIMEOUT, Judgement
from eval_pipeline.providers.base import FatalCallError
from eval_pipeline_tests.fakes.anthropic_faults import (
    OVERLOADED,
    RATE_LIMITED,
    ErrorEvent,
    Fault,
    Hang,
    Malformed,
    Reset,
    Slow,
    Status,
)
from eval_pipeline_tests.fakes.anthropic_messages import Answer
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.judge.lab import EXPECTED, ask, judge_version, said, with_judge


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def test_within_a_budget_no_question_is_put_that_could_exceed_it() -> None:
    version = {"max_tokens_total": 4_000, "max_tokens": 1_000}
    budget = Budget(judge_version(**version), today=utc_today)

    async def work(judge: LLMJudge) -> list[Judgement]:
        return [await judge.judge(f"SELECT {number}", EXPECTED) for number in range(30)]

    with AnthropicServer(lambda body: said()) as server:
        judgements = with_judge(server, work, version=version, budget=budget)
        asked = len(server.requests())
    refused = [found for found in judgements if found.error]
    assert 0 < asked < 30
    assert len(refused) == 30 - asked
    assert budget.reached
    assert budget.tokens <= 4_000
    assert "the budget of the judge is reached" in (refused[0].error or "")


@pytest.mark.parametrize("fault", [Hang(), Slow(2.0)], ids=["nothing comes", "it comes late"])
def test_a_judge_that_takes_too_long_is_a_timeout_and_the_others_go_on(fault: Fault) -> None:
    async def work(judge: LLMJudge) -> list[Judgement]:
        await ask(judge)  # what the first question loads does not count
        return list(await asyncio.gather(judge.judge("SELECT 1", EXPECTED), judge.judge("SELECT 2", EXPECTED)))

    with AnthropicServer(lambda body: said(), faults=[None, fault]) as server:
        judgements = with_judge(server, work, limit_s=0.5)
    late, answered = sorted(judgements, key=lambda judgement: judgement.value or 0.0)
    assert (late.value, late.error, late.choice) == (0.0, TIMEOUT, "")
    assert TIMEOUT == "LLM judge timeout"
    assert late.trace
    assert 0.5 <= late.seconds < 2.0
    assert (answered.value, answered.error) == (1.0, None)


@pytest.mark.parametrize(
    "answer",
    [
        "They are the same.",
        "",
        "[]",
        "{}",
        '"same"',
        '{"choice": "same"}',
        '{"reasons": "They are.", "choice": "maybe"}',
        '{"reasons": "They are.", "choice": null}',
        '{"reasons": "They are.", "choice": ["same"]}',
        '{"reasons": "They are.", "choice": "same"',
    ],
)
def test_nonsense_is_an_error_with_what_was_answered(answer: str) -> None:
    with AnthropicServer(lambda body: answer) as server:
        judgement = with_judge(server, ask)
    assert judgement.value == 0.0
    assert judgement.error is not None
    assert judgement.error.startswith("LLM judge gave no choice")
    assert (answer or "an empty answer") in judgement.error
    assert judgement.trace
    assert judgement.usage.output_tokens  # it was paid for all the same
    assert len(server.requests()) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer("", "refusal"), "LLM judge failed (refused): the judge's answer ended with refusal"),
        (Answer(said()[:9], "max_tokens"), "LLM judge failed (max_tokens): the judge's answer ended with max_tokens"),
    ],
    ids=["refused", "cut off"],
)
def test_a_judge_that_stops_early_is_an_error(answer: Answer, error: str) -> None:
    with AnthropicServer(lambda body: answer) as server:
        judgement = with_judge(server, ask)
    assert (judgement.value, judgement.error) == (0.0, error)


@pytest.mark.parametrize(
    "fault",
    [RATE_LIMITED, OVERLOADED, Status(500), Status(503), Reset(), Malformed(), ErrorEvent("overloaded_error")],
    ids=["429", "529", "500", "503", "reset", "malformed", "200 and overloaded"],
)
def test_what_passes_is_asked_again(fault: Fault) -> None:
    async def work(judge: LLMJudge) -> tuple[Judgement, Counters]:
        return await ask(judge), judge.counters

    with AnthropicServer(lambda body: said("partly"), faults=[fault, fault]) as server:
        judgement, counters = with_judge(server, work)
    assert (judgement.value, judgement.error) == (0.5, None)
    assert len(server.requests()) == counters.calls == 3
    ((times, example),) = counters.retried.values()
    assert (times, counters.retries) == (2, 2)
    assert example


def test_what_stays_is_an_error_and_is_not_asked_again() -> None:
    with AnthropicServer(faults=[Status(400, "invalid_request_error", "prompt is too long")]) as server:
        judgement = with_judge(server, ask)
    assert (judgement.value, len(server.requests())) == (0.0, 1)
    assert judgement.error is not None
    assert judgement.error.startswith("LLM judge failed (bad_request)")
    assert "prompt is too long" in judgement.error


def test_no_retry_is_waited_for_that_would_come_too_late() -> None:
    with AnthropicServer(faults=[Status(429, "rate_limit_error", retry_after="45")]) as server:
        judgement = with_judge(server, ask, retries=RetryPolicy())
    assert judgement.error is not None
    assert judgement.error.startswith("LLM judge failed (rate_limited)")
    assert judgement.seconds < 20


def test_failures_are_not_kept(tmp_path: Path) -> None:
    answers = iter(["nonsense", said()])
    with AnthropicServer(lambda body: next(answers)) as server:
        first = with_judge(server, ask, tmp_path / "judge.sqlite")
        second = with_judge(server, ask, tmp_path / "judge.sqlite")
    assert (first.value, second.value) == (0.0, 1.0)
    assert not second.cached


def test_questions_that_share_a_failing_call_share_the_failure() -> None:
    async def work(judge: LLMJudge) -> list[Judgement]:
        return list(await asyncio.gather(ask(judge), ask(judge)))

    with AnthropicServer(lambda body: "nonsense", latency_s=0.05) as server:
        judgements = with_judge(server, work)
    assert len(server.requests()) == 1
    assert len({judgement.error for judgement in judgements}) == 1
    assert {judgement.value for judgement in judgements} == {0.0}


def test_a_wrong_key_ends_the_run_for_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-wrong-0000")

    async def work(judge: LLMJudge) -> list[Judgement | BaseException]:
        return list(await asyncio.gather(ask(judge), ask(judge), return_exceptions=True))

    with AnthropicServer(latency_s=0.05) as server:
        told = with_judge(server, work)
    assert [type(error) for error in told] == [FatalCallError] * 2
    assert issubclass(FatalCallError, EvalError)  # one sentence without a trace
    assert "refuses the key in ANTHROPIC_API_KEY" in str(told[0])
    assert len(server.requests()) == 1


@pytest.mark.parametrize("where", ["error", "answer"])
def test_the_key_is_nowhere_to_be_seen(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ANTHROPIC_LOG", "debug")
    caplog.set_level(logging.DEBUG)
    faults: list[Fault | None] = [Status(400, "invalid_request_error", echo_key=True)] if where == "error" else []
    with AnthropicServer(lambda body: said(reasons=f"The key is {KEY}."), faults=faults) as server:
        judgement = with_judge(server, ask, tmp_path / "judge.sqlite")
    shown = io.StringIO()
    print(judgement, judgement.trace, file=shown)
    assert "[redacted]" in shown.getvalue()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert KEY not in shown.getvalue() + caplog.text
    assert KEY.encode() not in kept


def test_a_fatal_error_shows_no_key() -> None:
    with (
        AnthropicServer(faults=[Status(401, "authentication_error", echo_key=True)]) as server,
        pytest.raises(FatalCallError) as told,
    ):
        with_judge(server, ask)
    shown = io.StringIO()
    traceback.print_exception(told.value, file=shown)
    assert "[redacted]" in str(told.value)
    assert KEY not in shown.getvalue()
