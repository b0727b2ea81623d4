"""A proxy in front of fake endpoints, and the real SDKs as its agents."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import httpx2

from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.proxy.proxy import ModelProxy
from eval_pipeline.asking.proxy.tools import CaseTools
from eval_pipeline.asking.proxy.upstreams import Upstreams
from eval_pipeline.core.model_versions import ModelVersion, Price
from eval_pipeline.tracks.capabilities import ActLimits
from eval_pipeline_tests.fakes.scripted import ScriptedProvider, make_call
from eval_pipeline_tests.fakes.wire_server import Sent
from eval_pipeline_tests.goldens import golden

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

KEY = "sk-the-host-s-own-key-0123456789"
DUMMY = "sk-dummy-of-the-agent"
PRICE = Price(input=1.0, output=1.0)
ANSWERS = golden("proxied_answers.yaml")
MESSAGE = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}]}


def sent_of(entry: dict[str, Any], pieces: int = 0) -> Sent:
    """A golden answer as an endpoint sends it."""
    if "events" in entry:
        return Sent(entry["events"].encode(), events=True, pieces=pieces)
    return Sent(entry["body"].encode())


def message(text: str = "Hi.", tokens: tuple[int, int] = (10, 3), **more: Any) -> bytes:
    """A message of Anthropic's."""
    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
    told = {"id": "msg", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    told |= {"content": [{"type": "text", "text": text}], "usage": usage}
    return json.dumps(told | more).encode()


class Opened(ModelProxy):
    """A proxy with agents."""

    path: str

    def http(self, **more: Any) -> httpx2.AsyncClient:
        """A client of its socket."""
        transport = httpx2.AsyncHTTPTransport(uds=self.path, verify=False)
        return httpx2.AsyncClient(transport=transport, base_url="http://proxy", timeout=20, verify=False, **more)

    def anthropic(self, **more: Any) -> "AsyncAnthropic":
        import anthropic

        told = {"api_key": DUMMY, "base_url": "http://proxy", "max_retries": 0, "http_client": self.http()}
        return anthropic.AsyncAnthropic(**(told | more))

    def openai(self, **more: Any) -> "AsyncOpenAI":
        import openai

        told = {"api_key": DUMMY, "base_url": "http://proxy/v1", "max_retries": 0, "http_client": self.http()}
        return openai.AsyncOpenAI(**(told | more))

    async def post(self, path: str = "/v1/messages", **body: Any) -> httpx2.Response:
        async with self.http() as client:
            return await client.post(path, json={**MESSAGE, **body}, headers={"x-api-key": DUMMY})

    @asynccontextmanager
    async def streaming(self) -> AsyncIterator[httpx2.Response]:
        """An answer that is still to be read."""
        body = {**MESSAGE, "stream": True}
        async with self.http() as client, client.stream("POST", "/v1/messages", json=body) as answer:
            yield answer


@contextmanager
def keys(key: str = KEY) -> Any:
    """The host's keys."""
    names = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, key))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def make_version(**settings: Any) -> ModelVersion:
    return ModelVersion(**{"name": "v", "provider": "anthropic", "model": "m", "price": PRICE, **settings})


@asynccontextmanager
async def proxied(
    url: str,
    journal: Journal,
    limits: ActLimits | None = None,
    turn: int = 0,
    tools: CaseTools | None = None,
    listening: socket.socket | None = None,
    **settings: Any,
) -> AsyncIterator[Opened]:
    """A proxy of one attempt, in front of an endpoint."""
    version = make_version(**settings)
    caller = Caller(ScriptedProvider(default=None), journal, version)
    with keys(), TemporaryDirectory(dir="/tmp") as folder:
        path = Path(folder) / "s"
        upstreams = Upstreams({"anthropic": url, "openai": f"{url}/v1"}, version)
        opened = Opened(upstreams, caller, make_call(turn), limits or ActLimits(), listening or _listening(path), tools)
        opened.path = str(path)
        async with upstreams, opened as proxy:
            yield proxy


def _listening(path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.bind(str(path))
    found.listen()
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Returns when a condition holds."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)
