"""Values: what is passed about and never changed."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Makes a class a dataclass with slots, equality and a hash, whose fields only the type checker keeps from change.

    For what is made many times a turn: `dataclass(frozen=True)` keeps them at run time too, and takes three times as
    long to make one.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
