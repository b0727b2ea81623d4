"""Encodes responses for the journal: compact JSON that omits fields with default values."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple

from pydantic_core import PydanticSerializationError, to_json

from eval_pipeline.core.model import CallErrorKind, Json, Response, ToolCall, Usage


class FirstAsker(NamedTuple):
    """The suite and model version that first asked for a response.

    Needed to find and remove a model version's responses.

    Attributes:
        suite: empty if unknown (for a batch that was found again).
    """

    suite: str
    model_version: str


_ASKED_BY = "asked_by"
_USAGE = tuple((field.name, field.default) for field in fields(Usage))
_RESPONSE = tuple(
    (field.name, field.default)
    for field in fields(Response)
    if field.name not in {"text", "usage", "metadata", "calls"}
)
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_response(response: Response, asked_by: FirstAsker | None = None) -> bytes:
    """Encodes a response; `decode_response` restores it, and `asker_in` returns `asked_by`."""
    kept: dict[str, Json] = {"text": response.text}
    kept |= {name: value for name, default in _RESPONSE if (value := getattr(response, name)) != default}
    usage = response.usage
    told = {name: value for name, default in _USAGE if (value := getattr(usage, name)) != default}
    if told:
        kept["usage"] = told
    if response.calls:
        kept["calls"] = [call_told(call) for call in response.calls]
    if response.metadata:
        kept["metadata"] = dict(response.metadata)
    if asked_by is not None:
        kept[_ASKED_BY] = asked_by
    try:
        return to_json(kept)
    except PydanticSerializationError:
        # A model may write half of a surrogate pair; a response that was paid for must not be lost because of it.
        return _encode(kept).encode("utf-8", "surrogatepass")


def call_told(call: ToolCall) -> dict[str, Json]:
    """Returns a call of a tool as it is kept, here and in trajectories."""
    told: dict[str, Json] = {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}
    return told | {"malformed": call.malformed} if call.malformed else told


def decode_response(body: bytes) -> Response:
    """Decodes a response encoded by `encode_response`.

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
        if "calls" in kept:
            kept["calls"] = tuple(ToolCall(**call) for call in kept["calls"])
        return Response(usage=Usage(**usage) if usage else Usage(), **kept)
    except TypeError as error:  # a field unknown to this version
        raise ValueError(str(error)) from error


def asker_in(body: bytes) -> FirstAsker | None:
    """Returns who asked for the response in an encoded body; None if an older version wrote it."""
    try:
        suite, model_version = json.loads(body.decode("utf-8", "surrogatepass"))[_ASKED_BY]
    except (KeyError, TypeError, ValueError):
        return None
    return FirstAsker(suite, model_version)
