"""What pydantic says of wrong input, as sentences that say what was expected."""

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Union, get_args, get_origin

if TYPE_CHECKING:  # the commands' help does without
    from pydantic import BaseModel, ValidationError

Location = tuple[str | int, ...]


class Complaint(NamedTuple):
    """One thing that is wrong: where it is in the entry, and what was expected."""

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
    "tuple_type": "a list",
}
"""Pydantic's names of what is of the wrong type, with what was expected."""
_BOUNDS = {
    "greater_than": ("gt", "a number above {}"),
    "greater_than_equal": ("ge", "a number of at least {}"),
    "less_than": ("lt", "a number below {}"),
    "less_than_equal": ("le", "a number of at most {}"),
    "literal_error": ("expected", "{}"),
    "string_pattern_mismatch": ("pattern", "a text that matches {}"),
    "string_too_long": ("max_length", "a text of at most {} character{s}"),
    "string_too_short": ("min_length", "a text of at least {} character{s}"),
    "too_long": ("max_length", "at most {} item{s}"),
    "too_short": ("min_length", "at least {} item{s}"),
}
"""Its names of what is outside a bound, with the bound's name and what was expected."""


def dotted(location: Sequence[str | int]) -> str:
    """The location as people write it: `price.input`."""
    return ".".join(str(part) for part in location)


def complaints(error: "ValidationError", model: "type[BaseModel] | None" = None) -> tuple[Complaint, ...]:
    """What is wrong, one sentence a place.

    Args:
        error: as pydantic raised it.
        model: what the input should have been; tells the allowed fields.
    """
    expected: dict[Location, list[str]] = {}
    found: dict[Location, Any] = {}
    told: dict[Location, str] = {}
    for detail in error.errors(include_url=False):
        place, inner = _place(model, detail["loc"])
        kind = _expected(detail["type"], detail.get("ctx", {}))
        if kind is None:
            told.setdefault(place, _sentence(detail["type"], detail["msg"], inner))
        else:
            # A union complains once for each of its members.
            expected.setdefault(place, []).append(kind)
            found[place] = detail["input"]
            told.setdefault(place, "")
    return tuple(
        Complaint(
            place, sentence or f"expected {' or '.join(dict.fromkeys(expected[place]))}, found {_shown(found[place])}"
        )
        for place, sentence in told.items()
    )


def _expected(kind: str, context: Mapping[str, Any]) -> str | None:
    """What was expected, where the kind of error says it."""
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


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _place(model: "type[BaseModel] | None", location: Location) -> tuple[Location, Any]:
    """The place in the input, without pydantic's names for members of a union, and the type of what is around it."""
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
    """The types that a value may have; more than one of a union."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (Union, UnionType):
        return [annotation]
    return [member for choice in get_args(annotation) if choice is not NoneType for member in _members(choice)]


def _name(annotation: Any) -> str:
    return str(getattr(get_origin(annotation) or annotation, "__name__", annotation))


def _below(annotation: Any, part: str | int) -> Any:
    """The type of what a field, a key or an index of a value of this type leads to; None for unknown."""
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
