"""Runs code on variants, all in one process."""

import io
import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from eval_pipeline_plugins.tracks.pandas_code.variants.inside.building import (
    Recipe,
    Tables,
    build_all,
    shuffled,
    turned,
)

RAN, FAILED = "ran", "failed"
_PLAIN = (str, bool, int, float, np.generic, list, tuple, set, frozenset, dict, pd.Timestamp, pd.Timedelta, pd.Period)
_TABLES = (pd.DataFrame, pd.Series, pd.Index, np.ndarray)

Outcome = list[Any]
"""`["ran", result]` or `["failed", name of the exception]`."""


def outcomes(codes: Sequence[str], tables: Tables, variants: Sequence[dict[str, Recipe]]) -> list[list[Outcome]]:
    """Runs each code on each variant.

    Returns:
        For each variant the outcome of each code, in their order.
    """
    compiled = [compile(code, "<snippet>", "exec") for code in codes]
    return [[outcome(code, built) for code in compiled] for built in build_all(tables, variants)]


def outcome(code: Any, tables: Tables) -> Outcome:
    """Runs compiled code on its own copies of tables.

    Random numbers start from the same seed each time.
    """
    own = {name: frame.copy(deep=False) for name, frame in tables.items()}
    names: dict[str, Any] = {"__name__": "__main__", "pd": pd, "np": np, **own}
    if len(own) == 1:
        names["df"] = next(iter(own.values()))
    random.seed(0)
    np.random.seed(0)
    sys.stdout = io.StringIO()
    try:
        exec(code, names)  # noqa: S102 - the jail holds it
        return [RAN, plain(names["result"])]
    except BaseException as error:
        return [FAILED, type(error).__name__]


def otherwise(codes: Sequence[Any], tables: Tables, seed: int) -> list[Outcome]:
    """Runs compiled codes where the order of the rows, or how ties are broken, is another one.

    Returns:
        Outcomes of the first code with the rows in two other orders, then those of each further code with the rows as
        they are and in the opposite order.
    """
    back = turned(tables)
    found = [outcome(codes[0], shuffled(tables, seed)), outcome(codes[0], back)]
    return found + [outcome(code, some) for code in codes[1:] for some in (tables, back)]


def plain(result: Any) -> Any:
    """Converts a result to plain data. Raises TypeError if it has no plain form."""
    if isinstance(result, pd.api.extensions.ExtensionArray):
        return pd.Index(result)
    if result is None or result is pd.NA or result is pd.NaT or isinstance(result, _PLAIN + _TABLES):
        return result
    if type(result).__module__ in ("datetime", "decimal"):
        return result
    raise TypeError(f"a result of type {type(result).__name__}")
