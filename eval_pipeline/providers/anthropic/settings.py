"""Settings of a model version for the provider `anthropic`."""

import os
from typing import Literal, Self

from pydantic import Field, model_validator

from eval_pipeline.core.model import Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.reading.complaints import Complaint
from eval_pipeline.providers.http.endpoints import BaseUrl, EnvironmentName
from eval_pipeline.providers.validation import Settings, SettingsError, read_settings, refuse_settings

KEY_VARIABLE = "ANTHROPIC_API_KEY"
ANTHROPIC = "https://api.anthropic.com"
_BASE_URL_ENV = "ANTHROPIC_BASE_URL"


class AnthropicSettings(Settings):
    """How the API is reached; `options` of the model version.

    Attributes:
        api_key_env: name of the environment variable that holds the key.
        base_url: address of a gateway; None: `ANTHROPIC_BASE_URL`, or else Anthropic's own address.
        stream: stream every answer; by default, only long ones are streamed.
        timeout_s: seconds of silence after which a call is given up and may be retried; by default the deadline.
    """

    api_key_env: EnvironmentName = KEY_VARIABLE
    base_url: BaseUrl | None = None
    stream: bool = False
    timeout_s: float | None = Field(default=None, gt=0)

    @property
    def address(self) -> str:
        """The address that is asked."""
        return self.base_url or os.environ.get(_BASE_URL_ENV, "").strip().rstrip("/") or ANTHROPIC


class Thinking(Settings):
    """How the model thinks before it answers; supported types and the default depend on the model.

    Attributes:
        budget_tokens: for the type `enabled`; these tokens count towards `max_tokens`.
    """

    type: Literal["adaptive", "between_tools", "disabled", "enabled"]
    budget_tokens: int | None = Field(default=None, ge=1024)
    display: Literal["omitted", "summarized"] | None = None

    @model_validator(mode="after")
    def _budget_belongs_to_enabled(self) -> Self:
        if (self.type == "enabled") != (self.budget_tokens is not None):
            raise ValueError("budget_tokens belongs to the type 'enabled', which needs it")
        return self


class AnthropicSampling(Settings):
    """`sampling` of the model version. The SDK no longer supports a temperature."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    thinking: Thinking | None = None
    stop_sequences: tuple[str, ...] | None = None
    service_tier: Literal["auto", "standard_only"] | None = None

    def as_body(self) -> dict[str, Json]:
        """Returns the settings as fields of a request body."""
        body: dict[str, Json] = self.model_dump(mode="json", exclude_none=True)
        effort = body.pop("effort", None)
        return {**body, "output_config": {"effort": effort}} if effort is not None else body


def read_anthropic_settings(version: ModelVersion) -> tuple[AnthropicSettings, AnthropicSampling]:
    """Reads options and sampling of a model version.

    Raises:
        SettingsError: a setting is unknown or wrong.
    """
    refuse_settings(version, "predictions")
    settings = read_settings(AnthropicSettings, version)
    sampling = read_settings(AnthropicSampling, version, "sampling")
    wrong = []
    if not version.model:
        wrong.append(Complaint(("model",), "is missing"))
    budget = sampling.thinking.budget_tokens if sampling.thinking else None
    if budget is not None and budget >= version.max_tokens:
        what = f"has to be less than max_tokens ({version.max_tokens}), not {budget}"
        wrong.append(Complaint(("sampling", "thinking", "budget_tokens"), what))
    if wrong:
        raise SettingsError(version.name, tuple(wrong))
    return settings, sampling
