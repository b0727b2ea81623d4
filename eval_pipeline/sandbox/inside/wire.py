"""The form in which values travel between a model's process and the process with the tests: a fixed set of JSON forms.

Unlike `encode.py`, whose results are only compared, this keeps everything that tests may examine: dtypes, kinds of
index, categories, time zones. Reading creates values of known types from known parts, and runs nothing that the sender
chose. A value without such a form stays where it is, and a handle for it is sent.
"""

import base64
import collections
import datetime
import decimal
import fractions
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from .wire_frames import Inner, pack_pandas, unpack_pandas

Packed = Any
Keep = Callable[[object], Packed]
"""Returns the handle of a value without a plain form, or raises a TypeError."""

_DEEPEST = 60
_CONTAINERS = (list, tuple, set, frozenset, collections.deque)
_MAPPINGS = {"dict": dict, "OrderedDict": collections.OrderedDict, "Counter": collections.Counter}
_KNOWN_TYPES = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in (
        *(bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict, object, type(None)),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, decimal.Decimal),
        *(pd.DataFrame, pd.Series, pd.Index, pd.Timestamp, pd.Timedelta, pd.Period, np.ndarray, np.generic),
        *(np.int64, np.int32, np.float64, np.float32, np.bool_, np.object_),
    )
}


def pack(value: object, keep: Keep, depth: int = 0) -> Packed:
    """Returns the value as data for JSON. Raises a TypeError if it is nested too deeply, or if `keep` raises one."""
    if depth > _DEEPEST:
        raise TypeError(f"a value is nested more than {_DEEPEST} deep")
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"t": "float", "v": repr(value)}

    def inner(one: object) -> Packed:
        return pack(one, keep, depth + 1)

    if getattr(type(value), "remote", False):  # whatever type it claims to have
        return keep(value)
    packed = _container(value, inner) or _scalar(value) or pack_pandas(value, inner)
    return keep(value) if packed is None else packed


def _container(value: object, inner: Callable[[object], Packed]) -> Packed | None:
    if isinstance(value, np.ndarray):
        return _array(value, inner)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"t": "named", "n": type(value).__name__, "f": list(value._fields), "v": inner(tuple(value))}
    for kind in _CONTAINERS:
        if type(value) is kind:
            return {"t": kind.__name__, "v": [inner(one) for one in value]}
    if isinstance(value, dict):
        name = type(value).__name__ if type(value) in _MAPPINGS.values() else "dict"
        return {"t": name, "v": [[inner(key), inner(item)] for key, item in value.items()]}
    return None


def _array(value: np.ndarray, inner: Callable[[object], Packed]) -> Packed | None:
    if value.dtype.kind == "O":
        return {"t": "objects", "s": list(value.shape), "v": [inner(one) for one in value.ravel().tolist()]}
    if value.dtype.kind not in "biufcMmSU":
        return None
    return {"t": "array", "d": value.dtype.str, "s": list(value.shape), "v": _text(value.tobytes())}


def _scalar(value: object) -> Packed | None:
    """Returns the form of a value that is neither a container nor from pandas."""
    if isinstance(value, np.generic):
        array = _array(np.asarray(value), _no)
        return None if array is None else {**array, "t": "scalar"}
    if isinstance(value, _OF_PANDAS):  # although some of them are subclasses of dates
        return None
    for kinds, name, told in _SCALARS:
        if isinstance(value, kinds):
            return {"t": name or type(value).__name__, "v": told(value)}
    return _of_types(value)


