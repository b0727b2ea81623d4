"""Providers by name. Add one with a file in this folder and a line here, or as a plug-in."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, cast

from eval_pipeline.core.complaints import Complaint
from eval_pipeline.core.errors import MissingExtraError, UsageError
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.plugins import Plugin, Registry
from eval_pipeline.providers.base import BatchProvider, Environment, Provider, Traits
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


def _provider(plugin: Plugin, value: Any) -> type[Traits]:
    if not (isinstance(value, type) and issubclass(value, Traits)):
        raise plugin.error("is no class that inherits Traits of eval_pipeline.providers.base")
    return value


ALL_PROVIDERS: Registry[type[Traits]] = Registry("providers", PROVIDERS, _provider)


def traits_of(provider: str) -> type[Traits]:
    """What is known of a kind of provider.

    Raises:
        UsageError: there is none of that name.
        PluginError: it is a plug-in that cannot be used.
    """
    if provider not in ALL_PROVIDERS:
        raise UsageError(f"unknown provider '{provider}'; allowed: {', '.join(ALL_PROVIDERS.names())}")
    return ALL_PROVIDERS.get(provider)


def provider_class(provider: str) -> type[Provider]:
    """The class of that name, as those see it who make one of it. Raises as `traits_of` does."""
    return cast("type[Provider]", traits_of(provider))


def all_traits() -> Mapping[str, type[Traits]]:
    """What is known of every provider that can be used, by name."""
    return ALL_PROVIDERS.usable()


def create(version: ModelVersion, environment: Environment, *, asks: bool = True) -> Provider:
    """The provider of a model version; nothing is connected or started yet, nor will be where it is not to be asked.

    Raises:
        UsageError: the provider is unknown, or refuses the settings.
        MissingExtraError: a package it needs is not installed.
    """
    missing = missing_packages(version.provider)
    if missing and asks:
        raise MissingExtraError(
            f"model version '{version.name}' needs {', '.join(missing)}{_remedy(traits_of(version.provider))}"
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
    return tuple(package for package in traits_of(provider).packages if find_spec(package) is None)


def _remedy(traits: type[Traits]) -> str:
    return f"; install with `uv sync --extra {traits.extra}`" if traits.extra else ""


def _construct(version: ModelVersion, environment: Environment) -> Provider:
    return provider_class(version.provider)(version, environment)
