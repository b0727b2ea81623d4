"""Reads traces of applications: OpenTelemetry spans by the conventions for generative AI and their kin."""

from eval_pipeline.operations.recorded.forms import LogForm

OTLP = LogForm(
    f"{__name__}.conversations:read_otlp",
    "OpenTelemetry traces (OTLP as .json, .jsonl or protobuf, a file or a folder of them)",
    True,
    (("resourceSpans",), ("resource_spans",), ("resourceLogs",), ("resource_logs",)),
    rb"(?s)(?:....)?\x0a[\x80-\xff]*[\x00-\x7f]\x0a",  # resource_spans, and in it the resource
)
