"""The aggregate `error_analysis`: what failed turns have in common."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from eval_pipeline.analysis.aggregates.base import Aggregate, Row, Turns
from eval_pipeline.store.tables import ERROR_ANALYSIS as TABLE
from eval_pipeline.store.tables import ERRORS, GENERATIONS

MOST_SHAPES = 50
"""Maximum number of message shapes, most frequent first."""

_COLUMNS = ("turn_id", "error_class", "error_message", "failure_mode", "complexity")
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
    failed = turns.read(ERRORS, _COLUMNS).to_pylist()
    rows = _counted("error_class", failed, lambda row: row["error_class"], by_class=False)
    rows += _counted("failure_mode", failed, lambda row: row["failure_mode"], by_class=False)
    rows += _counted("complexity", failed, lambda row: row["complexity"])
    rows += _counted("message_shape", failed, lambda row: message_shape(row["error_message"]))[:MOST_SHAPES]
    return rows + _counted("recovered", _first_failures(turns), lambda row: row["recovered"])


def _first_failures(turns: Turns) -> list[Row]:
    """Returns the turns whose first attempt did not run, with its error class and whether a later attempt ran."""
    columns = ["turn_id", "sample", "outcome", "error_class", "error_message"]
    generations = turns.read(GENERATIONS, columns)
    final = turns.results.select(["turn_id", "sample", "outcome"])
    ran = final.filter(pc.equal(final["outcome"], "ran"))
    recovered = set(zip(ran["turn_id"].to_pylist(), ran["sample"].to_pylist(), strict=True))
    return [
        row | {"recovered": "recovered" if (row["turn_id"], row["sample"]) in recovered else "not recovered"}
        for row in generations.filter(pc.equal(generations["outcome"], "failed")).to_pylist()
    ]


def _counted(grouping: str, rows: Sequence[Row], group: Callable[[Row], Any], *, by_class: bool = True) -> list[Row]:
    """Counts rows by a value (and by error class), most frequent first; rows without the value are left out."""
    groups: defaultdict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        if (value := group(row)) is not None:
            groups[str(value), row["error_class"] if by_class else None].append(row)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0][0], item[0][1] or ""))
    return [
        {
            "grouping": grouping,
            "value": value,
            "error_class": error_class,
            "turns": len(found),
            "share": len(found) / len(rows),
            "example_turn_id": found[0]["turn_id"],
            "example_message": found[0]["error_message"],
        }
        for (value, error_class), found in ordered
    ]


def _headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    return {row["value"]: row["turns"] for row in rows if row["grouping"] == "error_class"}


ERROR_ANALYSIS = Aggregate(TABLE, error_rows, _headline, reads=(GENERATIONS,))
