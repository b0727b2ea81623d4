"""Converts results of snippets (tagged plain data) to text for people, and shortens them for the record."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json

KEPT_BYTES = 100_000
"""A result up to this size as JSON is kept whole in the record."""
SHOWN_ROWS = 20
_KEY_ROWS = 1000
_SHOWN_CELL = 60
_DIGITS = 10

Result = Mapping[str, Any]


def kept(result: Result) -> Json:
    """Returns the part of a result that the record keeps: all of it, or its first rows if it is large."""
    if len(json_text(result)) <= KEPT_BYTES:
        return {"result": dict(result)}
    return {"shown": result_text(result), "cut": True}


def answer_key(told: Json) -> str:
    """Returns a key that is equal for attempts with the same result, as far as the record kept it."""
    return str(told["shown"]) if "shown" in told else result_text(told["result"], _KEY_ROWS)


def result_text(result: Result, rows: int = SHOWN_ROWS) -> str:
    """Returns a result as text: a value, or the first rows of a table with columns separated by ` | `."""
    match result["kind"]:
        case "frame":
            index = _named(result["index"])
            columns = [*index, *result["columns"]]
            return _table(columns, result["rows"], rows)
        case "series":
            columns = [*_named(result["index"]), result["values"]]
            return _table(columns, len(result["values"]["values"]), rows)
        case "array":
            return _table([result["values"]], len(result["values"]["values"]), rows)
        case "figure":
            return result_text(result["marks"], rows)
    return _cell(result["value"])


def columns_of(result: Result) -> tuple[list[str], list[list[Hashable]]]:
    """Returns names and cells of a result's columns; cells that JSON cannot represent are texts.

    Raises:
        LookupError, TypeError, ValueError: it is not a result of the sandbox.
    """
    match result["kind"]:
        case "frame":
            columns = [*_named(result["index"]), *result["columns"]]
        case "series":
            columns = [*_named(result["index"]), result["values"]]
        case "array":
            columns = [result["values"]]
        case "figure":
            return columns_of(result["marks"])
        case _:
            return _value_columns(result["value"])
    names = ["" if column["name"] is None else _cell(column["name"]) for column in columns]
    return names, [list(map(_comparable, column["values"])) for column in columns]


def _value_columns(told: Json) -> tuple[list[str], list[list[Hashable]]]:
    match told:
        case {"t": "dict", "v": list() as pairs}:
            return ["key", "value"], [[_comparable(pair[place]) for pair in pairs] for place in (0, 1)]
        case {"t": "list" | "tuple" | "set" | "frozenset", "v": list() as items}:
            return ["value"], [list(map(_comparable, items))]
    return ["value"], [[_comparable(told)]]


def _comparable(value: Json) -> Hashable:
    return _cell(value) if isinstance(value, dict | list) else value


def cell_text(value: Any) -> str:
    """Returns a cell as text for people."""
    return _cell(value)


def _named(index: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the levels of an index except a plain count of rows."""
    if len(index) == 1 and index[0]["name"] is None and index[0]["values"] == list(range(len(index[0]["values"]))):
        return []
    return list(index)


def _table(columns: Sequence[Mapping[str, Any]], count: int, most: int) -> str:
    names = [_cell(column["name"]) if column["name"] is not None else "" for column in columns]
    lines = [" | ".join(names)] if any(names) else []
    lines += [" | ".join(_cell(column["values"][place]) for column in columns) for place in range(min(count, most))]
    if count > most:
        lines.append(f"… {count:,} rows")
    return "\n".join(lines) if count else "\n".join([*lines, "(no rows)"])


def _cell(value: Json) -> str:
    if value is None:
        return "missing"
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    if isinstance(value, dict):
        return _tagged(value)
    text = str(value)
    return text if len(text) <= _SHOWN_CELL else text[: _SHOWN_CELL - 1] + "…"


def _tagged(value: Mapping[str, Any]) -> str:
    """Converts a tagged value that JSON cannot represent."""
    held = value["v"]
    match value["t"]:
        case "dict":
            return "{" + ", ".join(f"{_cell(key)}: {_cell(item)}" for key, item in held[:SHOWN_ROWS]) + "}"
        case "table":
            return result_text(held)
        case "datetime":
            return str(held).removesuffix("T00:00:00")
    if isinstance(held, list):
        return "[" + ", ".join(map(_cell, held[:SHOWN_ROWS])) + (", …]" if len(held) > SHOWN_ROWS else "]")
    return str(held)
