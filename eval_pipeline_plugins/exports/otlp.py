"""Exports the scores of an evaluation as events of OpenTelemetry, in files of OTLP/JSON.

Each score is an event `gen_ai.evaluation.result` on the span in which the model answered. Answers from a trace
keep its ids; the others get a span of their own, in a file of its own, as such a file has one type of data.

Source: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md,
https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/ and opentelemetry/proto/logs/v1/logs.proto
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from eval_pipeline import __version__
from eval_pipeline.core.ids import json_hash, json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.provenance import PROVENANCE, UNKNOWN
from eval_pipeline.providers.standins.recorded import NAME as RECORDED
from eval_pipeline.providers.standins.recorded import SOURCE
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.traces import traces
from eval_pipeline_plugins.exports.origins import asked_with, model_of, scores_of

EVENT = "gen_ai.evaluation.result"
_PER_MILLISECOND = 1_000_000
_CLIENT, _ERROR = 3, 2
"""SPAN_KIND_CLIENT and STATUS_CODE_ERROR."""
_REQUEST = ("temperature", "top_p", "top_k", "max_tokens", "seed")


def write_otlp(evaluation: Evaluation, events: Path, spans: Path) -> tuple[int, int]:
    """Writes the events and, if there are any, spans of our own; a line has those of one conversation.

    Returns:
        How many events and spans were written.

    Raises:
        UsageError: the record lacks a table of the evaluation.
    """
    resource = {"attributes": _attributes(_resource(evaluation))}
    scope = {"name": "eval_pipeline", "version": __version__}
    scored = made = 0
    spans.unlink(missing_ok=True)
    with events.open("w", encoding="utf-8") as logs:
        for _, trace in traces(evaluation):
            records = [record for turn in trace["turns"] for record in _events(evaluation, turn)]
            own = [_span(evaluation, trace, turn) for turn in trace["turns"] if not _origin(turn)]
            if records:
                scoped = {"scope": scope, "logRecords": records}
                logs.write(json_text({"resourceLogs": [{"resource": resource, "scopeLogs": [scoped]}]}) + "\n")
            if own:
                told = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": own}]}]}
                with spans.open("a", encoding="utf-8") as file:
                    file.write(json_text(told) + "\n")
            scored, made = scored + len(records), made + len(own)
    return scored, made


def _resource(evaluation: Evaluation) -> dict[str, Json]:
    place, suite = evaluation.partition, evaluation.suite
    return {
        "service.name": "eval-pipeline",
        "service.version": __version__,
        "eval_pipeline.suite": place.suite,
        "eval_pipeline.suite.version": suite["version"],
        "eval_pipeline.suite.content_hash": suite["content_hash"],
        "eval_pipeline.model_version": place.model_version,
        "eval_pipeline.eval_date": place.eval_date.isoformat(),
        "eval_pipeline.simulated": evaluation.simulated,
    }


def _events(evaluation: Evaluation, turn: Row) -> Iterator[dict[str, Any]]:
    moment = _nanoseconds(evaluation.partition.eval_date)
    ids = _ids(evaluation, turn)
    for score in scores_of(evaluation, turn):
        told = {
            "gen_ai.evaluation.name": score.name,
            "gen_ai.evaluation.score.value": None if score.value is None else float(score.value),
            "gen_ai.evaluation.score.label": score.label,
            "gen_ai.evaluation.explanation": score.explanation,
            "error.type": "metric_error" if score.failed else None,
            "gen_ai.conversation.id": turn["turn_id"].rpartition("#")[0],
            "eval_pipeline.turn_id": turn["turn_id"],
            "eval_pipeline.sample": turn["sample"],
            "eval_pipeline.scorer_version": score.version,
        }
        yield {
            "timeUnixNano": moment,
            "observedTimeUnixNano": moment,
            "eventName": EVENT,
            "attributes": _attributes(told),
            **ids,
        }


def _span(evaluation: Evaluation, trace: Row, turn: Row) -> dict[str, Any]:
    """Returns a span for a turn; the record knows the day on which it was asked, not the time."""
    attempts: Sequence[Row] = turn["attempts"]
    last: Mapping[str, Any] = attempts[-1] if attempts else {}
    told = last.get("asked_on") or last.get(PROVENANCE, {}).get("asked_on")
    start = _nanoseconds(evaluation.partition.eval_date if told in {None, UNKNOWN} else date.fromisoformat(told))
    provider, model = model_of(evaluation)
    sampling, stopped = asked_with(evaluation), last.get("stop_reason")
    found: dict[str, Json] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.response.model": last.get("served_model"),
        "gen_ai.response.id": (last.get("metadata") or {}).get("request_id"),
        "gen_ai.response.finish_reasons": [stopped] if stopped and stopped != RECORDED else None,
        "gen_ai.usage.input_tokens": turn["input_tokens"] or None,
        "gen_ai.usage.output_tokens": turn["output_tokens"] or None,
        "gen_ai.conversation.id": turn["turn_id"].rpartition("#")[0],
        "error.type": last.get("call_error"),
        "eval_pipeline.turn_id": turn["turn_id"],
        "eval_pipeline.case_id": trace["conversation_id"],
        "eval_pipeline.sample": turn["sample"],
        "eval_pipeline.attempts": len(attempts),
        "eval_pipeline.usd": turn["usd"],
    }
    found |= {f"gen_ai.request.{name}": sampling[name] for name in _REQUEST if sampling.get(name) is not None}
    return {
        **_ids(evaluation, turn),
        "name": f"chat {model}",
        "kind": _CLIENT,
        "startTimeUnixNano": start,
        "endTimeUnixNano": str(int(start) + round((turn["latency_ms"] or 0) * _PER_MILLISECOND)),
        "attributes": _attributes(found),
        "status": {"code": _ERROR, "message": last.get("error_message") or ""} if last.get("call_error") else {},
    }


def _origin(turn: Row) -> dict[str, str]:
    """Returns the ids of the span from which an answer was imported, as OTLP names them; empty if there is none."""
    told = ((turn["attempts"][-1]["metadata"] or {}) if turn["attempts"] else {}).get(SOURCE) or {}
    found = {"traceId": told.get("trace_id"), "spanId": told.get("span_id")}
    return {name: value for name, value in found.items() if value} if found["traceId"] else {}


def _ids(evaluation: Evaluation, turn: Row) -> dict[str, str]:
    """Returns the ids of an answer's span: those of its origin, or such that all turns of a case are one trace."""
    place = evaluation.partition
    whose = [place.suite, place.model_version, place.eval_date.isoformat(), place.evaluation, turn["sample"]]
    own = {
        "traceId": json_hash([*whose, turn["turn_id"].rpartition("#")[0]]),
        "spanId": json_hash([*whose, turn["turn_id"]])[:16],
    }
    return _origin(turn) or own


def _nanoseconds(day: date) -> str:
    """Returns the beginning of a day, as OTLP/JSON writes 64 bits."""
    return str(int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000_000)


def _attributes(told: Mapping[str, Json]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in told.items() if value is not None]


def _value(value: Json) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}
