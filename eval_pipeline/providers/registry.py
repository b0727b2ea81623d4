"""Providers by name; CONTRIBUTING.md tells how to add one, here or as a plug-in."""

from collections.abc import Mapping
from typing import Any, cast

from eval_pipeline.core.errors import MissingExtraError, UsageError
from eval_pipeline.core.installed.plugins import Plugin, PluginError, Registry
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.reading.complaints import Complaint
from eval_pipeline.providers.base import BatchProvider, Environment, Provider, Traits
from eval_pipeline.providers.validation import SettingsError

PROVIDERS: Mapping[str, str] = {
    "recorded": "eval_pipeline.providers.standins.recorded:RecordedProvider",
    "simulated": "eval_pipeline.providers.standins.simulated:SimulatedProvider",
    "oracle": "eval_pipeline.providers.standins.oracle:OracleProvider",
    "null": "eval_pipeline.providers.standins.oracle:NullProvider",
    "anthropic": "eval_pipeline.providers.anthropic.provider:AnthropicProvider",
    "openai": "eval_pipeline.providers.openai.provider:OpenAIProvider",
    "http": "eval_pipeline.providers.application.provider:ApplicationProvider",
    "command": "eval_pipeline.providers.command:CommandProvider",
}
"""Name → place of the class."""


def _provider(plugin: Plugin, value: Any) -> type[Traits]:
    if not (isinstance(value, type) and issubclass(value, Traits)):
        raise plugin.error("is no class that inherits Traits of eval_pipeline.providers.base")
    return value


ALL_PROVIDERS: Registry[type[Traits]] = Registry("providers", PROVIDERS, _provider)


def traits_of(provider: str) -> type[Traits]:
    """Returns the traits of a kind of provider.

    Raises:
        UsageError: there is no provider of that name.
        PluginError: the provider is a plug-in that cannot be used.
    """
    if provider not in ALL_PROVIDERS:
        raise UsageError(f"unknown provider '{provider}'; allowed: {', '.join(ALL_PROVIDERS.names())}")
    return ALL_PROVIDERS.get(provider)


def takes_prompts(version: ModelVersion) -> bool:
    """Whether the answers of a model version can depend on our prompt: not if recorded, or made with its own one."""
    try:
        traits = traits_of(version.provider)
    except PluginError:
        return False  # its run reports the problem
    return not (traits.recorded or traits.own_prompt or traits.own_agent)


def provider_class(provider: str) -> type[Provider]:
    """Returns the provider class of that name, typed as a `Provider`. Raises as `traits_of` does."""
    return cast("type[Provider]", traits_of(provider))


def all_traits() -> Mapping[str, type[Traits]]:
    """Returns the traits of every usable provider, by name."""
    return ALL_PROVIDERS.usable()


def create(version: ModelVersion, environment: Environment, *, asks: bool = True) -> Provider:
    """Creates the provider of a model version, without connecting or starting anything.

    Args:
        version: the model version.
        environment: what the provider may know, e.g. the folder of predictions.
        asks: whether the provider will be asked; only then must its packages be installed.

    Raises:
        UsageError: the provider is unknown or rejects the settings.
        MissingExtraError: a required package is not installed.
    """
    if asks and (needs := traits_of(version.provider).needs()):
        raise MissingExtraError(f"model version '{version.name}' {needs}")
    return _construct(version, environment)


def check_settings(version: ModelVersion) -> None:
    """Raises UsageError if the provider is unknown or rejects the settings; needs no extra."""
    provider = _construct(version, Environment())
    if version.batch and not isinstance(provider, BatchProvider):
        told = f"the provider '{version.provider}' has no batches; leave it out"
        raise SettingsError(version.name, (Complaint(("batch",), told),))


def _construct(version: ModelVersion, environment: Environment) -> Provider:
    return provider_class(version.provider)(version, environment)
