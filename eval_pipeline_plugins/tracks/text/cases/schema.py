"""Checks JSON against suites' JSON Schemas in bounded time and without access to other documents."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.text.comparing.patterns import compiled

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "$schema"})
"""Keywords that may refer to other documents, or to themselves without end."""
_MOST_PARTS = 2_000
_MOST_DEPTH = 30
_NAMED = frozenset({"properties", "$defs", "definitions", "dependentSchemas", "patternProperties"})
_PLAIN = frozenset({"const", "enum", "default", "examples"})


def check_schema(schema: Mapping[str, Json]) -> None:
    """Raises a ValueError with one sentence if the schema cannot be used."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    for count, (keyword, value) in enumerate(_keywords(schema, 0)):
        if count >= _MOST_PARTS:
            raise ValueError(f"expected a schema with at most {_MOST_PARTS:,} keywords")
        if keyword in _REFERENCES:
            raise ValueError(f"'{keyword}' is not supported; write the schema out where it is used")
        if keyword == "pattern":
            compiled(str(value), ignore_case=False)
        if keyword == "patternProperties" and isinstance(value, Mapping):
            for pattern in value:
                compiled(str(pattern), ignore_case=False)
    try:
        Draft202012Validator.check_schema(dict(schema), format_checker=None)
    except SchemaError as error:
        place = ".".join(map(str, error.absolute_path))
        raise ValueError(
            f"expected a JSON Schema (2020-12){f', at {place}' if place else ''}: {error.message}"
        ) from None


def schema_problem(schema: Mapping[str, Json], answer: Json) -> str | None:
    """Returns the first part that does not fit, with its position; None if the answer fits."""
    if not schema:
        return None
    error = next(_validator(canonical_json(schema)).iter_errors(answer), None)
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path))
    message = error.message if len(error.message) <= 300 else error.message[:300] + " …"
    return f"{place}: {message}" if place else message


def _keywords(schema: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yields the keywords of a schema and of all schemas inside it."""
    if depth > _MOST_DEPTH:
        raise ValueError(f"expected a schema of at most {_MOST_DEPTH} levels")
    if isinstance(schema, list):
        for part in schema:
            yield from _keywords(part, depth + 1)
    elif isinstance(schema, Mapping):
        for keyword, value in schema.items():
            yield str(keyword), value
            if keyword in _NAMED and isinstance(value, Mapping):
                yield from _keywords(list(value.values()), depth + 1)
            elif keyword not in _PLAIN:
                yield from _keywords(value, depth + 1)


@lru_cache(maxsize=32)
def _validator(schema: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend
    from referencing import Registry

    ours = {"pattern": _pattern, "patternProperties": _pattern_properties, "uniqueItems": _unique}
    kind = extend(Draft202012Validator, ours)
    return kind(json.loads(schema), registry=Registry())


def _pattern(validator: Any, pattern: str, answer: Any, schema: Any) -> Iterator[Any]:
    """Checks `pattern` by RE2 instead of Python's `re`, which can take exponential time."""
    from jsonschema.exceptions import ValidationError

    if isinstance(answer, str) and not compiled(pattern, ignore_case=False).search(answer):
        yield ValidationError(f"'{answer[:100]}' does not match '{pattern}'")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], answer: Any, schema: Any) -> Iterator[Any]:
    if isinstance(answer, dict):
        for pattern, inner in patterns.items():
            for name, value in answer.items():
                if compiled(pattern, ignore_case=False).search(name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _unique(validator: Any, wanted: bool, answer: Any, schema: Any) -> Iterator[Any]:
    """Checks `uniqueItems` by hashes, because the library compares every item with every other one."""
    from jsonschema.exceptions import ValidationError

    if wanted and isinstance(answer, list) and len({canonical_json(item) for item in answer}) < len(answer):
        yield ValidationError("the list has an item twice")
