"""What a cell has made, read as a process has told it: nothing of it is trusted."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.inside.made import LONGEST, MOST_BYTES, MOST_COLUMNS, MOST_VARIABLES

_MOST_VALUES = 100
_MOST_COUNT = 10**9


def made_variables(told: object) -> tuple[Mapping[str, Json], ...]:
    """Returns variables that a cell has made, in the form of `inside.made`; what has another form is left out."""
    if not isinstance(told, list):
        return ()
    found = [one for each in told[:MOST_VARIABLES] if (one := _variable(each)) is not None]
    return tuple(found) if len(canonical_json(found)) <= 2 * MOST_BYTES else ()


def _variable(told: Any) -> dict[str, Json] | None:
    match told:
        case {"name": str() as name, "kind": str() as kind, "rows": int() | None as rows, "columns": [*columns]}:
            values = told.get("values")
        case _:
            return None
    read = [[_text(label), _text(digest)] for label, digest in filter(_is_pair, columns[:MOST_COLUMNS])]
    if len(read) != len(columns) or not 0 <= (rows or 0) <= _MOST_COUNT:
        return None
    found: dict[str, Json] = {"name": _text(name), "kind": _text(kind), "rows": rows, "columns": list(read)}
    if isinstance(values, list) and len(values) == len(read) and all(map(_is_column, values)):
        found["values"] = [[_text(one) for one in column] for column in values]
    return found


def _is_pair(told: Any) -> bool:
    return isinstance(told, list) and len(told) == 2 and all(isinstance(one, str) for one in told)


def _is_column(told: Any) -> bool:
    return isinstance(told, list) and len(told) <= _MOST_VALUES and all(isinstance(one, str) for one in told)


def _text(told: str) -> str:
    return told[:LONGEST].encode("utf-8", "replace").decode()
