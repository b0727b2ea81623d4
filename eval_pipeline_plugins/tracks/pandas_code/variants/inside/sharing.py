"""Runs trusted codes on the same tables, and computes only once what several of them compute: see `variants.steps`."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from eval_pipeline_plugins.tracks.pandas_code.variants.inside.building import Tables
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.running import FAILED, RAN, Outcome, outcome, plain

_BYTES = "biufM"
"""Kinds of dtypes whose values are equal where their bytes are."""


class Codes:
    """Codes that are split into steps, or whole.

    Attributes:
        functions: what the steps apply to the values of other steps.
        steps: for each step its function and the numbers of other steps; nothing for the tables.
        codes: for each code the numbers of its statements' steps, or the compiled code.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        names = {"pd": pd, "np": np}
        self.functions = [eval(text, names) for text in told["functions"]]  # noqa: S307 - from the suite's code
        self.steps: list[list[int]] = told["steps"]
        self.codes = [compile(one, "<snippet>", "exec") if isinstance(one, str) else one for one in told["codes"]]


class FailedStep:
    """A step without a value."""

    def __init__(self, error: Exception) -> None:
        self.name = type(error).__name__


class SharedRunner:
    """Runs codes on the same tables."""

    def __init__(self, codes: Codes, tables: Tables) -> None:
        self._codes, self._tables = codes, tables
        self._values: list[Any] = [*tables.values()]
        self._seen: dict[tuple[int, ...], int] = {}
        self._contents: dict[Any, int] = {}
        self._known = {place: place for place in range(len(self._values))}
        self._outcomes: dict[int, Outcome] = {}

    def outcome(self, place: int) -> Outcome:
        """Returns the outcome of a code; the same object where codes are known to have the same one."""
        code = self._codes.codes[place]
        if not isinstance(code, list):
            return outcome(code, self._tables)
        last = 0
        for step in code:
            last = self._value(step)
            if isinstance(self._values[last], FailedStep):
                break
        if last not in self._outcomes:
            self._outcomes[last] = self._told(self._values[last])
        return self._outcomes[last]

    def _told(self, found: Any) -> Outcome:
        try:
            return [FAILED, found.name] if isinstance(found, FailedStep) else [RAN, plain(found)]
        except TypeError as error:
            return [FAILED, type(error).__name__]

    def _value(self, step: int) -> int:
        """Returns the place of a step's value; the same one where values are known to be equal."""
        if step in self._known:
            return self._known[step]
        function, *operands = self._codes.steps[step]
        taken = [self._value(one) for one in operands]
        place = next((one for one in taken if isinstance(self._values[one], FailedStep)), None)
        if place is None:
            key = (function, *taken)
            if key not in self._seen:
                self._seen[key] = self._computed(self._codes.functions[function], taken)
            place = self._seen[key]
        self._known[step] = place
        return place

    def _computed(self, function: Any, taken: list[int]) -> int:
        try:
            value = function(*(self._values[place] for place in taken))
        except Exception as error:
            value = FailedStep(error)
        place = self._contents.setdefault(content(value), len(self._values))
        if place == len(self._values):
            self._values.append(value)
        return place


def content(value: Any) -> Any:
    """Returns something that is equal for values which no code can distinguish; otherwise something unique."""
    if type(value) is pd.Series and isinstance(value.dtype, np.dtype) and value.dtype.kind in _BYTES:
        return "series", str(value.dtype), repr(value.name), value.to_numpy().tobytes(), _index_content(value.index)
    if type(value) in (int, float, bool, str) or isinstance(value, np.generic):
        return repr(value)
    return object()


def _index_content(index: pd.Index) -> Any:
    if type(index) is pd.RangeIndex:
        return index.start, index.stop, index.step, repr(index.name)
    if type(index) is pd.Index and isinstance(index.dtype, np.dtype) and index.dtype.kind in _BYTES:
        return str(index.dtype), repr(index.name), index.to_numpy().tobytes()
    return object()


class Outcomes:
    """Outcomes to tell, each once.

    Attributes:
        told: the different ones.
    """

    def __init__(self) -> None:
        self.told: list[Outcome] = []
        self._places: dict[int, int] = {}

    def places(self, found: Iterable[Outcome]) -> list[int]:
        """Returns the places of outcomes in `told`."""
        return [self._place(one) for one in found]

    def _place(self, found: Outcome) -> int:
        place = self._places.setdefault(id(found), len(self.told))
        if place == len(self.told):
            self.told.append(found)  # which also keeps its id from being used again
        return place
