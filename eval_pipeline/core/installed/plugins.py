"""Plug-ins, our own and those of separately installed packages: found through entry points, imported on first use.

A package lists its plug-ins in entry-point groups named `eval_pipeline.<group>`. A plug-in that cannot be used is
reported in one sentence and affects only what needs it.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from inspect import Signature, signature
from traceback import walk_tb
from typing import Any, Generic, TypeVar

from eval_pipeline.core.errors import UsageError

T = TypeVar("T")

PREFIX = "eval_pipeline."
GROUPS = (
    "tracks",
    "providers",
    "metrics",
    "importers",
    "logs",
    "exports",
    "commands",
    "reports",
    "aggregates",
    "homes",
    "databases",
    "clusters",
)
OURS = "eval-pipeline"
"""The name of our own package."""
_LOG = logging.getLogger(__name__)


class PluginError(UsageError):
    """A plug-in of an installed package cannot be used."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point of an installed package.

    Attributes:
        group: usually one of `GROUPS`; packages may also name unknown groups.
        place: `module:attribute`.
        distribution, version: name and version of the package.
    """

    group: str
    name: str
    place: str
    distribution: str
    version: str

    @property
    def is_ours(self) -> bool:
        """Whether it comes with eval-pipeline."""
        return self.distribution == OURS

    @property
    def origin(self) -> str:
        """The package and its version, e.g. `my-package 1.2`."""
        return f"{self.distribution} {self.version}"

    def load(self) -> Any:
        """Returns the object that the entry point names.

        Raises:
            PluginError: the package cannot be imported.
        """
        value, failure = _loaded(self)
        if failure:
            raise self.error(failure)
        return value

    def error(self, what: str) -> PluginError:
        """Returns a `PluginError` for this plug-in; `what` completes the sentence."""
        return PluginError(f"the plug-in '{self.name}' ({PREFIX}{self.group}) of the package {self.origin} {what}")


@cache
def installed() -> tuple[Plugin, ...]:
    """Returns every plug-in, ours first, then by package and name; cached for the life of the process."""
    found = {plugin: None for package in distributions() for plugin in _plugins_of(package)}
    return tuple(sorted(found, key=lambda one: (not one.is_ours, one.distribution, one.group, one.name)))


def load_place(place: str) -> Any:
    """Imports and returns the object at `module:attribute`."""
    value, attributes = _imported(place)
    for attribute in attributes:
        value = getattr(value, attribute)
    return value


@cache
def _imported(place: str) -> tuple[Any, list[str]]:
    """Returns module and attributes of a place; kept, as a turn goes to several places."""
    module, _, attributes = place.partition(":")
    return import_module(module), attributes.split(".")


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """All objects of one kind by name: the shipped ones, then those that plug-ins add under unused names.

    Attributes:
        group: the entry-point group.
        shipped: name → the object, or its place as `module:attribute`.
        accept: checks the object that a plug-in named and returns it; raises PluginError if it does not fit.
        taken: returns why a plug-in's name cannot be used, to complete a sentence, or None; for names reserved beside
            `shipped`.
    """

    group: str
    shipped: Mapping[str, Any]
    accept: Callable[[Plugin, Any], T]
    taken: Callable[[Plugin], str | None] = field(default=lambda _: None)

    def __contains__(self, name: object) -> bool:
        return name in self.shipped or name in self.installed()

    def names(self) -> tuple[str, ...]:
        """Returns all names, the shipped ones first."""
        return (*self.shipped, *self.installed())

    def installed(self) -> dict[str, Plugin]:
        """Returns the plug-ins by name, without importing them; where several share a name, the first counts."""
        found: dict[str, Plugin] = {}
        for plugin in installed():
            if plugin.group == self.group and self._why_taken(plugin) is None:
                found.setdefault(plugin.name, plugin)
        return found

    def get(self, name: str) -> T:
        """Returns the object of that name.

        Raises:
            KeyError: the name is unknown.
            PluginError: the plug-in cannot be used.
        """
        if name in self.shipped:
            shipped = self.shipped[name]
            found: T = load_place(shipped) if isinstance(shipped, str) else shipped
            return found
        plugin = self.installed()[name]
        return self.accept(plugin, plugin.load())

    def first(self, names: Sequence[str], what: str) -> T:
        """Returns the object of the first of the names that is known.

        Args:
            names: names, e.g. the scheme of an address and what comes along.
            what: whose object it is, for the error.

        Raises:
            PluginError: the plug-in cannot be used.
            UsageError: none is known.
        """
        for name in names:
            if name in self:
                return self.get(name)
        raise UsageError(f"no package knows {what}, as this one was updated and not installed again (`make setup`)")

    def load(self, name: str, place: str) -> Any:
        """Returns what stands at a place that a plug-in's object names. Raises PluginError if it cannot be loaded."""
        return replace(self.installed()[name], place=place).load()

    def usable(self) -> dict[str, T]:
        """Returns all usable objects by name; each plug-in that cannot be used is logged once as a warning."""
        found = {name: or_warned(partial(self.get, name)) for name in self.names()}
        return {name: one for name, one in found.items() if one is not None}

    def trouble(self, plugin: Plugin) -> str | None:
        """Returns a sentence on why a plug-in of the group cannot be used; None if it can."""
        try:
            if taken := self._why_taken(plugin):
                raise plugin.error(taken)
            first = self.installed()[plugin.name]
            if first != plugin:
                raise plugin.error(f"is not used: {OURS if first.is_ours else first.origin} has one of that name")
            self.accept(plugin, plugin.load())
        except PluginError as error:
            return str(error)
        return None

    def _why_taken(self, plugin: Plugin) -> str | None:
        if plugin.name in self.shipped:
            return f"is not used: {OURS} has one of that name"
        return self.taken(plugin)


