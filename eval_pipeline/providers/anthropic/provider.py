"""The provider `anthropic`: Claude models through the messages, message batches and token counting APIs."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import CallErrorKind, Json, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.anthropic.client import AnthropicAnswer, AnthropicClient, with_sendable_schema
from eval_pipeline.providers.anthropic.prefix_gate import PATIENCE_S, PlaceInLine, PrefixGate
from eval_pipeline.providers.anthropic.settings import ANTHROPIC, KEY_VARIABLE, read_anthropic_settings
from eval_pipeline.providers.anthropic.wire import (
    count_request,
    message_request,
    response_of,
    shared_text,
)
from eval_pipeline.providers.base import Batch, Call, CallError, Environment, Traits

if TYPE_CHECKING:
    from anthropic.types.messages import MessageBatch

STREAMED_FROM = 8192
"""Answers with a higher `max_tokens` are streamed.

Without a stream the SDK refuses long waits for some models, and idle connections get dropped.
"""
_SUBMIT_S = 600.0  # the API receives hundreds of megabytes before it answers
_PAGE = 100


class AnthropicProvider(Traits):
    """Asks a Claude model singly or in batches; the client is created with the first call."""

    has_tools: ClassVar[bool] = True
    key_variable: ClassVar[str] = KEY_VARIABLE
    max_batch_requests: ClassVar[int] = 100_000
    max_batch_bytes: ClassVar[int] = 240_000_000  # of 256 MB; leaves room for custom ids and cache marks

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        self._settings, sampling = read_anthropic_settings(version)
        self._sampling = sampling.as_body()
        self._version = version
        self._streams = self._settings.stream or version.max_tokens > STREAMED_FROM
        # Waiting for other calls must not use up much of a call's deadline.
        self._patience_s = min(PATIENCE_S, version.deadline_s / 4)
        self._prefixes = PrefixGate(self._patience_s)
        self._made: AnthropicClient | None = None

    def request(self, call: Call) -> Json:
        """Returns the request body without streaming and cache marks, which do not matter for reusing an answer.

        If the address is not Anthropic's own, it is included, because another model may answer there.
        """
        body, address = self._body(call, cached=False), self._settings.address
        return body if address == ANTHROPIC else {"endpoint": address, "body": body}

    async def generate(self, call: Call) -> Response:
        """Makes one try. If calls share a prefix, this waits for the one that writes the prefix to the cache.

        Raises:
            CallError: there is no answer.
            FatalCallError: the key, the model or the account is refused.
        """
        client = self._client()
        body = self._body(call, cached=call.prefix_uses > 1 or bool(call.prompt.tools))
        if call.prefix_uses <= 1 or not call.prompt.shared:
            return _response(client, await self._ask(client, body, None, ""))
        prefix = shared_text(call.prompt)
        key = text_hash(prefix)
        async with self._prefixes.turn(key, len(prefix)) as turn:
            response = _response(client, await self._ask(client, body, turn, key))
        if response.usage.cache_read_tokens == response.usage.cache_write_tokens == 0:
            self._prefixes.not_cached(len(prefix))
        return response

    async def submit_batch(self, calls: Mapping[str, Call]) -> Batch:
        """Submits the calls as a batch, each under its custom id. Raises CallError or FatalCallError."""
        client = self._client()
        requests: list[Any] = [
            {"custom_id": custom_id, "params": with_sendable_schema(self._body(call, cached=call.prefix_uses > 1))}
            for custom_id, call in calls.items()
        ]
        with client.errors():
            return _batch(await client.sdk.messages.batches.create(requests=requests, timeout=_SUBMIT_S))

    async def batch(self, batch_id: str) -> Batch | None:
        """Returns the state of a batch; None if the API does not know it or has deleted its results.

        Raises CallError or FatalCallError.
        """
        import anthropic

        client = self._client()
        with client.errors():
            try:
                told = await client.sdk.messages.batches.retrieve(batch_id)
            except anthropic.NotFoundError:
                return None
            found = _batch(told)
        return found if told.archived_at is None else None

    async def batches(self, since: datetime) -> AsyncIterator[Batch]:
        """Yields the batches of the key's workspace created since then, newest first.

        Raises CallError or FatalCallError.
        """
        client = self._client()
        with client.errors():
            first = await client.sdk.messages.batches.list(limit=_PAGE)
            async for page in first.iter_pages():
                with _of_its_form():  # the SDK reads anything without `data` as an empty list
                    found = [_batch(told) for told in page.data]
                for batch in found:
                    if batch.created_at < since:
                        return
                    yield batch

    async def batch_results(self, batch_id: str) -> AsyncGenerator[tuple[str, Response | CallError], None]:
        """Yields the result of each request of an ended batch, by custom id, in no particular order.

        A CallError among the results is retryable unless the request itself was refused.

        Raises:
            CallError: the results cannot be read completely.
            FatalCallError: the key is refused.
        """
        client = self._client()
        metadata = {"sdk": client.version, "batch_id": batch_id}
        with client.errors():
            results = await client.sdk.messages.batches.results(batch_id)
            try:
                async for entry in results:
                    with _of_its_form():
                        custom_id, result = entry.custom_id, entry.result.to_dict(mode="json")
                    yield custom_id, self._batch_outcome(client, result, metadata)
            finally:
                await results.close()

    async def count_tokens(self, call: Call) -> int:
        """Returns the number of input tokens as counted by the API. Raises CallError or FatalCallError."""
        client = self._client()
        body = with_sendable_schema(count_request(self._body(call, cached=False)))
        with client.errors():
            counted = await client.sdk.messages.count_tokens(**body)
        if not isinstance(counted.input_tokens, int):
            raise CallError(CallErrorKind.BAD_RESPONSE, "the API counted no tokens", retryable=True)
        return counted.input_tokens

    async def why_no_model(self) -> str | None:
        """See `KnowsModels`: asks for the model by its name, which may be an alias."""
        import anthropic

        client = self._client()
        with client.errors():
            try:
                await client.sdk.models.retrieve(self._version.model)
            except anthropic.NotFoundError:
                return "is unknown to the API"
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._made is not None:
            await self._made.close()
        self._made = None
        self._prefixes = PrefixGate(self._patience_s)  # a new event loop needs a new gate

    def _client(self) -> AnthropicClient:
        if self._made is None:
            self._made = AnthropicClient(self._settings, self._version)
        return self._made

    def _body(self, call: Call, *, cached: bool) -> dict[str, Json]:
        """Returns a request body; with `cached`, a prefix shared with other calls is marked for the cache."""
        version = self._version
        return message_request(version.model, call.prompt, version.max_tokens, self._sampling, cached=cached)

    async def _ask(
        self, client: AnthropicClient, body: Mapping[str, Json], turn: PlaceInLine | None, key: str
    ) -> AnthropicAnswer:
        def begun() -> None:
            if turn is not None:
                self._prefixes.begun(key, turn)

        # A call that others wait for is streamed, so that they can continue when its answer begins rather than ends.
        if self._streams or (turn is not None and turn.leads):
            return await client.streamed_message(body, begun)
        answered = await client.message(body)
        begun()
        return answered

    def _batch_outcome(
        self, client: AnthropicClient, result: Mapping[str, Any], metadata: Mapping[str, Json]
    ) -> Response | CallError:
        if result.get("type") != "succeeded":
            return client.batch_error(result)
        try:
            return response_of(client.without_key(result.get("message")), batch=True, metadata=metadata)
        except CallError as error:
            return error


def _response(client: AnthropicClient, answered: AnthropicAnswer) -> Response:
    return response_of(
        answered.message,
        latency_ms=answered.latency_ms,
        first_byte_ms=answered.first_byte_ms,
        metadata={"request_id": answered.request_id, "sdk": client.version},
    )


def _batch(told: "MessageBatch") -> Batch:
    """Converts a batch returned by the API. Raises CallError."""
    with _of_its_form():
        counts = told.request_counts
        requests = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
        return Batch(told.id, requests, told.created_at.astimezone(), told.processing_status == "ended")


@contextmanager
def _of_its_form() -> Iterator[None]:
    """Raises CallError if the SDK's objects lack expected attributes; the SDK builds them from any JSON."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        what = f"the API sent something of no known form ({error})"
        raise CallError(CallErrorKind.BAD_RESPONSE, what, retryable=True) from None
