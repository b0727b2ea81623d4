"""What is sent to the Anthropic API, as the fake server got it from the real SDK; and what is the journal key."""

from dataclasses import replace
from typing import Any

import pytest

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Message, Prompt
from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.base import Call, CallError, Environment
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline_tests.fakes.anthropic_lab import case_call, version_for, with_provider
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("anthropic_requests.yaml")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def golden_call(case: dict[str, Any]) -> Call:
    messages = tuple(Message(role, text) for role, text in case["messages"])
    return replace(case_call(), prompt=Prompt(messages, case["shared"], case.get("schema")), prefix_uses=case["uses"])


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
@pytest.mark.parametrize("batch", [False, True], ids=["singly", "in a batch"])
def test_a_golden_request(case: dict[str, Any], batch: bool) -> None:
    fields = {"sampling": case.get("sampling", {}), "max_tokens": case.get("max_tokens", 100)}
    with AnthropicServer() as server:

        async def ask(provider: AnthropicProvider) -> None:
            if batch:
                await provider.submit_batch({"one": golden_call(case)})
            else:
                await provider.generate(golden_call(case))

        with_provider(version_for(server, **fields), ask)
        sent = server.log[0].body
    if batch:
        assert sent["requests"][0]["custom_id"] == "one"
        sent = sent["requests"][0]["params"]
    sent.pop("stream", None)
    assert sent == case["body"]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_the_key_of_the_journal_knows_no_transport(case: dict[str, Any]) -> None:
    call = golden_call(case)
    fields = {"sampling": case.get("sampling", {}), "max_tokens": case.get("max_tokens", 100)}

    def request(call: Call, **options: Any) -> str:
        return json_text(AnthropicProvider(version_for(None, **fields, options=options), Environment()).request(call))

    plain = request(call)
    assert "cache_control" not in plain
    assert "stream" not in plain.replace("stop_sequences", "")
    assert request(replace(call, prefix_uses=9)) == plain
    assert request(call, stream=True, base_url="https://api.anthropic.com/", api_key_env="OTHER") == plain


def test_what_another_address_answers_is_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway, or a fake to try the pipeline with: its answers must not pass for those of the API itself."""

    def request(**options: Any) -> Any:
        return AnthropicProvider(version_for(None, options=options), Environment()).request(case_call())

    own, gateway = request(), request(base_url="https://gateway.example")
    assert gateway == {"endpoint": "https://gateway.example", "body": own}
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.example/")
    assert request() == gateway
    assert request(base_url="https://api.anthropic.com") == own


def test_what_can_change_the_response_changes_the_key() -> None:
    def request(call: Call, **fields: Any) -> str:
        return json_text(AnthropicProvider(version_for(None, **fields), Environment()).request(call))

    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}
    calls = [
        case_call(),
        case_call("How many?"),
        case_call(document="Another."),
        case_call(schema=schema),
        case_call(schema={**schema, "properties": {"x": {"type": "integer", "maximum": 9}}}),
    ]
    thinking = {"thinking": {"type": "adaptive"}}
    changes = [{"model": "other"}, {"max_tokens": 3000}, {"sampling": {"effort": "high"}}, {"sampling": thinking}]
    keys = [*map(request, calls), *(request(case_call(), **changed) for changed in changes)]
    assert len({*keys}) == len(keys)


def test_a_schema_that_the_api_cannot_take_fails_its_calls() -> None:
    with AnthropicServer() as server, pytest.raises(CallError, match="answer schema cannot be sent") as told:
        with_provider(version_for(server), lambda provider: provider.generate(case_call(schema={"properties": {}})))
    assert not told.value.retryable
    assert server.log == []


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"sampling": {"temperature": 0.5}}, "sampling.temperature: unknown field; allowed: effort, thinking"),
        ({"sampling": {"effort": "huge"}}, "sampling.effort"),
        ({"sampling": {"thinking": {"type": "enabled"}}}, "budget_tokens belongs to the type 'enabled'"),
        ({"sampling": {"thinking": {"type": "adaptive", "budget_tokens": 2000}}}, "budget_tokens belongs to"),
        ({"sampling": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}, r"less than max_tokens \(100\)"),
        ({"options": {"proxy": "x"}}, "options.proxy: unknown field; allowed: api_key_env, base_url, stream, timeout"),
        ({"options": {"base_url": "gateway.example"}}, "options.base_url"),
        ({"options": {"timeout_s": 0}}, "options.timeout_s"),
        ({"model": ""}, "model: is missing"),
    ],
    ids=str,
)
def test_settings_that_are_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        AnthropicProvider(version_for(None, **fields), Environment())


@pytest.mark.parametrize("option", ["api_key_env", "base_url"])
def test_a_key_in_the_wrong_place_is_not_repeated(option: str) -> None:
    value = KEY if option == "api_key_env" else f"https://user:{KEY}@gateway.example"
    with pytest.raises(SettingsError) as told:
        AnthropicProvider(version_for(None, options={option: value}), Environment())
    assert KEY not in str(told.value)
