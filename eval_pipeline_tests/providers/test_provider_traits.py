from typing import Any

import pytest

from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.registry import PROVIDERS, traits_of

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
    ],
)
def test_what_each_provider_is(
    name: str, asked: bool, charged: bool, own_prompt: bool, can_judge: bool, key: str
) -> None:
    traits = traits_of(name)
    assert (traits.pool is not None, traits.charged, traits.own_prompt) == (asked, charged, own_prompt)
    assert (traits.can_judge, traits.key_variable) == (can_judge, key)


def test_the_extra_is_that_of_the_local_model() -> None:
    assert {name: traits_of(name).extra for name in PROVIDERS if traits_of(name).packages} == {"local": "local"}


@pytest.mark.parametrize("provider", ["oracle", "null", "local", "anthropic", "openai", "http"])
def test_most_answer_every_suite(provider: str) -> None:
    assert why_not(provider) is None


def test_recorded_ones_answer_the_suites_that_they_have_predictions_for() -> None:
    file = {"file": "f.jsonl", "content_hash": ""}
    assert why_not("recorded", predictions={"small": file}) is None
    told = why_not("recorded", predictions={"other": file})
    assert told == "has no predictions for the suite (`eval-pipeline import predictions` takes them)"


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
            "has no rates for the track 'finqa': its common rates name 'wrong_table'; "
            "allowed there: no_answer, sign_error",
        ),
        ({"rates": {"wrong_table": 0.1}, "tracks": {"finqa": RATES}}, None),
    ],
)
def test_a_stand_in_answers_the_tracks_that_it_has_rates_for(options: dict[str, Any], expected: str | None) -> None:
    assert why_not("simulated", options=options) == expected
