"""What roots are: the places of functions and classes, and the values that are bound to them beforehand."""

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

Root = str | Callable[..., Any] | type | partial[Any]
"""A place `package.module:Qual.name` (without `:` the whole module), or what is there."""

_PLAIN = (str, int, float, bool, bytes, type(None))


def places(root: Root) -> Iterator[str]:
    """The places that a root stands for.

    The place of what is defined inside a function is that function, of a lambda outside of any the module. `~` before a
    place says that the module is meant where nothing is found there; what begins with `=` is no place but a value that
    a `partial` hands over.
    """
    if isinstance(root, str):
        yield root
        return
    if isinstance(root, partial):
        yield from places(root.func)
        for name, value in [*enumerate(root.args), *sorted(root.keywords.items())]:
            yield from _handed_over(name, value)
        return
    owner = getattr(root, "__self__", None)
    name = getattr(root, "__qualname__", None)
    if name is not None and owner is not None and not isinstance(owner, ModuleType):
        cls = owner if isinstance(owner, type) else type(owner)
        yield f"~{cls.__module__}:{cls.__qualname__}.{root.__name__}"
        return
    if name is None:  # an instance that can be called
        root, name = type(root), type(root).__qualname__
    outer = name.partition(".<locals>")[0]
    yield f"~{root.__module__}" if "<" in outer else f"~{root.__module__}:{outer}"


def _handed_over(name: object, value: object) -> Iterator[str]:
    if isinstance(value, _PLAIN):
        yield f"={name}={value!r}"
    elif callable(value):
        yield f"={name}"
        yield from places(value)
    else:
        yield f"={name}"
        yield from places(type(value))
