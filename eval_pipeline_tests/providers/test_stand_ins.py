import asyncio
from typing import Any

import pytest

from eval_pipeline.core.model import Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Environment
from eval_pipeline.providers.standins.null import NullProvider
from eval_pipeline.providers.standins.oracle import OracleProvider
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline_tests.fakes.scripted import PlainGold, make_call

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
def test_the_wording_of_the_prompt_is_not_in_the_request(name: str) -> None:
    provider = make_provider(name)
    assert provider.request(make_call()) == provider.request(make_call(text="another wording"))
    assert provider.request(make_call()) != provider.request(make_call(1))
    assert provider.request(make_call()) != provider.request(make_call(number=1))


def test_the_oracles_request_changes_with_the_gold() -> None:
    provider = make_provider("oracle")
    assert provider.request(make_call()) != provider.request(make_call(gold=PlainGold(answer="43")))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("fields", [{"options": {"seed": 1}}, {"sampling": {"temperature": 1}}])
def test_settings_that_mean_nothing_are_refused(name: str, fields: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"{next(iter(fields))}: means nothing to the provider '{name}'"):
        make_provider(name, **fields)
