"""The judge on a fake Anthropic API: what it asks, what it makes of answers, how often it asks."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.model import Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge.judge import LLMJudge, open_judge
from eval_pipeline.judge.judgement import DEFAULT_JUDGE, NO_JUDGE, Judgement
from eval_pipeline.judge.prompt import SQL_MEANING, JudgePrompt
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.fakes.scripted import ScriptedProvider, Slow
from eval_pipeline_tests.judge.lab import EXPECTED, GENERATED, ask, judge_version, said, with_judge, with_provider

DDL = "CREATE TABLE city (name VARCHAR, big BOOLEAN);"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


@pytest.mark.parametrize(("choice", "value"), [("same", 1.0), ("partly", 0.5), ("different", 0.0)])
def test_a_choice_has_its_value_and_the_reasoning_is_kept(choice: str, value: float) -> None:
    with AnthropicServer(lambda body: said(choice, "Because.")) as server:
        judgement = with_judge(server, ask)
    assert (judgement.value, judgement.choice, judgement.reason, judgement.error) == (value, choice, "Because.", None)
    assert judgement.model == "anthropic/claude-fake-1"
    assert judgement.prompt_version == SQL_MEANING.version
    assert judgement.usage.input_tokens
    assert judgement.usage.output_tokens
    assert not judgement.cached


def test_the_model_is_asked_for_reasons_before_the_choice_under_a_json_schema() -> None:
    with AnthropicServer(lambda body: said()) as server:
        with_judge(server, lambda judge: ask(judge, DDL))
    (request,) = server.requests()
    schema = request.body["output_config"]["format"]["schema"]
    assert list(schema["properties"]) == ["reasons", "choice"]
    assert schema["properties"]["choice"]["enum"] == ["same", "partly", "different"]
    assert schema["required"] == ["reasons", "choice"]
    assert "tools" not in request.body
    for part in (GENERATED, EXPECTED, DDL):
        assert part in request.question


def test_without_a_schema_none_is_spoken_of() -> None:
    with AnthropicServer(lambda body: said()) as server:
        with_judge(server, ask)
    assert "<schema>" not in server.requests()[0].question


@pytest.mark.parametrize(
    "trick", ["{{expected}}", "{{{schema}}}", "{{> /etc/passwd}}", "{{#output}}x{{/output}}", "&<>"]
)
def test_queries_are_put_into_the_prompt_as_they_are(trick: str) -> None:
    with AnthropicServer(lambda body: said()) as server:
        with_judge(server, lambda judge: judge.judge(f"SELECT '{trick}'", EXPECTED, f"-- {trick}"))
    question = server.requests()[0].question
    assert f"SELECT '{trick}'" in question
    assert f"-- {trick}" in question


def test_equal_pairs_share_one_call_and_others_do_not() -> None:
    pairs = [(GENERATED, None)] * 5 + [("SELECT 1", None), (GENERATED, DDL)]

    async def work(judge: LLMJudge) -> tuple[list[Judgement], int, int]:
        judgements = await asyncio.gather(*(judge.judge(sql, EXPECTED, schema) for sql, schema in pairs))
        return judgements, judge.counters.calls, judge.hits

    with AnthropicServer(lambda body: said("partly"), latency_s=0.05) as server:
        judgements, calls, hits = with_judge(server, work)
    assert len(server.requests()) == calls == 3
    assert hits == 4
    assert [judgement.value for judgement in judgements] == [0.5] * 7
    assert [judgement.cached for judgement in judgements] == [False, True, True, True, True, False, False]
    assert judgements[1].usage == Usage()  # paid for once


def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    with AnthropicServer(lambda body: said("partly", "A filter is missing.")) as server:
        first = with_judge(server, ask, tmp_path / "judge.sqlite")
        second = with_judge(server, ask, tmp_path / "judge.sqlite")
        assert len(server.requests()) == 1
    assert (second.value, second.choice, second.reason) == (first.value, first.choice, first.reason)
    assert (second.cached, second.usage, second.model) == (True, Usage(), first.model)


@pytest.mark.parametrize(
    ("version", "prompt"),
    [
        ({"model": "claude-fake-2"}, SQL_MEANING),
        ({"sampling": {"effort": "low"}}, SQL_MEANING),
        ({}, JudgePrompt("sql-next", SQL_MEANING.template, SQL_MEANING.choices)),
    ],
    ids=["model", "settings", "prompt"],
)
def test_another_judge_or_prompt_is_asked_anew(version: dict[str, Any], prompt: JudgePrompt, tmp_path: Path) -> None:
    with AnthropicServer(lambda body: said()) as server:
        with_judge(server, ask, tmp_path / "judge.sqlite")
        with_judge(server, ask, tmp_path / "judge.sqlite", version=version, prompt=prompt)
        assert len(server.requests()) == 2


def test_a_question_that_waits_for_a_cancelled_one_asks_itself() -> None:
    provider = ScriptedProvider(default=Slow(0.2, said("partly")))

    async def work(judge: LLMJudge) -> tuple[bool, Judgement]:
        first, second = asyncio.ensure_future(ask(judge)), asyncio.ensure_future(ask(judge))
        while not provider.asked:
            await asyncio.sleep(0)
        first.cancel()
        judgement = await second
        return first.cancelled(), judgement

    cancelled, judgement = with_provider(provider, work)
    assert cancelled
    assert (judgement.value, judgement.cached, len(provider.asked)) == (0.5, False, 2)


def test_no_more_questions_are_under_way_than_the_version_allows() -> None:
    provider = ScriptedProvider(default=Slow(0.02, said()))

    async def work(judge: LLMJudge) -> None:
        await asyncio.gather(*(judge.judge(f"SELECT {number}", EXPECTED) for number in range(9)))

    with_provider(provider, work, version=judge_version(concurrency=3))
    assert provider.most_in_flight == 3


@pytest.mark.parametrize(
    ("version", "why"),
    [
        (None, "none is named"),
        (DEFAULT_JUDGE, "ANTHROPIC_API_KEY is not set"),
        (
            ModelVersion(name="j", provider="openai", model="m", options={"api_key_env": "OTHER_KEY"}),
            "OTHER_KEY is not",
        ),
        (ModelVersion(name="j", provider="simulated"), "'j' is no model that could judge"),
        (ModelVersion(name="j", provider="recorded"), "'j' is no model that could judge"),
    ],
    ids=["none", "no key", "no key of its own", "simulated", "recorded"],
)
def test_without_a_judge_there_is_no_value_and_it_is_said_once(
    version: ModelVersion | None, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OTHER_KEY"):
        monkeypatch.delenv(name, raising=False)

    async def work() -> list[Judgement]:
        async with open_judge(version, None) as judge:
            return [await judge.judge(GENERATED, EXPECTED) for _ in range(3)]

    judgements = asyncio.run(work())
    assert {(judgement.value, judgement.reason, judgement.error) for judgement in judgements} == {
        (None, NO_JUDGE, None)
    }
    (record,) = caplog.records
    assert NO_JUDGE in record.message
    assert why in record.message


def test_a_model_version_opens_a_judge(tmp_path: Path) -> None:
    async def work(server: AnthropicServer) -> Judgement:
        async with open_judge(judge_version(server), tmp_path / "judge.sqlite") as judge:
            return await judge.judge(GENERATED, EXPECTED)

    with AnthropicServer(lambda body: said("partly")) as server:
        assert asyncio.run(work(server)).value == 0.5
    assert (tmp_path / "judge.sqlite").is_file()


@pytest.mark.parametrize(("max_tokens", "longest"), [(160, 112), (20, 1), (4096, SQL_MEANING.longest_reason)])
def test_the_reasoning_leaves_room_for_the_choice(max_tokens: int, longest: int) -> None:
    provider = ScriptedProvider(default=said())
    with_provider(provider, ask, version=judge_version(max_tokens=max_tokens))
    schema = provider.asked[0].prompt.answer_schema
    assert schema is not None
    assert schema["properties"]["reasons"]["maxLength"] == longest
