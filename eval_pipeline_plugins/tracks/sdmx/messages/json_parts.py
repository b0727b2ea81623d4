"""Takes the parts of an SDMX-JSON message, and says which part is of another kind than the standard says."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline_plugins.tracks.sdmx.messages.references import MessageError

_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


def listed(found: Mapping[str, Any], field: str, of: str) -> list[dict[str, Any]]:
    """Returns the objects in a list; none if there is no such field, or null. `of` names the artefact in problems."""
    return _listed(found, field, of, "objects", dict)


def listed_or_texts(found: Mapping[str, Any], field: str, of: str) -> list[dict[str, Any] | str]:
    """Returns the objects and texts in a list; none if there is no such field, or null."""
    return _listed(found, field, of, "texts or objects", dict | str)


def _listed(found: Mapping[str, Any], field: str, of: str, expected: str, kinds: Any) -> list[Any]:
    value = found.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise MessageError(f"{of}: expected '{field}' as a list of {expected}, found {_kind(value)}")
    for number, item in enumerate(value):
        if not isinstance(item, kinds):
            raise MessageError(f"{of}: expected '{field}' as a list of {expected}, found {_kind(item)} at {number}")
    return value


def part(found: Mapping[str, Any], field: str, of: str) -> dict[str, Any]:
    """Returns an object within an object; an empty one if there is no such field, or null."""
    value = found.get(field)
    if not isinstance(value, dict | None):
        raise MessageError(f"{of}: expected '{field}' as an object, found {_kind(value)}")
    return value or {}


def text_of(found: Mapping[str, Any], field: str, of: str) -> str:
    """Returns a text within an object; an empty one if there is no such field, or null."""
    value = found.get(field)
    if not isinstance(value, str | None):
        raise MessageError(f"{of}: expected '{field}' as a text, found {_kind(value)}: {value!r:.60}")
    return value or ""


def id_of(found: Mapping[str, Any], kind: str, of: str) -> str:
    """Returns the id of an artefact or item."""
    id = found.get("id")
    if id is None or id == "":
        raise MessageError(f"{of} has {'an' if kind[0] in 'aeiou' else 'a'} {kind} without an id")
    if not isinstance(id, str):
        raise MessageError(f"{of}: expected the id of a {kind} as a text, found {_kind(id)}: {id!r:.60}")
    return id


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "a number")
