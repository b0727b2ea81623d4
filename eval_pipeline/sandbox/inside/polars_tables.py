"""Tables as polars frames for code in that dialect, and its results as pandas values. Runs inside the jail.

polars is imported where it is used: its threads must not be started before the process of a snippet is forked.
"""

import sys
from typing import Any

import pandas as pd


def give_polars(names: dict[str, Any]) -> None:
    """Replaces the pandas frames among the names of a snippet by polars frames, and defines `pl`."""
    import polars as pl

    frames = {name: value for name, value in names.items() if isinstance(value, pd.DataFrame)}
    made = {id(frame): pl.from_pandas(frame) for frame in frames.values()}
    names.update({name: made[id(frame)] for name, frame in frames.items()}, pl=pl)


def take_polars(names: dict[str, Any]) -> None:
    """Replaces a polars result among the names of a snippet by its pandas counterpart."""
    if "result" in names:
        names["result"] = without_polars(names["result"])


def without_polars(value: object) -> object:
    """Returns a polars frame, lazy frame or series as its pandas counterpart; other values as they are."""
    pl: Any = sys.modules.get("polars")
    if pl is None:
        return value
    if isinstance(value, pl.LazyFrame):
        value = value.collect()
    if isinstance(value, pl.DataFrame):
        frame = pd.DataFrame({place: _series(value.to_series(place)) for place in range(value.width)})
        frame.columns = pd.Index(value.columns, dtype=object)
        return frame
    return _series(value) if isinstance(value, pl.Series) else value


def _series(values: Any) -> "pd.Series[Any]":
    """Returns a column; nested ones with plain lists and dicts as cells."""
    if values.dtype.is_nested():
        return pd.Series(values.to_list(), name=values.name, dtype=object)
    found: pd.Series[Any] = values.to_pandas()
    return found
