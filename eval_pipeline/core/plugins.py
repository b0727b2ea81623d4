"""What separately installed packages add: found by their entry points, loaded only when it is used.

A package names what it has in a group of entry points, `eval_pipeline.<group>`. One that cannot be used is told of in
one sentence, and harms nothing but what needs it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import Distribution, distributions
from typing import Any, Generic, TypeVar

from eval_pipeline.core.errors import UsageError

T = TypeVar("T")

PREFIX = "eval_pipeline."
GROUPS = ("tracks", "providers", "metrics", "importers", "reports", "aggregates")
_LOG = logging.getLogger(__name__)


class PluginError(UsageError):
    """Something that an installed package adds cannot be used."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """What one entry point of an installed package names.

    Attributes:
        group: one of `GROUPS`, where the package names a known one.
        place: `module:attribute`.
        distribution, version: of the package.
    """

    group: str
    name: str
    place: str
    distribution: str
    version: str

    @property
    def origin(self) -> str:
        """The package and its version."""
        return f"{self.distribution} {self.version}"

    def load(self) -> Any:
        """What the entry point names. Raises PluginError where the package cannot be imported."""
        value, failure = _loaded(self)
        if failure:
            raise self.error(failure)
        return value

    def error(self, what: str) -> PluginError:
        """The error that says what is wrong with it, as the rest of a sentence."""
        return PluginError(f"the plug-in '{self.name}' ({PREFIX}{self.group}) of the package {self.origin} {what}")


@cache
def installed() -> tuple[Plugin, ...]:
    """Every plug-in, by package and name; the packages are looked through once a process."""
    found = {plugin: None for package in distributions() for plugin in _plugins_of(package)}
    return tuple(sorted(found, key=lambda plugin: (plugin.distribution, plugin.group, plugin.name)))


def load_place(place: str) -> Any:
    """What `module:attribute` names."""
    module, _, attributes = place.partition(":")
    value: Any = import_module(module)
    for attribute in attributes.split("."):
        value = getattr(value, attribute)
    return value


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """Everything of one kind, by name: what is shipped, and what packages add under names that are not taken.

    Attributes:
        group: of the entry points.
        shipped: name → the thing itself, or the place where it is.
        accept: gives what a plug-in's entry point named, as far as it is of the kind; raises PluginError where not.
        taken: what has a plug-in's name already, as the rest of a sentence, beside what is shipped.
    """

    group: str
    shipped: Mapping[str, Any]
    accept: Callable[[Plugin, Any], T]
    taken: Callable[[Plugin], str | None] = field(default=lambda _: None)

    def __contains__(self, name: object) -> bool:
        return name in self.shipped or name in self.installed()

    def names(self) -> tuple[str, ...]:
        """What is shipped, then what is installed."""
        return (*self.shipped, *self.installed())

    def installed(self) -> dict[str, Plugin]:
        """The plug-ins by name, loaded or not; of several with one name the first."""
        found: dict[str, Plugin] = {}
        for plugin in self._plugins():
            if self._why_taken(plugin) is None:
                found.setdefault(plugin.name, plugin)
        return found

    def get(self, name: str) -> T:
        """The thing of that name. Raises KeyError for an unknown one, PluginError where it cannot be used."""
        if name in self.shipped:
            shipped = self.shipped[name]
            found: T = load_place(shipped) if isinstance(shipped, str) else shipped
            return found
        plugin = self.installed()[name]
        return self.accept(plugin, plugin.load())

    def usable(self) -> dict[str, T]:
        """All that can be used, by name; of a plug-in that cannot, a warning tells once."""
        found: dict[str, T] = {}
        for name in self.names():
            try:
                found[name] = self.get(name)
            except PluginError as error:
                _warn(str(error))
        return found

    def trouble(self, plugin: Plugin) -> str | None:
        """What is wrong with a plug-in of the group, in a sentence; None where it can be used."""
        try:
            if taken := self._why_taken(plugin):
                raise plugin.error(taken)
            first = self.installed()[plugin.name]
            if first != plugin:
                raise plugin.error(f"is not used: {first.origin} has one of that name")
            self.accept(plugin, plugin.load())
        except PluginError as error:
            return str(error)
        return None

    def _plugins(self) -> Iterator[Plugin]:
        return (plugin for plugin in installed() if plugin.group == self.group)

    def _why_taken(self, plugin: Plugin) -> str | None:
        if plugin.name in self.shipped:
            return "is not used: eval-pipeline has one of that name"
        return self.taken(plugin)


def _plugins_of(package: Distribution) -> Iterator[Plugin]:
    """What a package names; its other files are read only where it names something."""
    text = package.read_text("entry_points.txt")
    if text is None or PREFIX not in text:
        return
    for point in package.entry_points:
        if point.group.startswith(PREFIX):
            group, name = point.group.removeprefix(PREFIX), point.name
            yield Plugin(group, name, point.value, str(package.metadata["Name"]), str(package.metadata["Version"]))


@cache
def _loaded(plugin: Plugin) -> tuple[Any, str]:
    """What a plug-in names, or what was raised, which another try would not mend."""
    try:
        return load_place(plugin.place), ""
    except (Exception, SystemExit) as error:
        told = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":. ")
        return None, f"cannot be loaded from {plugin.place}: {told}"


@cache
def _warn(sentence: str) -> None:
    """Once a process."""
    _LOG.warning("%s", sentence)
