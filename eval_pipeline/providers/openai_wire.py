"""The chat completions of OpenAI-compatible endpoints: requests, answers and errors, as plain values.

Nothing here connects or imports the SDK: `local` shares it with every provider that speaks this form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from eval_pipeline.core.model import CallErrorKind, Json, Prompt, Usage
from eval_pipeline.providers.base import CallError, FatalCallError

_NO_CREDIT = {"insufficient_quota", "billing_hard_limit_reached"}


def chat_request(model: str, prompt: Prompt, max_tokens: int, sampling: Mapping[str, Json]) -> dict[str, Json]:
    """The body of a request, without what concerns its transport only."""
    body: dict[str, Json] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.text} for message in prompt.messages],
        "max_tokens": max_tokens,
        **sampling,
    }
    if prompt.answer_schema is not None:
        schema = {"name": "answer", "schema": dict(prompt.answer_schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


@dataclass(slots=True)
class StreamedAnswer:
    """An answer that is put together from the chunks of a stream.

    Attributes:
        stop_reason: None while the stream has not said it: one that ends so was cut off.
        refusal: what the model said in place of an answer, where the endpoint tells them apart.
    """

    text: str = ""
    stop_reason: str | None = None
    refusal: str = ""
    request_id: str | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)

    def add(self, chunk: Mapping[str, Any]) -> bool:
        """Takes in a chunk; whether it brought text."""
        self.request_id = self.request_id or chunk.get("id")
        self.model = self.model or chunk.get("model")
        if chunk.get("usage"):
            self.usage = usage_of(chunk["usage"])
        brought = False
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            self.refusal += delta.get("refusal") or ""
            if delta.get("content"):
                self.text += delta["content"]
                brought = True
            self.stop_reason = choice.get("finish_reason") or self.stop_reason
        return brought


def usage_of(told: Mapping[str, Any]) -> Usage:
    """Tokens as an endpoint tells them; `prompt_tokens` counts cached ones too."""
    prompt_tokens = told.get("prompt_tokens")
    details = told.get("prompt_tokens_details") or {}
    # Some gateways count cached tokens that are not in prompt_tokens; a price needs parts that fit in the whole.
    read = min(details.get("cached_tokens") or 0, prompt_tokens or 0)
    write = min(details.get("cache_write_tokens") or 0, (prompt_tokens or 0) - read)
    return Usage(prompt_tokens, told.get("completion_tokens"), read, write)


def status_error(status: int, body: Json, headers: Mapping[str, str]) -> CallError | FatalCallError:
    """What an answer with an error status means.

    Args:
        status: the HTTP status.
        body: the decoded body or the `error` object in it, if there was any.
        headers: with names in lower case.
    """
    message, code = _told(body)
    text = f"HTTP {status}: {message}" if message else f"HTTP {status}"
    wait = retry_after(headers, datetime.now(UTC))
    match status:
        case 401 | 403:
            return FatalCallError(f"the endpoint refuses the key ({text})")
        case 404:
            return FatalCallError(f"the endpoint or the model does not exist ({text})")
        case 429 if code in _NO_CREDIT:
            return FatalCallError(f"the account has no credit left ({text})")
        case 429:
            return CallError(CallErrorKind.RATE_LIMITED, text, retryable=True, retry_after=wait)
        case 408:
            return CallError(CallErrorKind.TIMEOUT, text, retryable=True, retry_after=wait)
        case 409:
            return CallError(CallErrorKind.OVERLOADED, text, retryable=True, retry_after=wait)
        case _ if status >= 500:
            return CallError(CallErrorKind.OVERLOADED, text, retryable=True, retry_after=wait)
    return CallError(CallErrorKind.BAD_REQUEST, text)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait by `retry-after-ms` or `retry-after` (seconds or a date), or None."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if "retry-after" not in headers:
            return None
        told = headers["retry-after"]
        try:
            return max(0.0, float(told))
        except ValueError:
            return max(0.0, (parsedate_to_datetime(told) - now).total_seconds())
    except (ValueError, TypeError):  # no number and no date: as if it were not there
        return None


def _told(body: Json) -> tuple[str, str]:
    """Message and code in the body of an error."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            return str(inner.get("message") or ""), str(inner.get("code") or inner.get("type") or "")
        return str(inner), ""
    return str(body or "")[:500], ""
