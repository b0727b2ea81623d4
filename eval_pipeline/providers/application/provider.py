"""The provider `http`: sends the question and its context to the user's own application and reads its answer.

The application is evaluated as it is deployed, with its own prompts, tools and models.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from time import perf_counter
from types import TracebackType
from typing import Any, ClassVar, Self

from pydantic import Field

from eval_pipeline.core.model import SERVED_MODEL, CallErrorKind, Json, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.reading.complaints import Complaint
from eval_pipeline.providers.application.answers import AnswerMapping, JsonPath
from eval_pipeline.providers.base import Call, CallError, Environment, FatalCallError, Traits
from eval_pipeline.providers.http.endpoints import (
    OWN_AUTHORITY,
    BaseUrl,
    EnvironmentName,
    HeaderName,
    Secrets,
    client_arguments,
    distrusted,
    read_headers,
)
from eval_pipeline.providers.http.errors import status_error
from eval_pipeline.providers.prices import has_price
from eval_pipeline.providers.validation import Settings, SettingsError, read_settings, refuse_settings

LARGEST_ANSWER = 10 * 1024 * 1024
"""Size limit for an answer, in bytes."""

TASK_FIELDS = ("question", "context", "history", "failed")
CALL_FIELDS = ("suite", "case_id", "turn_id", "turn_index", "sample", "attempt")
_MAPPED = tuple(field.name for field in fields(AnswerMapping))


class ApplicationSettings(Settings):
    """How the application is asked and its answer read; `options` of the model version.

    Attributes:
        base_url: address of the application.
        path: path below it to which requests are posted.
        headers_env: header names → environment variables that hold their values.
        body: additional fields of every request.
        answer_path, answer_field, input_tokens_path, output_tokens_path, cost_path, model_path: see `AnswerMapping`.
    """

    base_url: BaseUrl
    path: str = Field(default="", pattern=r"^[^?#\s]*$")
    headers_env: dict[HeaderName, EnvironmentName] = Field(default_factory=dict)
    body: dict[str, Json] = Field(default_factory=dict)
    answer_path: JsonPath | None = None
    answer_field: str | None = Field(default=None, min_length=1)
    input_tokens_path: JsonPath | None = None
    output_tokens_path: JsonPath | None = None
    cost_path: JsonPath | None = None
    model_path: JsonPath | None = None

    @property
    def url(self) -> str:
        """The address to which requests are posted."""
        return f"{self.base_url}/{self.path.lstrip('/')}" if self.path else self.base_url

    @property
    def mapping(self) -> AnswerMapping:
        """How answers are read."""
        return AnswerMapping(**{name: getattr(self, name) for name in _MAPPED})


class ApplicationProvider(Traits):
    """Posts each turn to the application; the client is created with the first one."""

    own_prompt: ClassVar[bool] = True
    can_judge: ClassVar[bool] = False
    extra: ClassVar[str] = "http"
    packages: ClassVar[tuple[str, ...]] = ("jsonpath",)

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "predictions", "sampling", "batch")
        self._settings = settings = read_settings(ApplicationSettings, version)
        taken = [name for name in (*TASK_FIELDS, *CALL_FIELDS) if name in settings.body]
        if taken:
            told = "is a field of every request already; give yours another name"
            raise SettingsError(version.name, tuple(Complaint(("options", "body", name), told) for name in taken))
        if unknown := _unknown_spending(version, settings):
            raise SettingsError(version.name, unknown)
        self._version = version
        self._mapping = settings.mapping
        self._client: Any = None
        self._secrets = Secrets(())

    def request(self, call: Call) -> Json:
        """Returns body, address and answer mapping of the request, plus the model version's name.

        The prompt is not included, because the application makes its own. The name is included because nothing is known
        about the application's release and model: another name stands for another application.
        """
        # The path of the served model's name does not affect the answer; adding it must not cause everything to be
        # asked again.
        read = {name: getattr(self._mapping, name) for name in _MAPPED if name != "model_path"}
        return {"name": self._version.name, "url": self._settings.url, "read": read, "body": self._body(call)}

    async def generate(self, call: Call) -> Response:
        """Makes one try. Raises CallError, or FatalCallError if no call can succeed."""
        import httpx2

        self._open()
        body = json.dumps(self._body(call)).encode()
        asked = perf_counter()
        with self._call_errors():
            headers = {"content-type": "application/json", "accept": "application/json, text/plain;q=0.9, */*;q=0.1"}
            async with self._client.stream("POST", self._settings.url, content=body, headers=headers) as answer:
                content, first_byte_ms = await _read(answer, asked)
            if not answer.is_success:
                raise _refusal(answer, content)
            text = _text(content)
            latency_ms = _milliseconds(asked)
            mapped = self._mapping.read(text)
            request_id = answer.headers.get("x-request-id")
        told = {"request_id": request_id, SERVED_MODEL: mapped.served_model, "sdk": f"httpx2 {httpx2.__version__}"}
        return Response(
            self._secrets.redact(mapped.text),
            usage=mapped.usage,
            latency_ms=latency_ms,
            first_byte_ms=first_byte_ms,
            usd=mapped.usd,
            metadata={name: self._secrets.redact(value) for name, value in told.items() if value},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.aclose()
        self._client = None

    def _body(self, call: Call) -> dict[str, Json]:
        ids = (call.suite, call.case_id, call.turn_id, call.turn_index, call.sample, call.number)
        return {**self._settings.body, **call.task.as_json(), **dict(zip(CALL_FIELDS, ids, strict=True))}

    def _open(self) -> None:
        if self._client is not None:
            return
        import httpx2

        from eval_pipeline.providers.http.spread import http_client

        headers = read_headers(self._settings.headers_env, self._version)
        self._secrets = Secrets(headers.values())
        # Redirects are not followed, since the headers are meant for the configured address only.
        arguments = client_arguments(self._settings.url, self._version)
        self._client = http_client(httpx2.AsyncClient, self._version.concurrency, headers=headers, **arguments)

    @contextmanager
    def _call_errors(self) -> Iterator[None]:
        """Converts every failure to CallError or FatalCallError, without secrets."""
        try:
            yield
        except Exception as error:
            meaning = _meaning(error)
            if meaning is None:
                raise
            # The client's exception contains the request with its headers, so it is not chained.
            raise self._secrets.redact_error(meaning) from None


def _unknown_spending(version: ModelVersion, settings: ApplicationSettings) -> tuple[Complaint, ...]:
    """Returns complaints about spending limits that could not be enforced because the spending is unknown."""
    tells_tokens = settings.input_tokens_path is not None and settings.output_tokens_path is not None
    tells_dollars = settings.cost_path is not None or (tells_tokens and has_price(version))
    told = "needs {}: else nothing is known of what the application spends"
    wrong = []
    if version.max_cost_usd is not None and not tells_dollars:
        what = told.format("options.cost_path, or both paths of tokens and a price")
        wrong.append(Complaint(("max_cost_usd",), what))
    if version.max_tokens_total is not None and not tells_tokens:
        what = told.format("options.input_tokens_path and options.output_tokens_path")
        wrong.append(Complaint(("max_tokens_total",), what))
    return tuple(wrong)


async def _read(answer: Any, asked: float) -> tuple[bytes, float | None]:
    """Reads the body and the time to its first byte in milliseconds. Raises CallError if it is too large."""
    content, first_byte_ms = bytearray(), None
    async for piece in answer.aiter_bytes():
        if first_byte_ms is None:
            first_byte_ms = _milliseconds(asked)
        content += piece
        if len(content) > LARGEST_ANSWER:
            told = f"the application's answer is larger than {LARGEST_ANSWER // 1024**2} MiB"
            raise CallError(CallErrorKind.BAD_RESPONSE, told)
    return bytes(content), first_byte_ms


def _refusal(answer: Any, content: bytes) -> CallError | FatalCallError:
    """Converts an answer with an error status to a call error."""
    text = content.decode("utf-8", "replace")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = text
    # 404 may mean that the application knows nothing about this one question.
    return status_error(answer.status_code, told, dict(answer.headers), not_found_is_fatal=False)


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CallError(
            CallErrorKind.BAD_RESPONSE, f"the application's answer is not UTF-8 ({error.reason})"
        ) from error


def _meaning(error: Exception) -> CallError | FatalCallError | None:
    import httpx2

    match error:
        case CallError() | FatalCallError():
            return error
        case httpx2.TimeoutException():
            return CallError(CallErrorKind.TIMEOUT, "the application did not answer in time", retryable=True)
        case httpx2.DecodingError():
            told = f"the application's answer cannot be decompressed ({error})"
            return CallError(CallErrorKind.BAD_RESPONSE, told, retryable=True)
        case httpx2.HTTPError():
            told = f"the application: {error or type(error).__name__}"
            if distrusted(error):
                return FatalCallError(f"{told}; {OWN_AUTHORITY}")
            sent = not isinstance(error, httpx2.ConnectError)
            return CallError(CallErrorKind.CONNECTION, told, retryable=True, sent=sent)
    return None


def _milliseconds(since: float) -> float:
    return round((perf_counter() - since) * 1000, 1)
