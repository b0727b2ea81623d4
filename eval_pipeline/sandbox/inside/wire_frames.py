"""The part of `wire.py` for pandas values."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Inner = Callable[[Any], Any]
_PLAIN_ARRAY: Any = next(
    getattr(pd.arrays, name)
    for name in ("NumpyExtensionArray", "PandasArray")  # the second until 2.0
    if hasattr(pd.arrays, name)
)


def pack_pandas(value: object, inner: Inner) -> dict[str, Any] | None:
    """Returns a pandas value as data, or None if it has no such form."""
    match value:
        case pd.DataFrame():
            arrays = [_pack_array(value.iloc[:, place].array, inner) for place in range(value.shape[1])]
            if any(one is None for one in arrays):
                return None
            return {"t": "frame", "c": inner(value.columns), "a": arrays, "i": inner(value.index)}
        case pd.Series():
            array = _pack_array(value.array, inner)
            return (
                None if array is None else {"t": "series", "a": array, "i": inner(value.index), "n": inner(value.name)}
            )
        case pd.Index():
            return _pack_index(value, inner)
        case pd.api.extensions.ExtensionArray():
            array = _pack_array(value, inner)
            return None if array is None else {"t": "extension", "a": array}
        case pd.Timestamp() | pd.Timedelta():
            zone = getattr(value, "tz", None)
            return {
                "t": type(value).__name__,
                "v": int(value.asm8.view("i8")),
                "u": getattr(value, "unit", "ns"),
                "z": zone and str(zone),
            }
        case pd.Period():
            return {"t": "Period", "v": value.ordinal, "f": value.freqstr}
        case pd.Interval():
            return {"t": "Interval", "v": [inner(value.left), inner(value.right)], "c": value.closed}
        case pd.api.extensions.ExtensionDtype():
            return {"t": "extension dtype", "v": str(value)} if str(value) in _DTYPES else None
    return {"t": "NaT"} if value is pd.NaT else {"t": "NA"} if value is pd.NA else None


_MASKED = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "boolean")
_DTYPES = (*_MASKED, "str", "string", "category")


def _pack_array(array: Any, inner: Inner) -> dict[str, Any] | None:
    dtype = array.dtype
    if isinstance(dtype, np.dtype) or isinstance(array, _PLAIN_ARRAY):
        return {"a": "numpy", "v": inner(np.asarray(array))}
    if isinstance(dtype, pd.CategoricalDtype):
        return {"a": "categorical", "v": inner(array.codes), "k": inner(array.categories), "o": bool(array.ordered)}
    if isinstance(dtype, pd.StringDtype):
        texts = [None if missing else str(text) for text, missing in zip(array, array.isna(), strict=True)]
        return {"a": "strings", "v": texts, "d": [dtype.storage, "NA" if dtype.na_value is pd.NA else "nan"]}
    if isinstance(dtype, pd.DatetimeTZDtype):
        instants = array.tz_convert("UTC").tz_localize(None)
        return {"a": "zoned", "v": inner(np.asarray(instants)), "z": str(dtype.tz)}
    if isinstance(dtype, pd.PeriodDtype):
        return {"a": "periods", "v": inner(array.asi8), "f": array.freqstr}
    if isinstance(dtype, pd.IntervalDtype):
        return {"a": "intervals", "l": inner(array.left), "r": inner(array.right), "c": array.closed}
    if str(dtype) in _MASKED:
        plain = dtype.numpy_dtype
        return {
            "a": "masked",
            "v": inner(array.to_numpy(dtype=plain, na_value=plain.type(0))),
            "m": inner(array.isna()),
        }
    return None


def _pack_index(index: Any, inner: Inner) -> dict[str, Any] | None:
    names = [inner(name) for name in index.names]
    if isinstance(index, pd.RangeIndex):
        return {"t": "index", "k": "range", "v": [index.start, index.stop, index.step], "n": names}
    if isinstance(index, pd.MultiIndex):
        codes = [inner(np.asarray(one)) for one in index.codes]
        return {"t": "index", "k": "multi", "l": [inner(level) for level in index.levels], "v": codes, "n": names}
    array = _pack_array(index.array, inner)
    if array is None:
        return None
    return {"t": "index", "k": "plain", "v": array, "n": names, "f": getattr(index, "freqstr", None)}


def unpack_pandas(packed: dict[str, Any], inner: Inner) -> Any:
    """Returns the pandas value that was packed. Raises exceptions of various types if the form is wrong."""
    return _BUILDERS[packed["t"]](packed, inner)


def _frame(packed: dict[str, Any], inner: Inner) -> Any:
    index = inner(packed["i"])
    columns = {place: _series(one, index, inner) for place, one in enumerate(packed["a"])}
    frame = pd.DataFrame(columns, index=index)
    frame.columns = inner(packed["c"])
    return frame


def _timestamp(packed: dict[str, Any], _: Inner) -> Any:
    instant = pd.Timestamp(np.datetime64(packed["v"], packed["u"]))
    return instant if packed["z"] is None else instant.tz_localize("UTC").tz_convert(packed["z"])


def _extension_dtype(packed: dict[str, Any], _: Inner) -> Any:
    if packed["v"] not in _DTYPES:
        raise TypeError("a dtype of an unknown form")
    return pd.api.types.pandas_dtype(packed["v"])


def _series(packed: dict[str, Any], index: Any, inner: Inner) -> "pd.Series[Any]":
    array = _array(packed, inner)
    found: pd.Series[Any] = pd.Series(array, index=index, dtype=array.dtype, copy=True)
    return found


def _array(packed: dict[str, Any], inner: Inner) -> Any:
    told: Any = packed.get("v")
    match packed["a"]:
        case "numpy":
            return _kept_type(inner(told), np.ndarray)
        case "categorical":
            return pd.Categorical.from_codes(inner(told), inner(packed["k"]), ordered=packed["o"])
        case "strings":
            storage, missing = packed["d"]
            dtype = pd.StringDtype(storage) if missing == "NA" else pd.StringDtype(storage, na_value=np.nan)
            return pd.array([text if isinstance(text, str) else None for text in told], dtype=dtype)
        case "zoned":
            return pd.DatetimeIndex(inner(told)).tz_localize("UTC").tz_convert(packed["z"]).array
        case "periods":
            return pd.arrays.PeriodArray(inner(told), dtype=pd.PeriodDtype(packed["f"]))
        case "intervals":
            return pd.arrays.IntervalArray.from_arrays(inner(packed["l"]), inner(packed["r"]), closed=packed["c"])
        case "masked":
            values, mask = inner(told), inner(packed["m"])
            kinds = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
            return kinds.get(values.dtype.kind, pd.arrays.IntegerArray)(values, mask)
    raise TypeError("an array of an unknown form")


def _index(packed: dict[str, Any], inner: Inner) -> Any:
    names = [inner(name) for name in packed["n"]]
    match packed["k"]:
        case "range":
            start, stop, step = packed["v"]
            return pd.RangeIndex(start, stop, step, name=names[0])
        case "multi":
            levels = [_kept_type(inner(level), pd.Index) for level in packed["l"]]
            return pd.MultiIndex(levels=levels, codes=[inner(one) for one in packed["v"]], names=names)
    array = _array(packed["v"], inner)
    found = pd.Index(array, dtype=array.dtype, name=names[0])
    if packed["f"] is not None and isinstance(found, pd.DatetimeIndex | pd.TimedeltaIndex):
        return type(found)(found, freq=packed["f"])
    return found


def _kept_type(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}")
    return value


_BUILDERS: dict[str, Callable[[dict[str, Any], Inner], Any]] = {
    "frame": _frame,
    "series": lambda packed, inner: _series(packed["a"], inner(packed["i"]), inner).rename(inner(packed["n"])),
    "index": lambda packed, inner: _index(packed, inner),
    "extension": lambda packed, inner: _array(packed["a"], inner),
    "Timestamp": _timestamp,
    "Timedelta": lambda packed, _: pd.Timedelta(np.timedelta64(packed["v"], packed["u"])),
    "Period": lambda packed, _: pd.Period(ordinal=packed["v"], freq=packed["f"]),
    "Interval": lambda packed, inner: pd.Interval(inner(packed["v"][0]), inner(packed["v"][1]), closed=packed["c"]),
    "extension dtype": _extension_dtype,
    "NaT": lambda _, __: pd.NaT,
    "NA": lambda _, __: pd.NA,
}
