import json
from datetime import UTC, date, datetime
from typing import Any

import genai_prices
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.core.model import Usage
from eval_pipeline.core.model_versions import ModelVersion, Price
from eval_pipeline.providers.prices import cost_usd, price_version
from eval_pipeline_tests import outside

PREDICTIONS = outside.FINQA / "predictions_claude-sonnet-4-6_run_a.jsonl"
MILLION = 1_000_000
DAY = "2026-11-01"
MODELS = ["claude-sonnet-4-6", "claude-sonnet-4-5", "gpt-5.2", "gemini-2.5-pro", "deepseek-chat", "gpt-5.4"]


def make_version(model: str = "claude-sonnet-4-6", provider: str = "recorded", **fields: Any) -> ModelVersion:
    return ModelVersion(name="v", provider=provider, model=model, **fields)


def test_the_worked_example() -> None:
    assert cost_usd(make_version(), Usage(1_408_597, 76_263), DAY) == pytest.approx(5.369736, abs=1e-9)


@outside.needs(PREDICTIONS)
def test_the_worked_example_turn_by_turn() -> None:
    rows = [json.loads(line) for line in PREDICTIONS.read_text().splitlines()]
    # On this day the model had dearer prices for calls of more than 200,000 tokens, which none of the turns is.
    costs = [cost_usd(make_version(), Usage(row["input_tokens"], row["output_tokens"]), "2026-03-01") for row in rows]
    assert sum(cost for cost in costs if cost is not None) == pytest.approx(5.369736, abs=1e-9)


def packages_own(model: str, usage: Usage, day: str, **context: Any) -> float:
    told = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    noon = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC).replace(hour=12)
    return float(genai_prices.calc_price(told, model, genai_request_timestamp=noon, **context).total_price)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(MODELS),
    st.sampled_from(["2025-10-01", "2026-03-01", DAY]),
    st.integers(0, 400_000),
    st.integers(0, 50_000),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_unit_prices_give_what_the_package_gives(
    model: str, day: str, tokens_in: int, tokens_out: int, read: float, write: float
) -> None:
    from_cache = int(tokens_in * read)
    usage = Usage(tokens_in, tokens_out, from_cache, int((tokens_in - from_cache) * write))
    assert cost_usd(make_version(model), usage, day) == pytest.approx(packages_own(model, usage, day), abs=1e-9)


def test_cached_tokens_are_part_of_the_input() -> None:
    usage = Usage(MILLION // 10, 0, cache_read_tokens=60_000, cache_write_tokens=30_000)
    assert cost_usd(make_version(), usage, DAY) == pytest.approx((10_000 * 3 + 60_000 * 0.3 + 30_000 * 3.75) / MILLION)


def test_counts_that_cannot_be_give_no_cost_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The call is paid for: an odd count must not end the run that made it."""
    odd = make_version().model_copy(update={"name": "odd"})
    for usage in (Usage(10, 0, cache_read_tokens=11), Usage(10, 0, 6, 5)):
        assert cost_usd(odd, usage, DAY) is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "model version 'odd'" in caplog.text
    assert cost_usd(odd, Usage(10, 0, 5, 5), DAY) is not None


def test_batches_cost_half() -> None:
    usage = Usage(100_000, 1_000)  # none from the cache: not everybody halves that price
    for model in MODELS:
        whole, half = (cost_usd(make_version(model), usage, DAY, batch=batch) for batch in (False, True))
        assert whole is not None
        assert half == pytest.approx(whole / 2), model


def test_a_batch_price_in_the_table_is_the_one_taken() -> None:
    usage = Usage(1_000, 1_000)
    told = packages_own("claude-sonnet-4-6", usage, DAY, price_context={"processing": "batch"})
    assert told < packages_own("claude-sonnet-4-6", usage, DAY)
    assert cost_usd(make_version(), usage, DAY, batch=True) == pytest.approx(told)


@pytest.mark.parametrize("usage", [Usage(), Usage(10, None), Usage(None, 10)])
def test_unknown_tokens_have_no_cost(usage: Usage) -> None:
    assert cost_usd(make_version(), usage, DAY) is None


@pytest.mark.parametrize(
    "version",
    [
        make_version("no-such-model-anywhere"),
        make_version(""),
        make_version("claude-sonnet-4-6", "simulated"),
        make_version("claude-sonnet-4-6", "oracle"),
        make_version("", "null"),
        make_version("SmolLM2-135M-Instruct", "local"),
    ],
)
def test_a_model_without_a_price_has_no_cost_rather_than_none_at_all(version: ModelVersion) -> None:
    assert cost_usd(version, Usage(10, 10), DAY) is None
    assert cost_usd(version, Usage(10, 10), DAY, batch=True) is None


def test_another_name_in_the_table() -> None:
    for provider in ("recorded", "simulated", "local"):
        version = make_version("my-name", provider, priced_as="claude-sonnet-4-6")
        assert cost_usd(version, Usage(1_000, 1_000), DAY) == pytest.approx(0.018)


def test_a_stated_price() -> None:
    price = Price(input=2.0, output=10.0, cache_read=0.5, batch_discount=0.4)
    version = make_version("claude-sonnet-4-6", price=price)
    usage = Usage(MILLION, MILLION, cache_read_tokens=400_000, cache_write_tokens=100_000)
    assert cost_usd(version, usage, DAY) == pytest.approx(0.5 * 2 + 0.4 * 0.5 + 0.1 * 2.5 + 10)
    assert cost_usd(version, usage, DAY, batch=True) == pytest.approx(0.6 * (0.5 * 2 + 0.4 * 0.5 + 0.1 * 2.5 + 10))
    told = make_version(price=Price(input=2.0, output=10.0, cache_write=2.0))  # reading is not said to be cheaper
    assert cost_usd(told, usage, DAY) == pytest.approx(2 + 10)
    free = make_version("mine", "local", price=Price(input=0, output=0))
    assert cost_usd(free, usage, DAY) == 0.0  # it is known to cost nothing


def test_a_stated_price_holds_from_its_day_on() -> None:
    price = Price(input=1.0, output=1.0, since=date(2026, 11, 1))
    usage = Usage(1_000, 1_000)
    version = make_version(price=price)
    assert cost_usd(version, usage, "2026-11-01") == pytest.approx(0.002)
    assert cost_usd(version, usage, "2026-10-31") == pytest.approx(0.018)  # the table's
    assert cost_usd(make_version("unknown", price=price), usage, "2026-10-31") is None


def test_the_price_of_the_day_counts() -> None:
    usage = Usage(300_000, 1_000)
    assert cost_usd(make_version(), usage, "2026-03-01") == pytest.approx(0.3 * 6 + 0.0225)  # tiers until spring
    assert cost_usd(make_version(), usage, DAY) == pytest.approx(0.3 * 3 + 0.015)
    with pytest.raises(ValueError):
        cost_usd(make_version(), usage, "")


def test_the_version_of_the_prices() -> None:
    assert price_version() == f"genai-prices {genai_prices.__version__}"
