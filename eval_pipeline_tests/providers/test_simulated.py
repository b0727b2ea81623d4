import asyncio
from collections import Counter
from dataclasses import dataclass
from math import exp
from random import Random
from statistics import median
from typing import Any

import pytest

from eval_pipeline.core.model import Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, Environment, FatalCallError
from eval_pipeline.providers.standins.simulated import SimulatedProvider, SimulatedSettings
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline_tests.fakes.scripted import PlainGold, make_call

RATES = {"sign_error": 0.1, "no_answer": 0.05, "execution_error": 0.05}
GOLD = PlainGold(damages={"sign_error": "-42", "no_answer": "", "execution_error": "1/0", "rounding": "41.9"})


@dataclass(frozen=True)
class DrawingGold(PlainGold):
    """Damages differently with every draw."""

    def failure_modes(self) -> tuple[str, ...]:
        return ("sign_error", "no_answer", "execution_error")

    def damage(self, mode: str, rng: Random) -> str | None:
        return f"{mode} {rng.random()}"


def make_provider(**options: Any) -> SimulatedProvider:
    options = {"seed": 7, "rates": RATES, **options}
    return SimulatedProvider(ModelVersion(name="s", provider="simulated", options=options), Environment())


def respond(provider: SimulatedProvider, *calls: Call) -> list[Response]:
    async def ask() -> list[Response]:
        return [await provider.generate(call) for call in calls]

    return asyncio.run(ask())


def modes(provider: SimulatedProvider, count: int, **call: Any) -> Counter[str]:
    calls = [make_call(turn, gold=GOLD, **call) for turn in range(count)]
    return Counter(response.metadata["drawn_mode"] for response in respond(provider, *calls))


def test_the_rates_are_what_comes_out() -> None:
    drawn = modes(make_provider(), 6_000)
    assert drawn["correct"] / 6_000 == pytest.approx(0.8, abs=0.0155)  # three standard errors
    assert drawn["sign_error"] / 6_000 == pytest.approx(0.1, abs=0.0116)
    assert drawn["no_answer"] / 6_000 == pytest.approx(0.05, abs=0.0085)
    assert drawn["execution_error"] / 6_000 == pytest.approx(0.05, abs=0.0085)


@pytest.mark.parametrize("complexity", [1, 4])
def test_the_odds_of_failing_rise_with_complexity(complexity: int) -> None:
    odds = 0.25 * exp(0.5 * complexity)
    drawn = modes(make_provider(slope=0.5), 4_000, complexity=complexity)
    assert 1 - drawn["correct"] / 4_000 == pytest.approx(odds / (1 + odds), abs=0.024)
    assert drawn["sign_error"] / (4_000 - drawn["correct"]) == pytest.approx(0.5, abs=0.045)


@pytest.mark.parametrize(("rates", "rate"), [({}, 0.0), ({"sign_error": 1.0}, 1.0)])
def test_the_ends_of_the_scale(rates: dict[str, float], rate: float) -> None:
    settings = SimulatedSettings(rates=rates, slope=1.0)
    assert [settings.failure_rate(complexity) for complexity in (0, 3)] == [rate, rate]


def test_responses_are_the_gold_or_damaged_and_labelled() -> None:
    for response in respond(make_provider(), *(make_call(turn, gold=GOLD) for turn in range(200))):
        mode = response.metadata["drawn_mode"]
        assert response.text == ("42" if mode == "correct" else GOLD.damages[mode])
        assert response.metadata["simulated"] is True


def test_draws_do_not_depend_on_order_nor_on_what_else_is_asked() -> None:
    calls = [make_call(turn, sample=sample, gold=DrawingGold()) for turn in range(100) for sample in range(2)]
    there = respond(make_provider(), *calls)
    back = respond(make_provider(), *reversed(calls))
    assert there == back[::-1]
    assert there[::2] != there[1::2]  # samples differ
    assert there != respond(make_provider(seed=8), *calls)


def test_a_mode_that_the_gold_cannot_show_falls_to_the_next() -> None:
    gold = PlainGold(damages={"sign_error": None, "no_answer": "", "execution_error": None})
    provider = make_provider(rates={"sign_error": 0.5, "no_answer": 0.5})
    drawn = respond(provider, *(make_call(turn, gold=gold) for turn in range(50)))
    assert {response.metadata["drawn_mode"] for response in drawn} == {"no_answer"}
    healthy = PlainGold(damages=dict.fromkeys(RATES))
    drawn = respond(make_provider(), *(make_call(turn, gold=healthy) for turn in range(50)))
    assert {(response.metadata["drawn_mode"], response.text) for response in drawn} == {("correct", "42")}


