"""A decorator for immutable value classes."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Makes a class a hashable dataclass with slots; only the type checker enforces that its fields do not change.

    For classes that are created many times per turn: `dataclass(frozen=True)` also checks at run time, and creating an
    instance takes three times as long.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
