"""Claude models through the Anthropic API: messages, message batches and token counts."""

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
"""`max_tokens` above which answers are streamed: the SDK refuses to wait in silence for long ones, for some models
from here on, and idle connections get dropped."""
_SUBMIT_S = 600.0  # the API takes in hundreds of megabytes before it answers
_PAGE = 100


class AnthropicProvider(Traits):
    """Asks a Claude model singly or in batches; the client is made with the first call."""

    key_variable: ClassVar[str] = KEY_VARIABLE
    max_batch_requests: ClassVar[int] = 100_000
    max_batch_bytes: ClassVar[int] = 240_000_000  # of 256 MB: custom ids and cache marks come on top of `request`

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        self._settings, sampling = read_anthropic_settings(version)
        self._sampling = sampling.as_body()
        self._version = version
        self._streams = self._settings.stream or version.max_tokens > STREAMED_FROM
        # Not much of a call's deadline goes into waiting for others.
        self._patience_s = min(PATIENCE_S, version.deadline_s / 4)
        self._prefixes = PrefixGate(self._patience_s)
        self._made: AnthropicClient | None = None

    def request(self, call: Call) -> Json:
        """The body of the request without streaming and cache marks: an answer from a batch answers a single call.

        Where another address than Anthropic's is asked it is told too: what answers there may be something else.
        """
        body, address = self._body(call, cached=False), self._settings.address
        return body if address == ANTHROPIC else {"endpoint": address, "body": body}

    async def generate(self, call: Call) -> Response:
        """Asks once, where calls share a prefix after the one that writes it to the cache.

        Raises:
            CallError: there is no answer.
            FatalCallError: the key, the model or the account is refused.
        """
        client = self._client()
        body = self._body(call, cached=call.prefix_uses > 1)
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
        """Hands in the calls, each under its custom id. Raises CallError or FatalCallError."""
        client = self._client()
        requests: list[Any] = [
            {"custom_id": custom_id, "params": with_sendable_schema(self._body(call, cached=call.prefix_uses > 1))}
            for custom_id, call in calls.items()
        ]
        with client.errors():
            return _batch(await client.sdk.messages.batches.create(requests=requests, timeout=_SUBMIT_S))

    async def batch(self, batch_id: str) -> Batch | None:
        """How a batch stands; None where the API does not know it, or has thrown its results away.

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
        """Batches of the key's workspace created since then, the newest first. Raises CallError or FatalCallError."""
        client = self._client()
        with client.errors():
            first = await client.sdk.messages.batches.list(limit=_PAGE)
            async for page in first.iter_pages():
                with _of_its_form():  # the SDK takes anything without `data` for an empty list
                    found = [_batch(told) for told in page.data]
                for batch in found:
                    if batch.created_at < since:
                        return
                    yield batch

    async def batch_results(self, batch_id: str) -> AsyncGenerator[tuple[str, Response | CallError], None]:
        """What became of each request of a batch that has ended, by custom id, in no order.

        A CallError among them is retryable unless the request itself was refused.

        Raises:
            CallError: the results cannot be read, or not to their end.
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
        """Input tokens of the call by the API's own count. Raises CallError or FatalCallError."""
        client = self._client()
        body = with_sendable_schema(count_request(self._body(call, cached=False)))
        with client.errors():
            counted = await client.sdk.messages.count_tokens(**body)
        if not isinstance(counted.input_tokens, int):
            raise CallError(CallErrorKind.BAD_RESPONSE, "the API counted no tokens", retryable=True)
        return counted.input_tokens

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._made is not None:
            await self._made.close()
        self._made = None
        self._prefixes = PrefixGate(self._patience_s)  # the next event loop starts anew

    def _client(self) -> AnthropicClient:
        if self._made is None:
            self._made = AnthropicClient(self._settings, self._version)
        return self._made

    def _body(self, call: Call, *, cached: bool) -> dict[str, Json]:
        """The body of a request; with `cached` a prefix that other calls have too is marked for the cache."""
        version = self._version
        return message_request(version.model, call.prompt, version.max_tokens, self._sampling, cached=cached)

    async def _ask(
        self, client: AnthropicClient, body: Mapping[str, Json], turn: PlaceInLine | None, key: str
    ) -> AnthropicAnswer:
        def begun() -> None:
            if turn is not None:
                self._prefixes.begun(key, turn)

        # A call that others wait for is streamed: they can go on when its answer begins, not when it ends.
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
    """A batch as the API told of it. Raises CallError."""
    with _of_its_form():
        counts = told.request_counts
        requests = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
        return Batch(told.id, requests, told.created_at.astimezone(), told.processing_status == "ended")


@contextmanager
def _of_its_form() -> Iterator[None]:
    """Raises CallError where the SDK's objects lack what they are to have: it makes them of any JSON."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        what = f"the API sent something of no known form ({error})"
        raise CallError(CallErrorKind.BAD_RESPONSE, what, retryable=True) from None
