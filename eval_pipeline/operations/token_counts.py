"""How many input tokens calls will take: counted by the provider where it can, else estimated."""

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
"""Distinct prompts up to which each is counted; of more, that many are drawn, the same ones each time."""
CHARACTERS_PER_TOKEN = 4
"""A rough rule for English text; providers that count tokens themselves come closer."""
_AT_ONCE = 4

How = Literal["counted", "sampled", "estimated", "told", "unknown", "recorded"]
"""How input tokens are known: each counted by the provider; some were, the rest follows from their length; estimated
from the length alone; told by earlier answers; not at all; nothing is asked, since the answers are on file."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Input tokens of each call, in order.

    Attributes:
        how: `counted`, `sampled` or `estimated`.
        why: what kept a provider that counts from counting all that it was asked; else empty.
    """

    tokens: tuple[float, ...]
    how: How
    why: str = ""


def count_input_tokens(provider: Provider, calls: Sequence[Call]) -> TokenCounts:
    """The input tokens of calls; an estimate where the provider cannot count them, or not now (no key, no network)."""
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
    """Characters of everything that is sent, the schema of the answer among them."""
    schema = len(json_text(dict(prompt.answer_schema))) if prompt.answer_schema is not None else 0
    return sum(len(message.text) for message in prompt.messages) + schema


async def _count(provider: TokenCounter, calls: Sequence[Call], counted: dict[str, int]) -> None:
    """Adds tokens by the prompt's text. Raises CallError or EvalError."""
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
    """What was counted, and for other calls as many tokens a character as the counted ones have."""
    lengths = {text: characters(call.prompt) for call in calls if (text := call.prompt.text()) in counted}
    rate = sum(counted.values()) / sum(lengths.values())
    found = (counted.get(call.prompt.text()) for call in calls)
    return tuple(
        characters(call.prompt) * rate if tokens is None else float(tokens)
        for call, tokens in zip(calls, found, strict=True)
    )
