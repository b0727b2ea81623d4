"""A client of the `anthropic` SDK: sends messages whole or as a stream, and converts its exceptions to call errors.

The SDK is imported with the first call, since the import takes seconds.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

from eval_pipeline.core.model import CallErrorKind, Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.anthropic.settings import AnthropicSettings
from eval_pipeline.providers.anthropic.wire import StreamedMessage, batch_error, error_of
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline.providers.http.endpoints import (
    OWN_AUTHORITY,
    Secrets,
    client_arguments,
    distrusted,
    headers_of_streams,
    read_secret,
)
from eval_pipeline.providers.http.errors import body_shown, is_web_page, may_be_events

_CUSTOM_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"


@dataclass(frozen=True, slots=True)
class AnthropicAnswer:
    """A message decoded from JSON, with facts about its transport."""

    message: Any
    request_id: str | None
    latency_ms: float
    first_byte_ms: float | None = None


class AnthropicClient:
    """One SDK client with its connections; belongs to one event loop."""

    def __init__(self, settings: AnthropicSettings, version: ModelVersion) -> None:
        """Creates the client without connecting. Raises FatalCallError if there is no key."""
        import anthropic
        import httpx2

        from eval_pipeline.providers.http.spread import http_client

        self._model = version.model
        self._key_name = settings.api_key_env
        key = read_secret(settings.api_key_env, version)
        self.secrets = Secrets([key, *_custom_header_values()])
        arguments = client_arguments(settings.address, version)
        if settings.timeout_s is not None:
            arguments["timeout"] = httpx2.Timeout(settings.timeout_s, pool=None)
        # The SDK's own HTTP client uses the environment's proxies whatever `trust_env` says.
        connections = anthropic.DefaultAsyncHttpxClient if arguments["trust_env"] else httpx2.AsyncClient
        # The key is meant for the configured address only, so redirects are not followed.
        self.sdk = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=settings.address,
            max_retries=0,  # the caller retries: it counts retries and keeps the deadline
            timeout=arguments["timeout"],
            open_telemetry=False,  # the SDK's spans could send prompts to whatever address the environment names
            http_client=http_client(connections, version.concurrency, **arguments, follow_redirects=False),
        )
        self._stream_headers = headers_of_streams(settings.address)
        self.version = f"anthropic {anthropic.__version__}"

    async def close(self) -> None:
        """Closes the connections."""
        await self.sdk.close()

    async def message(self, body: Mapping[str, Json]) -> AnthropicAnswer:
        """Requests a message as a whole. Raises CallError or FatalCallError."""
        asked = perf_counter()
        with self.errors():
            raw = await self.sdk.messages.with_raw_response.create(**with_sendable_schema(body))
            response = raw.http_response
            # The SDK's response models take longer to build than the rest of the call, and hide what is not a message.
            message = self._message(response.content)
        self._raise_told_error(message, response.headers)
        return AnthropicAnswer(self.without_key(message), response.headers.get("request-id"), _milliseconds(asked))

    async def streamed_message(self, body: Mapping[str, Json], begun: Callable[[], None]) -> AnthropicAnswer:
        """Requests a message as a stream and calls `begun` when it begins. Raises CallError or FatalCallError."""
        import anthropic

        streamed, heard = StreamedMessage(), False
        first_byte_ms: float | None = None
        asked = perf_counter()
        create = self.sdk.messages.with_streaming_response.create
        with self.errors():
            asking = create(**with_sendable_schema(body), stream=True, extra_headers=self._stream_headers)
            async with asking as raw:
                response = raw.http_response
                if not may_be_events(response.headers):  # a gateway that ignores the request for a stream
                    message = self._message(await response.aread())
                    self._raise_told_error(message, response.headers)
                    begun()
                    request_id = response.headers.get("request-id")
                    return AnthropicAnswer(self.without_key(message), request_id, _milliseconds(asked))
                async for event in anthropic.AsyncStream.raw_events(response):
                    if not event.data:
                        continue
                    heard, told = True, event.json()
                    self._raise_told_error(told, response.headers)
                    if streamed.add(told) and first_byte_ms is None:
                        first_byte_ms = _milliseconds(asked)
                    if event.event == "message_start":
                        begun()
        if not heard:
            raise CallError(CallErrorKind.BAD_RESPONSE, "the API sent no event of a stream", retryable=True)
        if not streamed.complete:
            raise CallError(CallErrorKind.CONNECTION, "the API cut its answer off", retryable=True)
        message = self.without_key(streamed.message)
        return AnthropicAnswer(message, response.headers.get("request-id"), _milliseconds(asked), first_byte_ms)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Converts the SDK's exceptions to CallError or FatalCallError, without the key.

        `from None`, because the exceptions contain the request with the key, and their text may repeat it.
        """
        import anthropic
        import httpx2

        try:
            yield
        except anthropic.APIStatusError as error:
            raise self._meaning(error.status_code, error.body, error.response.headers) from None
        except (anthropic.APITimeoutError, httpx2.TimeoutException) as error:
            what = f"the API did not answer in time ({type(error.__cause__ or error).__name__})"
            raise CallError(CallErrorKind.TIMEOUT, what, retryable=True) from None
        except (anthropic.APIConnectionError, httpx2.RequestError) as error:
            cause = error.__cause__ or error
            if distrusted(error):
                raise FatalCallError(f"{type(cause).__name__}: {cause}; {OWN_AUTHORITY}") from None
            what = self.secrets.redact(f"the connection to the API failed ({type(cause).__name__}: {cause})")
            sent = not isinstance(cause, httpx2.ConnectError)
            raise CallError(CallErrorKind.CONNECTION, what, retryable=True, sent=sent) from None
        except (anthropic.AnthropicError, ValueError) as error:  # ValueError: the body is not JSON or not UTF-8
            what = self.secrets.redact(f"the API sent something unreadable ({type(error).__name__}: {error})")
            raise CallError(CallErrorKind.BAD_RESPONSE, what, retryable=True) from None

    def without_key(self, told: Any) -> Any:
        """Removes the key from decoded JSON, since a model or a gateway may repeat it."""
        text = json.dumps(told, ensure_ascii=False)
        redacted = self.secrets.redact(text)
        return told if redacted == text else json.loads(redacted)

    def batch_error(self, result: Mapping[str, Any]) -> CallError:
        """Returns why a request of a batch has no message, without the key."""
        error = batch_error(result, model=self._model, key_name=self._key_name)
        return CallError(error.kind, self.secrets.redact(error.message), retryable=error.retryable)

    def _message(self, content: bytes) -> Any:
        """Decodes a body that should be a message. Raises CallError or ValueError."""
        text = content.decode()
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            what = self.secrets.redact(f"the API sent {body_shown(text)} where an answer in JSON was expected")
            raise CallError(CallErrorKind.BAD_RESPONSE, what, retryable=not is_web_page(text)) from None

    def _raise_told_error(self, told: Any, headers: Mapping[str, str]) -> None:
        if isinstance(told, Mapping) and told.get("type") == "error":
            raise self._meaning(200, told, headers)

    def _meaning(self, status: int, body: Any, headers: Mapping[str, str]) -> Exception:
        return self.secrets.redact_error(error_of(status, body, headers, model=self._model, key_name=self._key_name))


def with_sendable_schema(body: Mapping[str, Json]) -> dict[str, Any]:
    """Returns the body with an answer schema that the API accepts; the SDK moves unsupported keywords to descriptions.

    Raises:
        CallError: the SDK cannot convert the schema.
    """
    config = body.get("output_config") or {}
    if "format" not in config:
        return dict(body)
    schema = _sendable_schema(json.dumps(config["format"]["schema"]))
    return {**body, "output_config": {**config, "format": {**config["format"], "schema": schema}}}


@lru_cache(maxsize=256)
def _sendable_schema(schema: str) -> dict[str, Any]:
    import anthropic

    try:
        return anthropic.transform_schema(json.loads(schema))
    except ValueError as error:
        raise CallError(CallErrorKind.BAD_REQUEST, f"the answer schema cannot be sent: {error}") from None


def _custom_header_values() -> list[str]:
    """Returns the values of custom headers that the SDK takes from the environment, as they may be secret."""
    lines = os.environ.get(_CUSTOM_HEADERS, "").split("\n")
    return [value.strip() for _, colon, value in (line.partition(":") for line in lines) if colon]


def _milliseconds(since: float) -> float:
    return round((perf_counter() - since) * 1000, 1)
