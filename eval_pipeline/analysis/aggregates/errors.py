"""The aggregate `error_analysis`: what failed turns have in common."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.analysis.aggregates.base import Row, Turns
from eval_pipeline.store.tables import ERRORS, GENERATIONS, TURN_RESULTS
from eval_pipeline.workspace.asked.places import places_of_rows

MOST_SHAPES = 50
"""Maximum number of message shapes, most frequent first."""

_COLUMNS = ("turn_id", "error_class", "error_message", "failure_mode", "complexity")
_PLACE = ("turn_id", "sample", "outcome")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_NUMBER = re.compile(r"(?<!\w)[-+]?\d[\d,.]*(?:[eE][-+]?\d+)?(?=(?:m?s|[kKMG]i?B)?(?!\w))")


def message_shape(message: str) -> str:
    """Replaces the parts of a message that differ from turn to turn: quoted text becomes `'…'`, numbers become `N`.

    Digits in a word, such as the code `CP0111`, are kept.
    """
    shape = _NUMBER.sub("N", _QUOTED.sub("'…'", message))
    return " ".join(shape.split())[:200]


def error_rows(turns: Turns) -> list[Row]:
    """Counts failed turns by error class, failure mode, complexity, message shape and recovery."""
    groups = (
        Grouping("error_class", lambda row: row["error_class"], by_class=False),
        Grouping("failure_mode", lambda row: row["failure_mode"], by_class=False),
        Grouping("complexity", lambda row: row["complexity"]),
        Grouping("message_shape", lambda row: message_shape(row["error_message"]), most=MOST_SHAPES),
    )
    for errors in turns.groups(ERRORS, _COLUMNS):
        for row in errors.to_pylist():
            for grouping in groups:
                grouping.add(row)
    recovered = Grouping("recovered", lambda row: row["recovered"])
    for row in _first_failures(turns):
        recovered.add(row)
    return [row for grouping in (*groups, recovered) for row in grouping.rows()]


def _first_failures(turns: Turns) -> Iterator[Row]:
    """Yields the turns whose first attempt did not run, with its error class and whether a later attempt ran."""
    again = (
        group.filter(pc.greater(group["attempts"], 1)) for group in turns.groups(TURN_RESULTS, [*_PLACE, "attempts"])
    )
    failed = _places(turns.groups(GENERATIONS, _PLACE), "failed")
    recovered = iter(pc.is_in(failed, _places(again, "ran")).to_pylist())
    for group in turns.groups(GENERATIONS, [*_PLACE, "error_class", "error_message"]):
        for row in group.filter(pc.equal(group["outcome"], "failed")).to_pylist():
            yield row | {"recovered": "recovered" if next(recovered) else "not recovered"}


def _places(groups: Iterator[pa.Table], outcome: str) -> pa.Array:
    """Returns the places of the rows with an outcome."""
    found = [places_of_rows(group.filter(pc.equal(group["outcome"], outcome))) for group in groups]
    return pa.concat_arrays([pa.array([], pa.string()), *found])


class Grouping:
    """Counts rows by a value (and by error class); of each group it keeps the first row only."""

    def __init__(
        self, name: str, value: Callable[[Row], Any], *, by_class: bool = True, most: int | None = None
    ) -> None:
        """Takes a function that returns the value of a row, None to leave it out; `most` limits the groups told."""
        self._name, self._value, self._by_class, self._most = name, value, by_class, most
        self._rows = 0
        self._counts: Counter[tuple[str, str | None]] = Counter()
        self._first: dict[tuple[str, str | None], Row] = {}

    def add(self, row: Row) -> None:
        """Counts a row."""
        self._rows += 1
        if (value := self._value(row)) is not None:
            group = (str(value), row["error_class"] if self._by_class else None)
            self._counts[group] += 1
            self._first.setdefault(group, row)

    def rows(self) -> list[Row]:
        """Returns the groups as rows of the table, most frequent first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or ""))
        return [
            {
                "grouping": self._name,
                "value": value,
                "error_class": error_class,
                "turns": count,
                "share": count / self._rows,
                "example_turn_id": self._first[value, error_class]["turn_id"],
                "example_message": self._first[value, error_class]["error_message"],
            }
            for (value, error_class), count in ordered[: self._most]
        ]


def headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the number of turns of each error class among the rows' numbers."""
    return {row["value"]: row["turns"] for row in rows if row["grouping"] == "error_class"}
