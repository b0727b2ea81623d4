"""Input tokens of planned calls: counted by the provider if possible, otherwise estimated."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, cast

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Prompt
from eval_pipeline.providers.base import Call, CallError, Provider, TokenCounter

COUNTED_ALL = 200
"""Up to this number of distinct prompts, each is counted; of more, this many are drawn, always the same ones."""
CHARACTERS_PER_TOKEN = 4
"""Rough rule for English text; counts by providers are more accurate."""
_AT_ONCE = 4

How = Literal["counted", "sampled", "estimated", "told", "unknown", "recorded"]
"""How input tokens were determined.

In this order: all counted by the provider; some counted and the others estimated by length; all estimated by length;
reported by earlier answers; unknown; nothing is asked because the answers are recorded.
"""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Input tokens of each call, in order.

    Attributes:
        how: `counted`, `sampled` or `estimated`.
        why: why a provider that counts did not count everything; else empty.
    """

    tokens: tuple[float, ...]
    how: How
    why: str = ""


def count_input_tokens(provider: Provider, calls: Sequence[Call]) -> TokenCounts:
    """Returns the input tokens of calls, estimated if the provider cannot count them (or has no key or network)."""
    if not calls:
        return TokenCounts((), "counted")
    why = ""
    if isinstance(provider, TokenCounter):
        distinct = list({call.prompt.text(): call for call in calls}.values())
        counted: dict[str, int] = {}
        try:
            asyncio.run(_count(provider, Random(0).sample(distinct, min(COUNTED_ALL, len(distinct))), counted))
        except (CallError, EvalError) as error:
            why = str(error)
        if counted:
            how: How = "counted" if len(counted) == len(distinct) else "sampled"
            return TokenCounts(_each(calls, counted), how, why)
    return TokenCounts(tuple(characters(call.prompt) / CHARACTERS_PER_TOKEN for call in calls), "estimated", why)


def characters(prompt: Prompt) -> int:
    """Returns the number of characters sent, including the schema of the answer."""
    schema = len(json_text(dict(prompt.answer_schema))) if prompt.answer_schema is not None else 0
    return sum(len(message.text) for message in prompt.messages) + schema


async def _count(provider: TokenCounter, calls: Sequence[Call], counted: dict[str, int]) -> None:
    """Adds counted tokens by prompt text. Raises CallError or EvalError."""
    waiting = iter(calls)

    async def worker() -> None:
        for call in waiting:
            counted[call.prompt.text()] = await provider.count_tokens(call)

    async with cast("Provider", provider):
        workers = [asyncio.ensure_future(worker()) for _ in range(_AT_ONCE)]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)


def _each(calls: Sequence[Call], counted: Mapping[str, int]) -> tuple[float, ...]:
    """Returns the counted tokens; other calls get the average number of tokens per character of the counted ones."""
    lengths = {text: characters(call.prompt) for call in calls if (text := call.prompt.text()) in counted}
    rate = sum(counted.values()) / sum(lengths.values())
    found = (counted.get(call.prompt.text()) for call in calls)
    return tuple(
        characters(call.prompt) * rate if tokens is None else float(tokens)
        for call, tokens in zip(calls, found, strict=True)
    )