_OF_PANDAS = (pd.Timestamp, pd.Timedelta, pd.Period, pd.Interval, type(pd.NaT))
_SCALARS: tuple[tuple[Any, str | None, Callable[[Any], Packed]], ...] = (
    (complex, None, lambda value: [repr(value.real), repr(value.imag)]),
    (bytes, None, lambda value: _text(value)),
    (datetime.datetime, "datetime", lambda value: value.isoformat()),
    (datetime.date, "date", lambda value: value.isoformat()),
    (datetime.time, "time", lambda value: value.isoformat()),
    (datetime.timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    (decimal.Decimal, "decimal", str),
    (fractions.Fraction, "fraction", lambda value: [value.numerator, value.denominator]),
    ((range, slice), None, lambda value: [value.start, value.stop, value.step]),
    (pathlib.PurePath, "path", str),
    # Values of a derived type, such as an Enum, are sent as the plain type.
    (str, "only", str),
    (int, "only", int),
    (float, "only", float),
)


def _of_types(value: object) -> Packed | None:
    name = f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) else ""
    if name in _KNOWN_TYPES:
        return {"t": "type", "v": name}
    if isinstance(value, np.dtype) and value.kind in "biufcMmSUO":
        return {"t": "dtype", "v": value.str}
    return {"t": "ellipsis"} if value is Ellipsis else None


def _none_here(_: Packed) -> Any:
    raise TypeError("a field of a named tuple has no plain form")


def _no(_: object) -> Packed:
    raise TypeError("no part of a plain array is an object")


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def unpack(packed: Packed, resolve: Callable[[Packed], Any]) -> Any:
    """Returns the value that was packed.

    Args:
        packed: from `pack`, or from a sender that pretends to have used it.
        resolve: returns the value for a handle.

    Raises:
        Exception: it is not in the right form. The type varies, depending on what builds the parts.
    """
    if not isinstance(packed, dict):
        if isinstance(packed, list):
            raise TypeError("a list without a tag")
        return packed

    def inner(one: Packed) -> Any:
        return unpack(one, resolve)

    kind: str = packed["t"]
    if kind == "ellipsis":
        return ...
    if kind in _READERS:
        return _READERS[kind](packed["v"])
    if kind in _BUILDERS:
        return _BUILDERS[kind](packed, inner)
    return resolve(packed) if kind == "handle" else unpack_pandas(packed, inner)


def _named(packed: Packed, _: Inner) -> Any:
    """Returns a named tuple; its fields must not be handles, because those would act as methods."""
    return collections.namedtuple(packed["n"], packed["f"])(*unpack(packed["v"], _none_here))


def _objects(packed: Packed, inner: Inner) -> Any:
    items = [inner(one) for one in packed["v"]]
    flat = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):  # all at once, numpy would convert inner lists too
        flat[place] = item
    return flat.reshape(packed["s"])


def _sequence(packed: Packed, inner: Inner) -> Any:
    kind = next(kind for kind in _CONTAINERS if kind.__name__ == packed["t"])
    return kind(inner(one) for one in packed["v"])


def _mapping(packed: Packed, inner: Inner) -> Any:
    return _MAPPINGS[packed["t"]]({inner(key): inner(item) for key, item in packed["v"]})


_BUILDERS: dict[str, Callable[[Packed, Inner], Any]] = {
    **dict.fromkeys((kind.__name__ for kind in _CONTAINERS), _sequence),
    **dict.fromkeys(_MAPPINGS, _mapping),
    "named": _named,
    "objects": _objects,
    "array": lambda packed, _: _plain_array(packed),
    "scalar": lambda packed, _: _plain_array(packed)[()],
}


def _plain_array(packed: Packed) -> Any:
    dtype = np.dtype(packed["d"])
    if dtype.kind not in "biufcMmSU":
        raise TypeError(f"no array has the dtype {dtype} here")
    raw = base64.b64decode(packed["v"], validate=True)
    return np.frombuffer(raw, dtype=dtype).reshape(packed["s"]).copy()


_READERS: dict[str, Callable[[Any], Any]] = {
    "float": lambda told: float(told),
    "complex": lambda told: complex(float(told[0]), float(told[1])),
    "bytes": lambda told: base64.b64decode(told, validate=True),
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda told: datetime.timedelta(*told),
    "decimal": decimal.Decimal,
    "fraction": lambda told: fractions.Fraction(*told),
    "range": lambda told: range(*told),
    "slice": lambda told: slice(*told),
    "path": pathlib.PurePosixPath,
    "type": _KNOWN_TYPES.__getitem__,
    "dtype": np.dtype,
    "only": lambda told: told,
}