def test_recovery_succeeds_at_its_rate() -> None:
    for number in (1, 2):
        drawn = modes(make_provider(rates={"execution_error": 1.0}, recovery_rate=0.3), 2_000, number=number)
        assert drawn["correct"] / 2_000 == pytest.approx(0.3, abs=0.03)


def test_a_failed_recovery_changes_its_class_at_the_rate() -> None:
    provider = make_provider(rates={"execution_error": 1.0}, recovery_rate=0.0, class_change_rate=0.25)
    count, changed = 2_000, 0
    first = respond(provider, *(make_call(turn, gold=DrawingGold()) for turn in range(count)))
    second = respond(provider, *(make_call(turn, gold=DrawingGold(), number=1) for turn in range(count)))
    for before, after in zip(first, second, strict=True):
        if after.metadata["drawn_mode"] == before.metadata["drawn_mode"]:
            assert after.text == before.text  # so that it surely fails in the same way
        else:
            changed += 1
    assert changed / count == pytest.approx(0.25, abs=0.029)


def test_a_failed_recovery_never_runs() -> None:
    provider = make_provider(rates={"sign_error": 1.0}, recovery_rate=0.0)
    assert set(modes(provider, 200, number=1)) <= {"execution_error", "no_answer"}


def test_an_unknown_mode_ends_the_run_with_the_allowed_ones() -> None:
    provider = make_provider(rates={"sign_error": 0.1, "sgn_error": 0.1})
    with pytest.raises(FatalCallError, match=r"'sgn_error'.*allowed: sign_error, no_answer, execution_error, rounding"):
        respond(provider, make_call(gold=GOLD))


def test_a_track_may_have_rates_of_its_own_and_the_others_keep_theirs() -> None:
    provider = make_provider(tracks={"sdmx": {"rates": {"execution_error": 1.0}}})
    (own, other) = (make_call(gold=GOLD, track=track) for track in ("sdmx", "finqa"))
    assert set(modes(provider, 50, track="sdmx")) == {"execution_error"}
    assert modes(provider, 500, track="finqa") == modes(make_provider(), 500)
    # What a track is asked again for follows from its own settings alone.
    assert provider.request(other) == make_provider().request(other)
    assert provider.request(own) != make_provider().request(own)


def test_tokens_and_latency() -> None:
    provider = make_provider(rates={}, latency_ms=1000, latency_sigma=0.5)
    gold = PlainGold(answer="y" * 400)
    text = "x" * 3993  # with the system message "Answer." 4000 characters
    drawn = respond(provider, *(make_call(turn, text=text, gold=gold) for turn in range(500)))
    assert median(response.usage.input_tokens or 0 for response in drawn) == pytest.approx(1000, rel=0.01)
    assert median(response.usage.output_tokens or 0 for response in drawn) == pytest.approx(100, rel=0.03)
    latencies = sorted(response.latency_ms or 0 for response in drawn)
    assert latencies[250] == pytest.approx(1000, rel=0.1)
    assert latencies[420] / latencies[250] == pytest.approx(exp(0.5), rel=0.15)  # one sigma
    empty = make_provider(rates={"no_answer": 1.0})
    assert respond(empty, make_call(gold=GOLD))[0].usage.output_tokens == 0
    assert respond(empty, make_call(gold=GOLD))[0].usage != Usage()


def test_the_request_holds_what_decides_and_nothing_else() -> None:
    provider = make_provider()
    request = provider.request(make_call(gold=GOLD))
    assert request == provider.request(make_call(gold=GOLD, text="What is seven times six?"))  # as long
    others = [
        make_provider(seed=8).request(make_call(gold=GOLD)),
        provider.request(make_call(1, gold=GOLD)),
        provider.request(make_call(gold=GOLD, number=1)),
        provider.request(make_call(gold=GOLD, complexity=2)),
        provider.request(make_call(gold=PlainGold(answer="43"))),
        provider.request(make_call(gold=GOLD, text="longer, so that it has more tokens")),
    ]
    assert request not in others


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"sede": 1}, "options.sede: unknown field; allowed: rates, slope, seed"),
        ({"rates": {"sign_error": 1.5}}, "options.rates: the rate of 'sign_error' must be in 0..1"),
        ({"rates": {"a": 0.6, "b": 0.6}}, "the rates add up to 1.2, more than 1"),
        ({"rates": {"a": "often"}}, "options.rates.a: expected a number, found 'often'"),
        ({"recovery_rate": 2}, "options.recovery_rate: expected a number of at most 1, found 2"),
        ({"slope": float("nan")}, "options.slope: expected a number, found nothing"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make_provider(**options)
    assert str(caught.value).startswith("model version 's': ")
    assert told in str(caught.value)
