"""Reads spans and events from OTLP files: JSON lines, one JSON document, protobuf whole or length-delimited.

Sources: the OTLP File Exporter specification, opentelemetry-proto 1.45, and the file exporter of the collector, which
writes the length of each protobuf message before it as four bytes, the highest first.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from eval_pipeline.core.errors import InputError, MissingExtraError, Problem
from eval_pipeline.core.ids import without_surrogates
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.foreign import MOST_DOCUMENT_BYTES, lines_of, undecodable, why_unread
from eval_pipeline.core.reading.json_reading import JsonError, parsed_json

_LENGTH = 4
_LOOKED_AT = 4096
_TEXT = 9
"""Lowest byte that texts have; among the first of a message there are lower ones."""
_DEEPEST = 40
"""Values within values of an attribute that are read."""
_SIGNALS = ("resourceSpans", "resourceLogs", "resourceMetrics")
_FIRST_FIELD = 0x0A
"""First byte of a protobuf message with `resource_spans`, its field 1."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a span, or a log record that belongs to one."""

    name: str
    attributes: Mapping[str, Json]
    body: Json = None


@dataclass(frozen=True, slots=True)
class Span:
    """A span, or what log records tell of one: then it has events only.

    Attributes:
        start, end: nanoseconds of Unix; 0 if unknown.
        error: the message of its status if that is an error, which may be empty; None if it is none.
        resource: attributes of the resource, such as `service.name`.
    """

    trace: str
    id: str
    parent: str = ""
    name: str = ""
    start: int = 0
    end: int = 0
    error: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    resource: Mapping[str, Json] = field(default_factory=dict)


def read_spans(source: Path) -> Iterator[Span]:
    """Yields the spans of a file, or of all files of a folder, one export request in memory at a time.

    Raises:
        InputError: the file cannot be read, or is no OTLP; names the line or the byte.
    """
    for path in sorted(one for one in source.iterdir() if one.is_file()) if source.is_dir() else [source]:
        try:
            with path.open("rb") as file:
                first = file.read(_LOOKED_AT)
            is_text = path.suffix == ".gz" or not any(byte < _TEXT for byte in first)
            yield from _of_json(path) if is_text else _of_protobuf(path, first[: _LENGTH + 1])
        except OSError as error:
            raise InputError([Problem(str(path), None, "", f"cannot be read: {why_unread(error)}")]) from error


def _of_json(path: Path) -> Iterator[Span]:
    lines = lines_of(path)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = parsed_json(line.decode(), finite=False)
        except UnicodeDecodeError as error:
            raise InputError([Problem(str(path), number, "", f"is no UTF-8 text: {undecodable(error)}")]) from error
        except JsonError as error:
            if number == 1:  # one document over several lines
                found = _document(path, line, lines)
            else:
                raise InputError([Problem(str(path), number, "", f"is not JSON: {error}")]) from error
        for request in found if isinstance(found, list) else [found]:
            yield from _of_request(request, path, number)


def _document(path: Path, first: bytes, lines: Iterator[bytes]) -> Json:
    pieces, size = [first], len(first)
    for line in lines:
        pieces.append(line)
        size += len(line)
        if size > MOST_DOCUMENT_BYTES:
            told = f"is one JSON document of more than {MOST_DOCUMENT_BYTES:,} bytes; expected a request on each line"
            raise InputError([Problem(str(path), None, "", told)])
    try:
        return parsed_json(b"".join(pieces).decode(), finite=False)
    except (JsonError, UnicodeDecodeError) as error:
        told = f"is neither a JSON document nor JSON lines: {error}"
        raise InputError([Problem(str(path), getattr(error, "line", None), "", told)]) from error


def _of_request(request: Json, path: Path, line: int) -> Iterator[Span]:
    """Yields the spans of a request; a part that has another form than the protocol says is left out."""
    if not isinstance(request, Mapping) or not any(_named(request, name) is not None for name in _SIGNALS):
        told = f"expected an OTLP export request, with one of {', '.join(_SIGNALS)}"
        raise InputError([Problem(str(path), line, "", told)])
    for resource in _list(request, "resourceSpans"):
        shared = _attributes(_named(resource, "resource"))
        for scope in (*_list(resource, "scopeSpans"), *_list(resource, "instrumentationLibrarySpans")):
            for one in _list(scope, "spans"):
                if (span := _span(one, shared)) is not None:
                    yield span
    for resource in _list(request, "resourceLogs"):
        for scope in _list(resource, "scopeLogs"):
            for one in _list(scope, "logRecords"):
                trace, span_id = _id(one, "traceId"), _id(one, "spanId")
                attributes = _attributes(one)
                name = str(_named(one, "eventName") or attributes.get("event.name") or "")
                if trace and span_id and name:
                    event = Event(name, attributes, _value(_named(one, "body")))
                    yield Span(trace, span_id, events=(event,))


