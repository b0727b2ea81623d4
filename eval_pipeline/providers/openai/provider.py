"""The provider `openai`, for any endpoint with OpenAI's chat completions.

Examples are OpenAI, vLLM, Ollama, llama.cpp and gateways.
"""

import re
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from types import TracebackType
from typing import ClassVar, Literal, Self

from pydantic import Field

from eval_pipeline.core.model import Json, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.reading.complaints import Complaint
from eval_pipeline.providers.base import Call, Environment, Traits
from eval_pipeline.providers.http.endpoints import BaseUrl, EnvironmentName, HeaderName, read_headers, read_secret
from eval_pipeline.providers.openai import responses
from eval_pipeline.providers.openai.chat import COUNTING_ROUTES, OPENAI, Api, ChatEndpoint
from eval_pipeline.providers.openai.wire import OWN_FIELDS, LimitField, RequestForm, Structured, chat_request
from eval_pipeline.providers.validation import Settings, SettingsError, read_settings, refuse_settings

_KEY_VARIABLE = "OPENAI_API_KEY"
_AZURE = re.compile(r"\.azure\.com(?::\d+)?(?:/|$)")


class OpenAISettings(Settings):
    """How an endpoint is asked; `options` of the model version.

    Attributes:
        base_url: the address before `/chat/completions`. It is part of the model version; `OPENAI_BASE_URL` in the
            environment is ignored, since it would change what is evaluated under the same name.
        api_key_env: environment variable of the key; None if the endpoint needs none.
        headers_env: additional headers → environment variables that hold their values.
        structured_output: how the prompt's answer schema is passed on.
        api: `responses` for models that only OpenAI's Responses API serves.
        system: `false` for models that know no system messages.
        stream: stream the answers.
        limit_field: the field that limits the length of an answer. By default the one that OpenAI requires for new
            models; for other endpoints the older one, which all of them support.
        join_messages: merge consecutive messages of the same role, because some chat templates reject them.
        count_tokens: the kind of server, if it can count tokens for `eval-pipeline plan`.
        body: additional fields of every request.
    """

    base_url: BaseUrl = OPENAI
    api_key_env: EnvironmentName | None = _KEY_VARIABLE
    headers_env: dict[HeaderName, EnvironmentName] = Field(default_factory=dict)
    structured_output: Structured = "json_schema"
    api: Api = "chat"
    system: bool = True
    stream: bool = True
    limit_field: LimitField | None = None
    join_messages: bool = False
    count_tokens: Literal["llama.cpp", "vllm", "none"] = "none"
    body: dict[str, Json] = Field(default_factory=dict)

    @property
    def form(self) -> RequestForm:
        """The form of requests to this endpoint."""
        usual: LimitField = "max_completion_tokens" if self.base_url == OPENAI else "max_tokens"
        limit = self.limit_field or usual
        openai = self.base_url == OPENAI
        return RequestForm(self.structured_output, limit, self.join_messages, not openai, self.system)


class OpenAISampling(Settings):
    """`sampling` of the model version: only fields that are set are sent, as not every endpoint supports all of them.

    Attributes:
        seed: seed of a turn's first sample; each further sample uses the next number.
    """

    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=-1)
    min_p: float | None = Field(default=None, ge=0, le=1)
    seed: int | None = None
    stop: str | list[str] | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repeat_penalty: float | None = Field(default=None, gt=0)
    repetition_penalty: float | None = Field(default=None, gt=0)
    reasoning_effort: str | None = None
    verbosity: str | None = None


class OpenAIProvider(Traits):
    """Asks an endpoint. The client is created with the first question, so that answers from the journal need no key.

    A provider for endpoints that are nearly like this derives from it, with a `key_variable` and a `body` of its own.

    Attributes:
        count_tokens: exists only if the settings say that the endpoint can count.
    """

    has_tools: ClassVar[bool] = True
    key_variable: ClassVar[str] = _KEY_VARIABLE
    extra: ClassVar[str] = "openai"
    packages: ClassVar[tuple[str, ...]] = ("openai",)
    count_tokens: Callable[[Call], Awaitable[int]]

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "predictions", "batch")
        settings = read_settings(OpenAISettings, version)
        if "api_key_env" not in settings.model_fields_set:  # never another provider's key
            settings = settings.model_copy(update={"api_key_env": self.key_variable or None})
        self._settings = settings
        self._sampling = read_settings(OpenAISampling, version, "sampling").model_dump(exclude_none=True)
        if not version.model:
            raise SettingsError(version.name, (Complaint(("model",), "is missing: the endpoint's name of the model"),))
        own = responses.OWN_FIELDS if settings.api == "responses" else OWN_FIELDS
        taken = sorted(settings.body.keys() & (own | OpenAISampling.model_fields.keys()))
        if taken:
            told = "is set by the model version's own fields and the prompt; leave it out here"
            raise SettingsError(version.name, tuple(Complaint(("options", "body", name), told) for name in taken))
        if settings.api == "responses" and (unknown := sorted(self._sampling.keys() - responses.SAMPLING)):
            told = f"is unknown to the Responses API, which has {', '.join(sorted(responses.SAMPLING))}"
            raise SettingsError(version.name, tuple(Complaint(("sampling", name), told) for name in unknown))
        self._version = version
        self._endpoint: ChatEndpoint | None = None
        if settings.count_tokens != "none":
            self.count_tokens = self._count_tokens

    def request(self, call: Call) -> Json:
        """Returns body and address of the request; two endpoints may serve different models under the same name."""
        return {"endpoint": self._settings.base_url, "body": self.body(call)}

    def body(self, call: Call) -> dict[str, Json]:
        """Returns the body of a request, without fields that concern only its transport."""
        version, sampling = self._version, self._sampling
        if "seed" in sampling:
            # A different seed for each sample, because otherwise all samples of a turn would be equal.
            sampling = {**sampling, "seed": sampling["seed"] + call.sample}
        make = chat_request if self._settings.api == "chat" else responses.responses_request
        asked = make(version.model, call.prompt, version.max_tokens, sampling, self._settings.form)
        return {**self._settings.body, **asked}

    async def generate(self, call: Call) -> Response:
        """Asks the endpoint. Raises CallError, or FatalCallError if no call can succeed."""
        return await self._opened().complete(self.body(call), stream=self._settings.stream, api=self._settings.api)

    async def why_no_model(self) -> str | None:
        """See `KnowsModels`: looks into the endpoint's list of models; that of Azure does not have the deployments."""
        listed = None if _AZURE.search(self._settings.base_url) else await self._opened().models()
        model = self._version.model
        if not listed or any(name == model or name.endswith(f"/{model}") for name in listed):
            return None
        near = get_close_matches(model, listed, 3, 0.4) or sorted(listed)[:3]
        return f"is not among the {len(listed):,} models that the endpoint lists, such as {', '.join(near)}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._endpoint is not None:
            await self._endpoint.close()
        self._endpoint = None

    async def _count_tokens(self, call: Call) -> int:
        return await self._opened().count_tokens(self.body(call), COUNTING_ROUTES[self._settings.count_tokens])

    def _opened(self) -> ChatEndpoint:
        if self._endpoint is None:
            settings, version = self._settings, self._version
            key = read_secret(settings.api_key_env, version) if settings.api_key_env else None
            headers = read_headers(settings.headers_env, version)
            self._endpoint = ChatEndpoint(settings.base_url, version, key=key, headers=headers)
        return self._endpoint
