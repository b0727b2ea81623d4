"""A client for OpenAI-compatible endpoints based on the `openai` SDK; used by the providers `openai` and `local`."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

from eval_pipeline.core.model import (
    ANSWERED_IN,
    SERVED_FINGERPRINT,
    SERVED_MODEL,
    CallErrorKind,
    Json,
    Response,
    ToolCall,
)
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline.providers.http.endpoints import (
    OWN_AUTHORITY,
    Secrets,
    client_arguments,
    distrusted,
    headers_of_streams,
)
from eval_pipeline.providers.http.errors import body_shown, error_in_answer, is_web_page, may_be_events, status_error
from eval_pipeline.providers.openai.responses import ResponsesAnswer
from eval_pipeline.providers.openai.ways_out import way_out
from eval_pipeline.providers.openai.wire import ChatAnswer, text_in

OPENAI = "https://api.openai.com/v1"
Api = Literal["chat", "responses"]
_PATH = "/chat/completions"
_ROUTES: Mapping[Api, tuple[str, type[ChatAnswer]]] = {
    "chat": (_PATH, ChatAnswer),
    "responses": ("/responses", ResponsesAnswer),
}
_CUSTOM_HEADERS = "OPENAI_CUSTOM_HEADERS"
_ACCOUNT_HEADERS = ("OpenAI-Organization", "OpenAI-Project")


@dataclass(frozen=True, slots=True)
class CountingRoute:
    """A route on which a server counts the tokens of a request without answering it.

    Attributes:
        path: below the base URL, or below the server's root if `from_root`.
        fields: fields of the request that are sent; None: all.
        told_as: the field of the answer that contains the count.
    """

    path: str
    told_as: str
    from_root: bool = False
    fields: frozenset[str] | None = None


COUNTING_ROUTES: Mapping[str, CountingRoute] = {
    "llama.cpp": CountingRoute(f"{_PATH}/input_tokens", "input_tokens"),
    "vllm": CountingRoute("/tokenize", "count", from_root=True, fields=frozenset({"model", "messages"})),
}
"""Server → its route for counting tokens; OpenAI's own API has none."""


