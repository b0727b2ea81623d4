"""Translates pydantic's validation errors into sentences that say what was expected."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from math import isfinite
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Union, get_args, get_origin

if TYPE_CHECKING:  # keeps pydantic out of the start of `--help`
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

Location = tuple[str | int, ...]


class Complaint(NamedTuple):
    """One validation error: its location in the entry and a message."""

    location: Location
    message: str


_KINDS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "date_from_datetime_parsing": "a date such as 2026-01-31",
    "date_type": "a date such as 2026-01-31",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "a text",
    "string_unicode": "a text that UTF-8 can hold, without halves of surrogate pairs",
    "tuple_type": "a list",
}
"""Pydantic's error types for values of the wrong type → the expected value, in words."""
_BOUNDS = {
    "greater_than": ("gt", "a number above {}"),
    "greater_than_equal": ("ge", "a number of at least {}"),
    "less_than": ("lt", "a number below {}"),
    "less_than_equal": ("le", "a number of at most {}"),
    "enum": ("expected", "{}"),
    "literal_error": ("expected", "{}"),
    "string_pattern_mismatch": ("pattern", "a text that matches {}"),
    "string_too_long": ("max_length", "a text of at most {} character{s}"),
    "string_too_short": ("min_length", "a text of at least {} character{s}"),
    "too_long": ("max_length", "at most {} item{s}"),
    "too_short": ("min_length", "at least {} item{s}"),
}
"""Pydantic's error types for values out of bounds → name of the bound, and the expected value in words."""


QUOTES = "YAML reads NO, yes, on and the like as true or false: write it in quotes"
"""The hint where a text was expected and YAML made something else of it."""


def dotted(location: Sequence[str | int]) -> str:
    """Returns the location in dotted form, e.g. `price.input`."""
    return ".".join(str(part) for part in location)


def complaints(error: "ValidationError", model: "type[BaseModel] | None" = None) -> tuple[Complaint, ...]:
    """Returns the problems of a validation error, one sentence for each location.

    Args:
        error: as raised by pydantic.
        model: the model that the input was validated against; used to list the allowed fields.
    """
    expected: dict[Location, list[str]] = {}
    found: dict[Location, Any] = {}
    told: dict[Location, str] = {}
    for detail in error.errors(include_url=False):
        place, inner = _place(model, detail["loc"])
        kind = _expected(detail["type"], detail.get("ctx", {}))
        if _is_of_invalid_items(detail):
            continue
        if kind is None:
            told.setdefault(place, _sentence(detail["type"], detail["msg"], inner))
        else:
            # Pydantic reports one error for each member of a union; they are joined into one.
            expected.setdefault(place, []).append(kind)
            found[place] = detail["input"]
            told.setdefault(place, "")
    return tuple(
        Complaint(place, sentence or _expectation(list(dict.fromkeys(expected[place])), found[place]))
        for place, sentence in told.items()
    )


def _is_of_invalid_items(detail: "ErrorDetails") -> bool:
    """Whether a list is called too short only because items of it are invalid, which have complaints of their own."""
    found, least = detail["input"], detail.get("ctx", {}).get("min_length", 0)
    return detail["type"] == "too_short" and isinstance(found, list | tuple) and len(found) >= least


def _expected(kind: str, context: Mapping[str, Any]) -> str | None:
    """Returns the expected value in words, or None if the error type does not tell."""
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = context[name]
        return words.format(f"{bound:g}" if isinstance(bound, float) else bound, s="" if bound == 1 else "s")
    return _KINDS.get(kind)


def _sentence(kind: str, message: str, around: Any) -> str:
    match kind:
        case "extra_forbidden":
            model = _model_in(around)
            return f"unknown field; allowed: {', '.join(model.model_fields)}" if model else "unknown field"
        case "missing":
            return "is missing"
    return message.removeprefix("Value error, ")


def _expectation(expected: Sequence[str], found: Any) -> str:
    """Says what was expected; for what YAML takes for something else than a text, also how to write it as one."""
    sentence = f"expected {' or '.join(expected)}, found {told_value(found)}"
    if not any(kind.startswith("a text") for kind in expected) or (isinstance(found, float) and not isfinite(found)):
        return sentence
    if isinstance(found, bool):
        return f"{sentence}; {QUOTES}"
    return f"{sentence}; write it in quotes" if isinstance(found, (int, float, date)) else sentence


def told_value(value: Any, most: int = 60) -> str:
    """Returns a value as people write it in YAML, shortened: `2020-01-01`, `true`, `nothing` for null, `'a text'`."""
    if value is None:
        return "nothing"
    text = _written(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else f"{'-' * (value < 0)}infinity"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_written(name)}: {_written(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ", ".join(map(_written, value)) + "]"
    if value is None:
        return "null"
    return value.isoformat() if isinstance(value, date | time) else repr(value)


def _place(model: "type[BaseModel] | None", location: Location) -> tuple[Location, Any]:
    """Returns the location without the names that pydantic inserts for union members, and the enclosing type."""
    place: list[str | int] = []
    inner: Any = model
    around: Any = model
    for part in location:
        around, members = inner, _members(inner)
        if len(members) > 1:
            inner = next(
                (member for member in members if str(part).startswith((_name(member), f"constrained-{_name(member)}"))),
                None,
            )
            continue
        place.append(part)
        inner = _below(members[0], part)
    return tuple(place), around


def _members(annotation: Any) -> list[Any]:
    """Returns the possible types of a value: several if the annotation is a union."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (Union, UnionType):
        return [annotation]
    return [member for choice in get_args(annotation) if choice is not NoneType for member in _members(choice)]


def _name(annotation: Any) -> str:
    return str(getattr(get_origin(annotation) or annotation, "__name__", annotation))


def _below(annotation: Any, part: str | int) -> Any:
    """Returns the type of the field, key or index `part` of a value of this type; None if unknown."""
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(part))
        return None if field is None else field.annotation
    inner = [argument for argument in get_args(annotation) if argument is not ...]
    if isinstance(part, int) and get_origin(annotation) is tuple and part < len(inner):
        return inner[part]
    return inner[-1] if inner else None


def _model_in(annotation: Any) -> "type[BaseModel] | None":
    from pydantic import BaseModel

    models: Iterator[Any] = (member for member in _members(annotation) if isinstance(member, type))
    return next((found for found in models if issubclass(found, BaseModel)), None)