def _span(one: Mapping[str, Json], resource: Mapping[str, Json]) -> Span | None:
    trace, span_id = _id(one, "traceId"), _id(one, "spanId")
    if not trace or not span_id:
        return None
    status = _named(one, "status")
    status = status if isinstance(status, Mapping) else {}
    failed = status.get("code") in (2, "2", "STATUS_CODE_ERROR")
    events = tuple(Event(str(_named(event, "name") or ""), _attributes(event)) for event in _list(one, "events"))
    return Span(
        trace,
        span_id,
        _id(one, "parentSpanId"),
        str(_named(one, "name") or ""),
        _whole(_named(one, "startTimeUnixNano")),
        _whole(_named(one, "endTimeUnixNano")),
        str(status.get("message") or "") if failed else None,
        _attributes(one),
        events,
        resource,
    )


def _named(found: Json, name: str) -> Json:
    """Returns a field by its JSON name or its name in the protocol: `traceId` or `trace_id`."""
    if not isinstance(found, Mapping):
        return None
    if name in found:
        return found[name]
    return found.get("".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name))


def _list(found: Json, name: str) -> list[Mapping[str, Json]]:
    told = _named(found, name)
    return [one for one in told if isinstance(one, Mapping)] if isinstance(told, list) else []


def _id(one: Mapping[str, Json], name: str) -> str:
    """Returns an id in hexadecimal; some writers have it in base 64, as protobuf's own JSON does."""
    told = _named(one, name)
    if not isinstance(told, str) or not told.strip("0"):
        return ""
    if len(told) in (24, 12) and (told.endswith("=") or len(told) == 12):
        try:
            return base64.b64decode(told, validate=True).hex()
        except ValueError:
            return told
    return told.lower()


def _whole(told: Json) -> int:
    try:
        found = int(told)
    except (TypeError, ValueError, OverflowError):
        return 0
    return found if 0 <= found < 1 << 64 else 0


def _attributes(found: Json) -> dict[str, Json]:
    told = _list(found, "attributes")
    return {str(_named(one, "key")): _value(_named(one, "value")) for one in told if _named(one, "key")}


def _value(told: Json, depth: int = 0) -> Json:
    """Returns an `AnyValue` as plain JSON."""
    if not isinstance(told, Mapping) or depth > _DEEPEST:
        return told if isinstance(told, str | int | float | bool) else None
    for name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if (value := _named(told, name)) is not None:
            return without_surrogates(value) if isinstance(value, str) else value
    if (value := _named(told, "intValue")) is not None:
        try:
            return int(value)
        except (TypeError, ValueError):
            return None
    if (value := _named(told, "arrayValue")) is not None:
        return [_value(one, depth + 1) for one in _list(value, "values")]
    if (value := _named(told, "kvlistValue")) is not None:
        pairs = _list(value, "values")
        return {str(_named(one, "key")): _value(_named(one, "value"), depth + 1) for one in pairs}
    return None


def _of_protobuf(path: Path, first: bytes) -> Iterator[Span]:
    """Yields the spans of a protobuf file: one message, or messages with their lengths before them."""
    size = path.stat().st_size
    length = int.from_bytes(first[:_LENGTH], "big")
    delimited = length > 0 and (length <= size - _LENGTH or not first[0]) and first[_LENGTH:] == bytes([_FIRST_FIELD])
    if not delimited and first[0] != _FIRST_FIELD:
        raise InputError([Problem(str(path), None, "", "is neither OTLP as JSON nor as protobuf")])
    if not delimited and size > MOST_DOCUMENT_BYTES:
        told = f"is one protobuf message of {size:,} bytes; expected at most {MOST_DOCUMENT_BYTES:,}"
        raise InputError([Problem(str(path), None, "", told)])
    with path.open("rb") as file:
        if not delimited:
            yield from _of_message(file.read(), path, 0)
            return
        while head := file.read(_LENGTH):
            at = file.tell() - len(head)
            yield from _of_message(_next(file, head, path, at), path, at)


def _next(file: IO[bytes], head: bytes, path: Path, at: int) -> bytes:
    length = int.from_bytes(head, "big")
    if len(head) == _LENGTH and length <= MOST_DOCUMENT_BYTES:
        message = file.read(length)
        if len(message) == length:
            return message
    raise InputError([Problem(str(path), None, "", f"is cut off or damaged in the message at byte {at:,}")])


def _of_message(message: bytes, path: Path, at: int) -> Iterator[Span]:
    try:
        from google.protobuf.json_format import MessageToJson
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as error:
        raise MissingExtraError(
            "OTLP as protobuf needs opentelemetry-proto: pip install 'eval-pipeline[traces]'"
        ) from error
    for kind, holds in ((ExportTraceServiceRequest, _has_spans), (ExportLogsServiceRequest, _has_logs)):
        try:
            read: Any = kind.FromString(message)
        except DecodeError as error:
            told = f"is cut off or damaged in the message at byte {at:,}: {error}"
            raise InputError([Problem(str(path), None, "", told)]) from error
        if holds(read) or not message:
            yield from _of_request(json.loads(MessageToJson(read)), path, 0) if message else ()
            return
    raise InputError([Problem(str(path), None, "", f"the message at byte {at:,} has neither spans nor logs")])


def _has_spans(read: Any) -> bool:
    return any(one.span_id for resource in read.resource_spans for scope in resource.scope_spans for one in scope.spans)


def _has_logs(read: Any) -> bool:
    return any(scope.log_records for resource in read.resource_logs for scope in resource.scope_logs)