class ChatEndpoint:
    """A client of one endpoint; use it until `close`."""

    def __init__(
        self,
        base_url: str,
        version: ModelVersion,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        name: str = "the endpoint",
    ) -> None:
        """Creates the client without connecting.

        Args:
            base_url: the address before `/chat/completions`.
            version: the model version whose deadline and concurrency apply.
            key: API key; None if the endpoint needs none.
            headers: sent with every request.
            name: name of the endpoint, for messages.
        """
        import openai

        from eval_pipeline.providers.http.spread import http_client

        self._secrets = Secrets([*([key] if key else []), *(headers or {}).values()])
        self._name = name
        self._base_url = base_url
        self._sdk = f"openai {openai.__version__}"
        sent = _with_key(headers or {}, key)
        omitted: dict[str, Any] = dict.fromkeys(_headers_for_others(base_url, sent), openai.omit)
        self._options: Any = {"headers": omitted}
        self._stream_options: Any = {"headers": omitted | headers_of_streams(base_url)}
        arguments = client_arguments(base_url, version)
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=key or "none",
            default_headers=sent,
            max_retries=0,  # the caller retries: it counts retries and keeps the deadline
            timeout=arguments["timeout"],
            http_client=http_client(
                openai.DefaultAsyncHttpxClient, version.concurrency, **arguments, follow_redirects=False
            ),
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def complete(self, body: Mapping[str, Json], *, stream: bool, api: Api = "chat") -> Response:
        """Sends a request and returns the response.

        Args:
            body: body of the request.
            stream: stream the answer, which makes the time to the first byte known.
            api: the API that the body is meant for.

        Raises:
            CallError: there is no answer.
            FatalCallError: no request can be answered.
        """
        path, kind = _ROUTES[api]
        answer, first_byte_ms = kind(), None
        asked = perf_counter()
        with self._call_errors():
            if stream:
                async with await self._streamed(path, body) as chunks:
                    if streams := may_be_events(chunks.response.headers):
                        async for chunk in chunks:
                            if answer.add(chunk) and first_byte_ms is None:
                                first_byte_ms = _milliseconds(asked)
                    else:  # some endpoints ignore the request for a stream
                        answer.add(self._completion((await chunks.response.aread()).decode()))
            else:
                streams = False
                answer.add(await self._post(path, body))
            if answer.error:
                raise error_in_answer(answer.error)
        if not answer.begun and not streams:
            raise CallError(CallErrorKind.BAD_RESPONSE, f"{self._name} sent JSON without an answer in it")
        if not answer.heard:
            what = f"{self._name} sent no event of a stream; where it cannot stream, say options: {{stream: false}}"
            raise CallError(CallErrorKind.BAD_RESPONSE, what, retryable=True)
        if streams and answer.stop_reason is None:
            raise CallError(CallErrorKind.CONNECTION, f"{self._name} cut its answer off", retryable=True)
        acts = "tools" in body
        told = {"request_id": answer.request_id, "sdk": self._sdk}
        told |= {SERVED_MODEL: answer.model, SERVED_FINGERPRINT: answer.fingerprint}
        told |= {} if acts else {ANSWERED_IN: answer.answered_in}
        return Response(
            self._secrets.redact((answer.text or answer.refusal) if acts else answer.answer),
            stop_reason=answer.stop_reason or "stop",
            usage=answer.usage,
            latency_ms=_milliseconds(asked),
            first_byte_ms=first_byte_ms,
            call_error=answer.call_error,
            reasoning=self._secrets.redact(answer.reasoning),
            metadata={name: self._secrets.redact(value) for name, value in told.items() if value},
            calls=tuple(map(self._without_secrets, answer.tool_calls)) if acts else (),
            own=answer.own if acts else None,
        )

    def _without_secrets(self, call: ToolCall) -> ToolCall:
        text = json.dumps(call.arguments, ensure_ascii=False)
        redacted = self._secrets.redact(text)
        given = call.arguments if redacted == text else json.loads(redacted)
        return ToolCall(call.id, call.name, given, self._secrets.redact(call.malformed))

    async def count_tokens(self, body: Mapping[str, Json], route: CountingRoute) -> int:
        """Returns the number of input tokens. Raises CallError, or FatalCallError if the endpoint cannot count."""
        import openai

        path = f"{self._base_url.removesuffix('/v1')}{route.path}" if route.from_root else route.path
        sent = {name: value for name, value in body.items() if route.fields is None or name in route.fields}
        with self._call_errors():
            try:
                told = await self._post(path, sent)
            except openai.NotFoundError:
                raise FatalCallError(f"{self._name} does not count tokens at {route.path}") from None
        count = told.get(route.told_as)
        if not isinstance(count, int):
            raise CallError(CallErrorKind.BAD_RESPONSE, f"{self._name} does not tell {route.told_as} at {route.path}")
        return count

    async def models(self) -> list[str] | None:
        """Returns the names of the models that the endpoint lists; None if it has no list.

        Raises CallError or FatalCallError.
        """
        import openai

        with self._call_errors():
            try:
                told = await self._client.get("/models", cast_to=object, options=self._options)
            except openai.APIStatusError as error:
                if error.status_code not in {404, 405, 501}:
                    raise
                return None
        listed = told.get("data") if isinstance(told, Mapping) else None
        return [text_in(one, "id") for one in listed] if isinstance(listed, list) else None

    # The SDK's typed methods are not used: they build objects for every chunk, which takes six times as long.

    async def _post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        told: Any = await self._client.post(path, body=body, cast_to=object, options=self._options)
        # The SDK returns a body that is not labelled as JSON as text.
        return self._completion(told) if isinstance(told, str) else self._checked(told)

    def _completion(self, text: str) -> Mapping[str, Json]:
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            what = f"{self._name} sent {body_shown(text)} where an answer in JSON was expected"
            # A web page will not go away; other text that is not JSON may have been damaged in transit.
            raise CallError(CallErrorKind.BAD_RESPONSE, what, retryable=not is_web_page(text)) from None
        return self._checked(told)

    def _checked(self, told: Json) -> Mapping[str, Json]:
        if not isinstance(told, Mapping):
            raise CallError(CallErrorKind.BAD_RESPONSE, f"{self._name} sent something that is no JSON object")
        if told.get("error"):
            raise error_in_answer(told["error"])
        return told

    async def _streamed(self, path: str, body: Mapping[str, Json]) -> Any:
        import openai

        asked = {**body, "stream": True} | ({"stream_options": {"include_usage": True}} if path == _PATH else {})
        return await self._client.post(
            path,
            body=asked,
            cast_to=object,
            options=self._stream_options,
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )

    @contextmanager
    def _call_errors(self) -> Iterator[None]:
        """Converts every failure to CallError or FatalCallError, without the key."""
        try:
            yield
        except Exception as error:
            meaning = self._meaning(error)
            if meaning is None:
                raise
            # The SDK's exception contains the request and possibly the key, so it is not chained.
            raise self._secrets.redact_error(meaning) from None

    def _meaning(self, error: Exception) -> CallError | FatalCallError | None:
        import httpx2
        import openai

        match error:
            case CallError() | FatalCallError():
                return error
            case openai.APITimeoutError() | httpx2.TimeoutException():
                return CallError(CallErrorKind.TIMEOUT, f"{self._name} did not answer in time", retryable=True)
            case openai.APIConnectionError() | httpx2.RequestError():
                cause = error.__cause__ or error
                if isinstance(cause, httpx2.DecodingError):
                    told = f"{self._name} sent something that cannot be decompressed ({cause})"
                    return CallError(CallErrorKind.BAD_RESPONSE, told, retryable=True)
                told = f"{self._name}: {str(cause) or type(cause).__name__}"
                if distrusted(error):
                    return FatalCallError(f"{told}; {OWN_AUTHORITY}")
                sent = not isinstance(cause, httpx2.ConnectError)
                return CallError(CallErrorKind.CONNECTION, told, retryable=True, sent=sent)
            case openai.APIStatusError():
                return self._with_way_out(status_error(error.status_code, error.body, dict(error.response.headers)))
            case openai.APIError():
                return self._with_way_out(error_in_answer(error.body))
            case json.JSONDecodeError():
                text = f"{self._name} sent {body_shown(error.doc)} where an answer in JSON was expected"
                return CallError(CallErrorKind.BAD_RESPONSE, text, retryable=True)
            case ValueError():
                text = f"{self._name} sent something that is no JSON ({error})"
                return CallError(CallErrorKind.BAD_RESPONSE, text, retryable=True)
        return None

    def _with_way_out(self, error: CallError | FatalCallError) -> CallError | FatalCallError:
        told = str(error)
        known = isinstance(error, FatalCallError) or error.kind is CallErrorKind.BAD_REQUEST
        if not known or (other := way_out(told)) is None:
            return error
        text = f"{told}; {other}"
        return FatalCallError(text) if isinstance(error, FatalCallError) else CallError(error.kind, text)


def _with_key(headers: Mapping[str, str], key: str | None) -> dict[str, str]:
    """Adds the key to the headers unless they contain their own authorization."""
    if key is None or any(name.lower() == "authorization" for name in headers):
        return dict(headers)
    return {"Authorization": f"Bearer {key}", **headers}


def _headers_for_others(base_url: str, sent: Mapping[str, str]) -> list[str]:
    """Returns headers that the SDK would add from the environment although they may be meant for another endpoint."""
    lines = os.environ.get(_CUSTOM_HEADERS, "").splitlines()
    names = ["Authorization", *(line.partition(":")[0].strip() for line in lines)]
    names += () if base_url == OPENAI else _ACCOUNT_HEADERS
    own = {name.lower() for name in sent}
    return [name for name in names if name and name.lower() not in own]


def _milliseconds(since: float) -> float:
    return round((perf_counter() - since) * 1000, 1)
