"""Writes JSON that is valid for other programs and readable for people."""

import json
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

_SHORT = 4
_NEWLINE, _INDENT = "\n", "  "
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
_SCALARS: Mapping[type, Callable[[Any], str]] = {
    str: encode_basestring,
    float: lambda value: float.__repr__(value) if isfinite(value) else "null",
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
}
"""How scalars are written; an encoder, which Python would set up for each, takes four times as long."""


class Written(str):
    """JSON text of a value, made by `part` or `parts` for a certain place in a larger value."""

    __slots__ = ()


_WRITTEN: Mapping[type, Callable[[Any], str]] = {**_SCALARS, Written: lambda text: text}


def readable_json(value: Any, depth: int) -> str:
    """Returns JSON text with one entry per line down to a depth; deeper or short, flat values are on one line.

    NaN and infinities, which JSON does not have, become null. Entries that are `Written` are taken as they are.
    """
    return f"{_text(value, depth, _NEWLINE)}\n"


def part(value: Any, depth: int, level: int) -> Written:
    """Returns the text that a value has within a larger one.

    Args:
        value: what JSON can represent.
        depth: levels of it with one entry per line, as for `readable_json`.
        level: how many levels it is down in the larger value, by which it is indented.
    """
    return Written(_text(value, depth, _NEWLINE + level * _INDENT))


def parts(columns: Mapping[str, Sequence[Any]], depth: int, level: int) -> list[Written]:
    """Returns what `part` does for each row of a table, given by its columns, as an object; much faster."""
    newline = _NEWLINE + level * _INDENT
    inner = newline + _INDENT
    try:
        if len(columns) <= _SHORT:
            before, between, after = "{", ", ", "}"
            texts = [[_SCALARS[type(entry)](entry) for entry in values] for values in columns.values()]
        elif depth:
            before, between, after = f"{{{inner}", f",{inner}", f"{newline}}}"
            texts = [_texts(values, depth - 1, inner) for values in columns.values()]
        else:
            raise KeyError(depth)
    except KeyError:  # rows whose form depends on their values
        rows = zip(*columns.values(), strict=True)
        return [part(dict(zip(columns, row, strict=True)), depth, level) for row in rows]
    form = before + between.join(f"{encode_basestring(name).replace('%', '%%')}: %s" for name in columns) + after
    return [Written(form % row) for row in zip(*texts, strict=True)]


def _texts(values: Sequence[Any], depth: int, newline: str) -> list[str]:
    try:
        return [_WRITTEN[type(value)](value) for value in values]
    except KeyError:  # not all are scalars
        return [_text(value, depth, newline) for value in values]


def _text(value: Any, depth: int, newline: str) -> str:
    pieces: list[str] = []
    _put(value, depth, newline, pieces)
    return "".join(pieces)


def _put(value: Any, depth: int, newline: str, pieces: list[str]) -> None:
    scalar = _WRITTEN.get(type(value))
    if scalar is not None:
        pieces.append(scalar(value))
        return
    if (flat := _flat(value)) is not None:
        pieces.append(flat)
        return
    if depth == 0 or not value or not isinstance(value, dict | list) or _is_plain(value):
        pieces.append(_one_line(value))
        return
    inner, lead = newline + _INDENT, ""
    if isinstance(value, dict):
        pieces.append("{")
        for name, entry in value.items():
            pieces.append(f"{lead}{inner}{encode_basestring(str(name))}: ")
            _put(entry, depth - 1, inner, pieces)
            lead = ","
        pieces.append(newline + "}")
    else:
        pieces.append("[")
        for entry in value:
            pieces.append(lead + inner)
            _put(entry, depth - 1, inner, pieces)
            lead = ","
        pieces.append(newline + "]")


def _flat(value: Any) -> str | None:
    """Returns a short dict, or a list, of scalars on one line; None for everything else, which takes longer."""
    try:
        if type(value) is dict and len(value) <= _SHORT:
            said = [f"{_name(name)}: {_SCALARS[type(entry)](entry)}" for name, entry in value.items()]
            return f"{{{', '.join(said)}}}"
        if type(value) is list:
            return f"[{', '.join([_SCALARS[type(entry)](entry) for entry in value])}]"
    except KeyError:  # not all are scalars
        pass
    return None


def _name(name: Any) -> str:
    if type(name) is not str:
        raise KeyError(name)
    return encode_basestring(name)


def _is_plain(value: dict[str, Any] | list[Any]) -> bool:
    if isinstance(value, dict):
        return len(value) <= _SHORT and not any(isinstance(entry, dict | list | Written) for entry in value.values())
    return not any(isinstance(entry, dict | list | Written) for entry in value)


def _one_line(value: Any) -> str:
    try:
        return _COMPACT.encode(value)
    except ValueError:
        return _COMPACT.encode(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value
