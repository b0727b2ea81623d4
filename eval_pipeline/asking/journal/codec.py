"""Responses as the journal keeps them: compact JSON, fields at their defaults left out."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple

from pydantic_core import PydanticSerializationError, to_json

from eval_pipeline.core.model import CallErrorKind, Json, Response, Usage


class Asker(NamedTuple):
    """Who asked first for a response, so that what a model version was told can be found again and removed.

    Attributes:
        suite: empty where it is not known (a batch that was found again).
    """

    suite: str
    model_version: str


_ASKED_BY = "asked_by"
_USAGE = tuple((field.name, field.default) for field in fields(Usage))
_RESPONSE = tuple(
    (field.name, field.default) for field in fields(Response) if field.name not in {"text", "usage", "metadata"}
)
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_response(response: Response, asked_by: Asker | None = None) -> bytes:
    """The response as bytes; `decode_response` gives an equal one back, `asker_in` who asked for it."""
    kept: dict[str, Json] = {"text": response.text}
    kept |= {name: value for name, default in _RESPONSE if (value := getattr(response, name)) != default}
    usage = response.usage
    told = {name: value for name, default in _USAGE if (value := getattr(usage, name)) != default}
    if told:
        kept["usage"] = told
    if response.metadata:
        kept["metadata"] = dict(response.metadata)
    if asked_by is not None:
        kept[_ASKED_BY] = asked_by
    try:
        return to_json(kept)
    except PydanticSerializationError:
        # A model may give half of a surrogate pair: what was paid for must not be lost over that.
        return _encode(kept).encode("utf-8", "surrogatepass")


def decode_response(body: bytes) -> Response:
    """The response in a body of `encode_response`.

    Raises:
        ValueError: the bytes are something else.
    """
    kept = json.loads(body.decode("utf-8", "surrogatepass"))
    if not isinstance(kept, dict) or not isinstance(kept.get("text"), str):
        raise ValueError("not an encoded response")
    kept.pop(_ASKED_BY, None)
    usage = kept.pop("usage", None)
    if usage is not None and not isinstance(usage, Mapping):
        raise ValueError("not an encoded response")
    try:
        if "call_error" in kept:
            kept["call_error"] = CallErrorKind(kept["call_error"])
        return Response(usage=Usage(**usage) if usage else Usage(), **kept)
    except TypeError as error:  # a field that this version does not know
        raise ValueError(str(error)) from error


def asker_in(body: bytes) -> Asker | None:
    """Who asked for the response in a body of `encode_response`; None where an older version wrote it."""
    try:
        suite, model_version = json.loads(body.decode("utf-8", "surrogatepass"))[_ASKED_BY]
    except (KeyError, TypeError, ValueError):
        return None
    return Asker(suite, model_version)