def _plugins_of(package: Distribution) -> Iterator[Plugin]:
    """Yields a package's plug-ins; packages without our entry points are skipped cheaply."""
    text = package.read_text("entry_points.txt")
    if text is None or PREFIX not in text:
        return
    told = package.metadata  # read from its file at each access
    origin = str(told["Name"]), str(told["Version"])
    for point in package.entry_points:
        if point.group.startswith(PREFIX):
            yield Plugin(point.group.removeprefix(PREFIX), point.name, point.value, *origin)


@cache
def _loaded(plugin: Plugin) -> tuple[Any, str]:
    """Returns the object a plug-in names, or an error text; cached, as another try would fail in the same way."""
    try:
        return load_place(plugin.place), ""
    except (Exception, SystemExit) as error:
        told = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":. ")
        return None, f"cannot be loaded from {plugin.place}: {told}"


def or_warned(load: Callable[[], T]) -> T | None:
    """Returns what `load` does; None if a plug-in cannot be used, which is logged once as a warning."""
    try:
        return load()
    except PluginError as error:
        _warn(str(error))
        return None


@cache
def _warn(sentence: str) -> None:
    """Logs a warning once in each process."""
    _LOG.warning("%s", sentence)


@dataclass(frozen=True, slots=True)
class Later:
    """Calls the function at a place, `module:name`. Fingerprints take it for the function itself."""

    place: str

    @property
    def __signature__(self) -> Signature:
        """The function's own, for `inspect.signature`, also of a `partial` of this."""
        return signature(self.function())

    def function(self) -> Callable[..., Any]:
        """Returns the function itself, imported now."""
        function: Callable[..., Any] = load_place(self.place)
        return function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the function returns."""
        return self.function()(*args, **kwargs)


def at_fault(error: BaseException) -> str:
    """Returns the package in whose code an exception arose, e.g. `my-package 1.2`; `eval-pipeline` if in no plug-in's.

    What a plug-in calls raises on its behalf.
    """
    theirs = {plugin.place.partition(":")[0].partition(".")[0]: plugin for plugin in installed() if not plugin.is_ours}
    modules = (str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__))
    found = [theirs[top] for module in modules if (top := module.partition(".")[0]) in theirs]
    return found[-1].origin if found else OURS


def absent(modules: Iterable[str]) -> tuple[str, ...]:
    """Returns those of some top-level modules that are not installed. None of them is imported."""
    return tuple(name for name in modules if find_spec(name) is None)


def install(extra: str) -> str:
    """Returns how to add an extra to this installation, to complete a sentence; no index is asked for the package."""
    # Environments that uv makes, also those of its tools, have no pip; one from elsewhere would install elsewhere.
    installer = "pip install" if find_spec("pip") else f"uv pip install --python {sys.prefix}"
    return f"install with `{installer} 'eval-pipeline[{extra}]'`"
