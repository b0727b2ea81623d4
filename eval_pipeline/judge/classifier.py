"""Runs AutoEvals' classifier with a provider of this project: AutoEvals builds the prompt, the provider asks the model.

AutoEvals speaks OpenAI's chat completions with a forced tool call. The client object passed to it turns that into a
prompt with an answer schema, which the provider sends in its own form (Anthropic's messages with
`output_config.format`). AutoEvals itself has no time-out and repeats rate-limited calls a hundred times, so retries are
handled here.
"""

import asyncio
import math
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any

from eval_pipeline.asking.answers import Counters
from eval_pipeline.asking.budgets import Budget
from eval_pipeline.asking.limits import AdaptiveLimit
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import CallErrorKind, CallFailure, Json, Message, Prompt, Response
from eval_pipeline.judge.prompt import JudgePrompt, mark_of
from eval_pipeline.providers.base import Call, CallError, Provider


class AskedModel:
    """The judge's model for one question: asks the provider, with retries, and keeps the response.

    Attributes:
        response: the last response.
        deadline: on the event loop's clock; no retry starts after it.
    """

    def __init__(
        self,
        provider: Provider,
        retries: RetryPolicy,
        limit: AdaptiveLimit,
        counters: Counters,
        longest_reason: int,
        budget: Budget | None = None,
    ) -> None:
        self.response: Response | None = None
        self.deadline = math.inf
        self._provider = provider
        self._retries = retries
        self._limit = limit
        self._counters = counters
        self._longest_reason = longest_reason
        self._budget = budget
        self._rng = Random()  # only for jitter

    async def complete(self, **asked: Any) -> dict[str, Any]:
        """Returns a chat completion in which the answer is presented as the tool call that AutoEvals forces.

        Raises:
            CallError: there is no answer, or it was refused or cut off.
            FatalCallError: no call can succeed.
        """
        function = asked["tools"][0]["function"]
        messages = tuple(Message(message["role"], message["content"]) for message in asked["messages"])
        schema = _bounded(function["parameters"], self._longest_reason)
        response = self.response = await self._ask(_call(Prompt(messages, answer_schema=schema)))
        if response.call_error is not None:
            raise CallError(response.call_error, f"the judge's answer ended with {response.stop_reason}")
        tool_call = {"type": "function", "function": {"name": function["name"], "arguments": response.text}}
        return {"choices": [{"message": {"role": "assistant", "tool_calls": [tool_call]}}]}

    async def _ask(self, call: Call) -> Response:
        retries = 0
        while True:
            self._counters.calls += 1
            began = self._limit.began()
            try:
                response = await self._paid(call)
            except CallError as error:
                self._limit.failed(error.kind, began)
                pause = self._retries.pause(error, retries, self._rng)
                if pause is None or asyncio.get_running_loop().time() + pause >= self.deadline:
                    raise
                self._counters.note_retry(error.kind.value, error.message)
            else:
                self._limit.succeeded()
                return response
            await asyncio.sleep(pause)
            retries += 1
            self._counters.retries += 1

    async def _paid(self, call: Call) -> Response:
        """Makes one try within the budget; if its cost stays unknown, the maximum is counted."""
        if self._budget is None:
            return await self._provider.generate(call)
        reserved = await self._budget.reserve(call)
        if reserved is None:
            refusal = self._budget.refusal
            raise CallError(refusal.kind, refusal.message)
        cost: Response | CallFailure | None = None
        try:
            cost = response = await self._provider.generate(call)
            return response
        except CallError as error:
            cost = CallFailure(error.kind, error.message) if error.sent else None
            raise
        except asyncio.CancelledError:
            cost = CallFailure(CallErrorKind.TIMEOUT, "no answer in time")
            raise
        finally:
            self._budget.settle(reserved, cost)


async def classify(
    model: AskedModel, name: str, prompt: JudgePrompt, generated: str, expected: str, schema: str
) -> tuple[float, str, str]:
    """Returns value, choice and reasoning of the judge.

    Raises:
        CallError, FatalCallError: raised by the model.
        ValueError, KeyError, TypeError, AttributeError: the model answered something other than a choice.
    """
    from autoevals import LLMClassifier

    # Model and client are always given, as AutoEvals would otherwise read keys and addresses from the environment.
    classifier = LLMClassifier(
        "judge", prompt.template, dict(prompt.choices), model=name, use_cot=True, client=_client_class()(model)
    )
    mark = mark_of(generated, expected, schema, *prompt.variables.values())
    told = {**prompt.variables, "schema": schema, "mark": mark}
    score = await classifier.eval_async(output=generated, expected=expected, **told)
    return float(score.score), str(score.metadata["choice"]), str(score.metadata["rationale"])


@lru_cache(maxsize=1)
def _client_class() -> Any:
    """Returns AutoEvals' client class without its handling of OpenAI clients (tracing, routing by model name)."""
    from autoevals.oai import LLMClient

    class Client(LLMClient):  # type: ignore[misc]
        def __init__(self, model: AskedModel) -> None:
            super().__init__(openai=None, complete=model.complete, RateLimitError=_NeverRaisedError, is_async=True)

        def __post_init__(self) -> None:
            """Does nothing: there is nothing to detect."""

    return Client


class _NeverRaisedError(Exception):
    """The exception on which AutoEvals would repeat a call; never raised."""


def _bounded(schema: Mapping[str, Json], longest_reason: int) -> dict[str, Json]:
    """Returns AutoEvals' schema of a choice, with a limit on the reasons' length and no additional properties."""
    fields = dict(schema["properties"])
    fields["reasons"] = {**fields["reasons"], "maxLength": longest_reason}
    return {**schema, "properties": fields, "additionalProperties": False}


def _call(prompt: Prompt) -> Call:
    """Returns the question as a call for providers; the call belongs to no turn."""
    place = f"judge/{text_hash(prompt.text())}"
    return Call(
        suite="judge",
        case_id=place,
        turn_id=place,
        turn_index=0,
        sample=0,
        number=0,
        prompt=prompt,
        gold=_NothingKnown(),
        task=_NothingKnown(),
    )


class _NothingKnown:
    """Empty gold and task: a judge has neither, so stand-ins for a model cannot act as one."""

    def fingerprint(self) -> str:
        return ""

    def oracle(self) -> str:
        return ""

    def failure_modes(self) -> tuple[str, ...]:
        return ()

    def damage(self, mode: str, rng: Random) -> str | None:
        return None

    def as_json(self) -> Json:
        return None

    def for_program(self) -> tuple[str, Json]:
        return "", None
