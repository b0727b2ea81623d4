"""Costs of calls: tokens times the price of the day, from `genai-prices` or from the model version."""

import logging
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version as package_version

from eval_pipeline.core.model import Usage
from eval_pipeline.core.model_versions import ModelVersion, Price
from eval_pipeline.providers.registry import traits_of

_LOG = logging.getLogger(__name__)
_MILLION = 1_000_000
_USUAL_BATCH_DISCOUNT = Decimal("0.5")
_USUAL_CACHE_WRITE = 1.25
"""Usual price of writing to a cache, as a multiple of the input price."""
_BATCH = {"processing": "batch"}


def price_version() -> str:
    """Returns the source of prices, e.g. `genai-prices 0.2.3`; it is stored beside every cost."""
    return f"genai-prices {package_version('genai-prices')}"


def has_price(version: ModelVersion) -> bool:
    """Whether the cost of the model version's calls can be computed today."""
    return cost_usd(version, Usage(1, 1), datetime.now(UTC).date().isoformat()) is not None


def is_free(version: ModelVersion) -> bool:
    """Whether calls cost nothing, as they reach no model that somebody charges for."""
    return version.price is None and not version.priced_as and not traits_of(version.provider).charged


def cost_usd(version: ModelVersion, usage: Usage, asked_on: str, *, batch: bool = False) -> float | None:
    """Returns the cost of a call in US dollars; None if the price or the tokens are unknown.

    Inconsistent token counts also give None, with a warning: the call is paid for, so a wrong count must not discard
    its answer.

    Args:
        version: its `price` takes precedence from the day in `since` on; otherwise the price table is used, under
            `priced_as` or `model`.
        usage: token counts of the call.
        asked_on: ISO date of the call.
        batch: whether the call was part of a batch.

    Raises:
        ValueError: `asked_on` is not a date.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    if usage.cache_read_tokens + usage.cache_write_tokens > usage.input_tokens:
        _warn_of_counts(version.name)
        return None
    stated = version.price
    if stated is not None and (stated.since is None or date.fromisoformat(asked_on) >= stated.since):
        return _stated(stated, batch).of(usage)
    name = version.priced_as or version.model
    if name and not version.priced_as and not traits_of(version.provider).charged:
        return None
    prices = _from_table(name, asked_on, batch)
    if prices is None:
        return None
    if prices.first_tier is not None and usage.input_tokens > prices.first_tier:
        return _ask(name, asked_on, batch, usage)
    return prices.of(usage)


@lru_cache
def _warn_of_counts(model_version: str) -> None:
    """Warns once for each model version."""
    _LOG.warning(
        "model version '%s': a response counts more tokens from and to the cache than tokens put in, "
        "which has to count them too; what it cost is unknown",
        model_version,
    )


@dataclass(frozen=True, slots=True)
class _UnitPrices:
    """US dollars per million tokens of each kind, and per call.

    Attributes:
        first_tier: number of input tokens above which other prices apply; None if there is no such limit.
    """

    input: float
    output: float
    cache_read: float
    cache_write: float
    per_call: float = 0.0
    first_tier: int | None = None

    def of(self, usage: Usage) -> float:
        """Returns the cost in dollars of a call with known token counts."""
        assert usage.input_tokens is not None
        assert usage.output_tokens is not None
        plain = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        tokens = plain * self.input + usage.output_tokens * self.output
        tokens += usage.cache_read_tokens * self.cache_read + usage.cache_write_tokens * self.cache_write
        return tokens / _MILLION + self.per_call


def _stated(price: Price, batch: bool) -> _UnitPrices:
    share = 1.0 - price.batch_discount if batch else 1.0
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input * _USUAL_CACHE_WRITE if price.cache_write is None else price.cache_write
    return _UnitPrices(price.input * share, price.output * share, read * share, write * share)


@lru_cache(maxsize=4096)
def _from_table(name: str, asked_on: str, batch: bool) -> _UnitPrices | None:
    """Returns the unit prices of a model on a day, or None if the model is not in the table.

    The prices are found by asking `genai-prices` for the cost of one token of each kind. So its rules for kinds without
    a price of their own apply, and it is asked only once per model and day.
    """
    if not name or not _has_prices(name, asked_on, batch):
        return None
    per_call = _ask(name, asked_on, batch, Usage(0, 0))

    def of_one(usage: Usage) -> float:
        return (_ask(name, asked_on, batch, usage) - per_call) * _MILLION

    return _UnitPrices(
        input=round(of_one(Usage(1, 0)), 9),
        output=round(of_one(Usage(0, 1)), 9),
        cache_read=round(of_one(Usage(1, 0, cache_read_tokens=1)), 9),
        cache_write=round(of_one(Usage(1, 0, cache_write_tokens=1)), 9),
        per_call=per_call,
        first_tier=_first_tier(name, asked_on, batch),
    )


def _ask(name: str, asked_on: str, batch: bool, usage: Usage) -> float:
    """Returns the package's own price of a call to a model that it knows."""
    import genai_prices

    told = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    when = _moment(asked_on)
    if not batch:
        return float(genai_prices.calc_price(told, name, genai_request_timestamp=when).total_price)
    standard = genai_prices.calc_price(told, name, genai_request_timestamp=when)
    batched = genai_prices.calc_price(told, name, genai_request_timestamp=when, price_context=_BATCH)
    if batched.model_price == standard.model_price:
        # The table does not list batch prices for every model; all providers with batches charge half.
        return float(standard.total_price * (1 - _USUAL_BATCH_DISCOUNT))
    return float(batched.total_price)


def _has_prices(name: str, asked_on: str, batch: bool) -> bool:
    import genai_prices

    try:
        found = genai_prices.calc_price(
            genai_prices.Usage(input_tokens=0, output_tokens=0), name, genai_request_timestamp=_moment(asked_on)
        )
    except LookupError:
        return False
    # A model may be in the table for its audio alone; the price of its text is then unknown, not zero.
    return found.model_price.input_mtok is not None and found.model_price.output_mtok is not None


def _first_tier(name: str, asked_on: str, batch: bool) -> int | None:
    """Returns the smallest number of input tokens at which a price tier ends; None without tiers."""
    import genai_prices
    from genai_prices.types import TieredPrices

    found = genai_prices.calc_price(
        genai_prices.Usage(input_tokens=0, output_tokens=0),
        name,
        genai_request_timestamp=_moment(asked_on),
        price_context=_BATCH if batch else None,
    )
    tiered = [price for price in vars(found.model_price).values() if isinstance(price, TieredPrices)]
    return min((tier.start for price in tiered for tier in price.tiers), default=None)


def _moment(asked_on: str) -> datetime:
    # Some prices depend on the hour. Noon is outside the cheap hours at night, so that costs are not understated.
    return datetime.combine(date.fromisoformat(asked_on), time(12), tzinfo=UTC)
