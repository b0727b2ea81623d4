"""Values as plain data that are equal where the values are, as parts of the key of something that is kept."""

from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json

Told = Callable[[Any], Json]


def described(value: Any, known: Mapping[type, Told] | None = None) -> Json:
    """Returns a value as plain data, with every field of every object within it; sets and mappings in a fixed order.

    Paths are left out: where something is decides nothing, and what a file contains is told by a hash beside it.

    Args:
        value: anything that consists of plain values, collections, dataclasses and pydantic models.
        known: type → function that tells its values, in place of their fields.

    Raises:
        TypeError: it contains something else.
    """
    known = known or {}
    if (tell := known.get(type(value))) is not None:
        return tell(value)
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | tuple | Set | Mapping):
        return _collection(value, known)
    if isinstance(value, BaseModel):
        names = [*type(value).model_fields]
    elif is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value)]
    else:
        return _plain(value)
    return [type(value).__name__, {name: described(getattr(value, name), known) for name in names}]


@cache
def installed(names: tuple[str, ...]) -> list[str]:
    """Returns packages with their versions, which are empty for those that are not installed."""
    return [f"{name} {_version(name)}" for name in names]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _collection(value: Any, known: Mapping[type, Told]) -> Json:
    if isinstance(value, Mapping):
        pairs = [[described(key, known), described(item, known)] for key, item in value.items()]
        return ["map", sorted(pairs, key=canonical_json)]
    told = [described(item, known) for item in value]
    return ["set", sorted(told, key=canonical_json)] if isinstance(value, Set) else told


def _plain(value: Any) -> Json:
    if isinstance(value, Path):
        return ["path"]
    if isinstance(value, float | date | time | Decimal):
        return [type(value).__name__, repr(value)]
    raise TypeError(f"a {type(value).__name__} cannot be part of a key")
