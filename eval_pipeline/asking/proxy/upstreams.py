"""The endpoints behind the proxy: connections and keys, which stay outside."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from eval_pipeline.asking.proxy.requests import AgentRequest
from eval_pipeline.asking.proxy.wires import ANTHROPIC, KEYS
from eval_pipeline.core.model import CallErrorKind, Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError, FatalCallError, MissingKeyError
from eval_pipeline.providers.command import VENDORS
from eval_pipeline.providers.http.endpoints import (
    OWN_AUTHORITY,
    Secrets,
    client_arguments,
    distrusted,
    headers_of_streams,
    is_loopback,
    read_secret,
)

if TYPE_CHECKING:
    import httpx2

_SHORTEST_SECRET = 8


class Upstreams:
    """Sends requests of agents on, with the keys of this process's environment; open within `async with`.

    Attributes:
        version: the model version that the agents belong to.
    """

    def __init__(self, addresses: Mapping[str, str], version: ModelVersion) -> None:
        """Connects to nothing yet.

        Args:
            addresses: `anthropic` and `openai` → address, the latter with `/v1`, as their SDKs have them.
            version: its deadline and number of calls in flight apply.
        """
        self.version = version
        self._addresses = {name: address.rstrip("/") for name, address in addresses.items()}
        self._keys: dict[str, str] = {}
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._secrets = Secrets([])

    async def __aenter__(self) -> Self:
        """Reads the keys. Raises MissingKeyError if no endpoint can be asked, FatalCallError if a key is no key."""
        missing: MissingKeyError | None = None
        for name, address in self._addresses.items():
            try:
                self._keys[name] = read_secret(KEYS[name], self.version)
            except MissingKeyError as error:
                missing = error
                if is_loopback(address):
                    self._keys[name] = ""
        if missing is not None and not self._keys:
            raise missing
        self._secrets = Secrets(self._keys.values())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    def elsewhere(self, name: str) -> dict[str, Json]:
        """Returns an address that is not the vendor's own: what else stands there answers otherwise."""
        address = self._addresses[name]
        return {} if address in VENDORS.values() else {"upstream": address}

    def redacted(self, sent: bytes) -> bytes:
        """Returns bytes of an endpoint without the keys, which a careless one may repeat."""
        for key in self._keys.values():
            if len(key) >= _SHORTEST_SECRET:
                sent = sent.replace(key.encode(), b"[redacted]")
        return sent

    def why_not(self, name: str) -> str | None:
        """Returns why an endpoint cannot be asked, in a sentence for the agent; None if it can."""
        if name not in self._addresses:
            return f"this evaluation has no upstream `{name}`"
        return None if name in self._keys else f"the evaluation has no key for the upstream `{name}` ({KEYS[name]})"

    @asynccontextmanager
    async def asked(self, request: AgentRequest) -> AsyncIterator["httpx2.Response"]:
        """Sends a request, and gives the response, whose body is still to be read.

        Raises:
            CallError: it could not be sent, or broke off.
            FatalCallError: the endpoint's certificate is not trusted here.
        """
        name = request.wire.upstream
        address, path = self._addresses[name], request.path
        if name != ANTHROPIC:
            path = path.removeprefix("/v1")
        headers = {"content-type": "application/json", **request.betas, **self._authority(name)}
        if request.streams:
            headers |= {"accept": "text/event-stream"} | headers_of_streams(address)
        with self._errors(name):
            client = self._client(name, address)
            asking = client.stream("POST", f"{address}{path}", content=request.sent, headers=headers)
            async with asking as response:
                yield response

    def _authority(self, name: str) -> dict[str, str]:
        key = self._keys[name]
        if not key:
            return {}
        return {"x-api-key": key} if name == ANTHROPIC else {"authorization": f"Bearer {key}"}

    def _client(self, name: str, address: str) -> "httpx2.AsyncClient":
        import httpx2

        from eval_pipeline.providers.http.spread import http_client

        if name not in self._clients:
            arguments = client_arguments(address, self.version)
            # The key is meant for the configured address only, so redirects are not followed.
            self._clients[name] = http_client(
                httpx2.AsyncClient, self.version.concurrency, **arguments, follow_redirects=False
            )
        return self._clients[name]

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Converts errors of the connection. `from None`, because they contain the request with the key."""
        import httpx2

        try:
            yield
        except httpx2.TimeoutException as error:
            told = f"the upstream `{name}` did not answer in time ({type(error).__name__})"
            raise CallError(CallErrorKind.TIMEOUT, told, retryable=True) from None
        except httpx2.DecodingError as error:
            told = f"the upstream `{name}` sent something that cannot be decompressed ({type(error).__name__})"
            raise CallError(CallErrorKind.BAD_RESPONSE, told, retryable=True) from None
        except httpx2.RequestError as error:
            told = self._secrets.redact(f"the upstream `{name}`: {error or type(error).__name__}")
            if distrusted(error):
                raise FatalCallError(f"{told}; {OWN_AUTHORITY}") from None
            sent = not isinstance(error, httpx2.ConnectError)
            raise CallError(CallErrorKind.CONNECTION, told, retryable=True, sent=sent) from None
