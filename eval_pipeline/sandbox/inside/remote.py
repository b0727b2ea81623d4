"""Objects of a model's process that the tests may use although they cannot be sent as data.

A hostile process could provide an object whose `equals` always returns true. So remote objects only allow operations
that cannot decide a comparison: functions can be called, iterators iterated, and figures asked for what they show. Only
objects of classes that the reference code also defines have methods. The results of all these are values again, and are
compared here.
"""

import builtins
import re
import sys
from collections.abc import Iterator
from typing import Any, Protocol

from .wire import Packed

_FIGURES = "matplotlib"
_SHOWS = re.compile(
    r"get_\w+|lines|patches|texts|collections|images|containers|axes|figure|legend_|title|xaxis|yaxis|ax|fig|flat"
)
"""Attributes of figures that tell what they show."""
_LIBRARIES = (_FIGURES, "pandas", "numpy")


class Link(Protocol):
    """What remote objects need from the connection to their process."""

    def ask(self, op: str, handle: int, **more: Packed) -> Any:
        """Returns the resulting value of an operation on an object."""

    def call(self, handle: int, given: tuple[Any, ...], named: dict[str, Any]) -> Packed:
        """Returns the result of calling an object, as received."""

    def value(self, packed: Packed) -> Any:
        """Returns the value of received data."""


class _Remote:
    """An object in the model's process, equal only to itself."""

    remote = True

    def __init__(self, link: Link, told: Packed) -> None:
        kind = (str(told["k"][0]), str(told["k"][1]))
        self.__dict__.update(_link=link, _handle=int(told["v"]), _kind=kind)

    def __repr__(self) -> str:
        return f"<{'.'.join(self.__dict__['_kind'])} of the code>"


class _Function(_Remote):
    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._link.value(self._link.call(self._handle, given, named))  # type: ignore[attr-defined]


class _Class(_Remote):
    def __call__(self, *given: Any, **named: Any) -> Any:
        packed = self._link.call(self._handle, given, named)  # type: ignore[attr-defined]
        return _Instance(self._link, packed) if _is_handle(packed) else self._link.value(packed)  # type: ignore[attr-defined]


class _Instance(_Remote):
    """An object of a class that the reference code also defines."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._link.ask("attribute", self._handle, name=name)


class _Iterator(_Remote):
    def __iter__(self) -> Iterator[Any]:
        return iter(self._link.ask("items", self._handle))  # type: ignore[attr-defined]

    def __next__(self) -> Any:
        if "_items" not in self.__dict__:
            self.__dict__["_items"] = iter(self)
        return next(self.__dict__["_items"])


class _Figure(_Remote):
    """A figure, or a part of one."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The type that the remote object claims to have, for `isinstance`."""
        return _library_type(*self.__dict__["_kind"]) or _Figure

    def __getattr__(self, name: str) -> Any:
        if not _SHOWS.fullmatch(name):
            raise AttributeError(f"tests cannot use '{name}' of a figure, only what tells what it shows")
        return self._link.ask("attribute", self._handle, name=name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._link.ask("items", self._handle))

    def __getitem__(self, place: int | slice) -> Any:
        return list(iter(self))[
            place
        ]  # of the figure itself, `list` would ask for the length first, and so on for ever

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __bool__(self) -> bool:
        return True


def remote(link: Link, told: Packed) -> object:
    """Returns the object for a handle. Raises a TypeError for objects that tests cannot use."""
    module, name = (str(part) for part in told["k"])
    match told["r"]:
        case "class":
            return _Class(link, told)
        case "function":
            return _Function(link, told)
        case "iterator":
            return _Iterator(link, told)
        case "object" if module.partition(".")[0] == _FIGURES:
            return _Figure(link, told)
    raise TypeError(f"a value of type {name} has no plain form, so that tests cannot look at it")


def is_remote(value: object) -> bool:
    """Returns whether a value is a remote object, whatever it claims to be."""
    return issubclass(type(value), _Remote)


def _is_handle(packed: Packed) -> bool:
    return isinstance(packed, dict) and packed.get("t") == "handle"


def _library_type(module: str, name: str) -> type | None:
    """Returns a type of a library that is already imported here."""
    found: Any = sys.modules.get(module) if module.partition(".")[0] in _LIBRARIES else None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def exception_like(told: Packed) -> Exception:
    """Returns an exception like the code's: of its first type that belongs to Python or a library."""
    message = str(told["message"])
    for place in told["types"]:
        module, _, name = str(place).rpartition(".")
        kind = getattr(builtins, name, None) if module == "builtins" else _library_type(module, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(message)
            except TypeError:  # this type needs other arguments
                continue
    return RuntimeError(message)
