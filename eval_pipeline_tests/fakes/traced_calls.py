"""Asks fake endpoints through instrumented SDKs, and writes what OpenTelemetry tells of it as OTLP.

It runs in an interpreter of its own, which has the SDKs, and imports nothing of the project:
`python traced_calls.py INSTRUMENTATION BASE_URL KEY FOLDER`. The folder gets `traces.jsonl`, `traces.binpb`
(length-delimited, as the collector writes) and, where there are events, `logs.jsonl`.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

QUESTIONS = ("What is the capital of France?", "And of Spain?")
LATEST = {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SETTINGS: dict[str, dict[str, str]] = {
    "openai-v2": LATEST | {CAPTURE: "SPAN_ONLY"},
    "openai-v2-silent": LATEST,
    "openai-v2-events": {CAPTURE: "true"},
    "openai-traceloop": {"TRACELOOP_TRACE_CONTENT": "true"},
    "openai-openinference": {},
    "anthropic-traceloop": {"TRACELOOP_TRACE_CONTENT": "true"},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


INSTRUMENTORS = {
    "openai-v2": ("opentelemetry.instrumentation.openai_v2", "OpenAIInstrumentor"),
    "openai-traceloop": ("opentelemetry.instrumentation.openai", "OpenAIInstrumentor"),
    "openai-openinference": ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
    "anthropic-traceloop": ("opentelemetry.instrumentation.anthropic", "AnthropicInstrumentor"),
}


def instrument(name: str) -> None:
    """Instruments the SDK that the instrumentation is for."""
    module, made = next(place for begin, place in INSTRUMENTORS.items() if name.startswith(begin))
    getattr(import_module(module), made)().instrument()


def conversation(ask: Any, tracer: Any) -> None:
    """Two turns of a conversation, in a trace each."""
    messages: list[dict[str, Any]] = []
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        with tracer.start_as_current_span("POST /chat", attributes={"session.id": "talk-1", "http.route": "/chat"}):
            messages.append({"role": "assistant", "content": ask(messages)})


def ask_openai(url: str, key: str, tracer: Any) -> None:
    """The conversation; a question that a tool answers; and an error, where the fake has one in its script."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)

    def ask(messages: list[dict[str, Any]]) -> str:
        answer = client.chat.completions.create(
            model="m", messages=[{"role": "system", "content": "Be brief."}, *messages], temperature=0.0
        )
        return answer.choices[0].message.content or ""

    conversation(ask, tracer)
    with tracer.start_as_current_span("weather agent"):
        asked: list[Any] = [{"role": "user", "content": "What is the weather in Oslo? Write to ola@example.org."}]
        first = client.chat.completions.create(model="m", messages=asked, tools=TOOLS).choices[0].message
        for call in first.tool_calls or ():
            asked += [first.model_dump(exclude_none=True)]
            asked += [{"role": "tool", "tool_call_id": call.id, "content": "3 degrees, rain"}]
        client.chat.completions.create(model="m", messages=asked, tools=TOOLS)
    try:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "What is 6 times 7?"}])
    except openai.APIError as error:
        print(f"told: {type(error).__name__}", file=sys.stderr)


def ask_anthropic(url: str, key: str, tracer: Any) -> None:
    """The conversation."""
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)

    def ask(messages: list[dict[str, Any]]) -> str:
        answer: Any = client.messages.create(model="claude-fake", max_tokens=50, system="Be brief.", messages=messages)
        return "".join(part.text for part in answer.content)

    conversation(ask, tracer)


def main() -> None:
    """Instruments, asks, and writes the files."""
    name, url, key, folder = sys.argv[1:]
    os.environ.update(SETTINGS[name])
    from google.protobuf.json_format import MessageToDict
    from opentelemetry import _logs, trace
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk import _logs as sdk_logs
    from opentelemetry.sdk._logs import export as log_export
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    resource = Resource.create({"service.name": "fake-service"})
    spans, provider = InMemorySpanExporter(), TracerProvider(resource=resource)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    logs, logger = log_export.InMemoryLogRecordExporter(), sdk_logs.LoggerProvider(resource=resource)
    logger.add_log_record_processor(log_export.SimpleLogRecordProcessor(logs))
    _logs.set_logger_provider(logger)
    instrument(name)
    tracer = trace.get_tracer("app")
    (ask_anthropic if name.startswith("anthropic") else ask_openai)(url, key, tracer)
    told = [encode_spans([span]) for span in spans.get_finished_spans()]
    out = Path(folder)
    out.joinpath("traces.jsonl").write_text("".join(_line(MessageToDict(one)) for one in told))
    out.joinpath("traces.binpb").write_bytes(b"".join(_delimited(one.SerializeToString()) for one in told))
    if events := logs.get_finished_logs():
        out.joinpath("logs.jsonl").write_text("".join(_line(MessageToDict(encode_logs([one]))) for one in events))


def _line(message: dict[str, Any]) -> str:
    """A message of OTLP as JSON, whose ids are in hexadecimal and not, as in other messages, in base 64."""
    import base64

    def fixed(value: Any) -> Any:
        if isinstance(value, list):
            return [fixed(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            key: base64.b64decode(one).hex() if key in {"traceId", "spanId", "parentSpanId"} else fixed(one)
            for key, one in value.items()
        }

    return json.dumps(fixed(message)) + "\n"


def _delimited(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message


if __name__ == "__main__":
    main()
