"""Roots of fingerprints: places of functions and classes, with values bound to them by `partial`."""

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

from eval_pipeline.core.installed.plugins import Later

Root = str | Callable[..., Any] | type | partial[Any]
"""A place `package.module:Qual.name` (without `:` the whole module), or the object itself."""

_PLAIN = (str, int, float, bool, bytes, type(None))


def places(root: Root) -> Iterator[str]:
    """Yields the places that a root stands for.

    For an object defined inside a function, the place is that function; for a lambda outside of functions, the module.
    A `~` before a place means: use the module if nothing is found there. Texts that begin with `=` are not places but
    values bound by a `partial`.
    """
    if isinstance(root, str):
        yield root
        return
    if isinstance(root, Later):
        yield root.place
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
    if name is None:  # a callable instance
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
