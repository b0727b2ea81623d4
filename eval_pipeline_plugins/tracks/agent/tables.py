"""Rows of the track's own table of turns."""

from collections.abc import Iterator, Mapping, Sequence

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Attempt, Json
from eval_pipeline_plugins.tracks.agent.checking.foreign import rows_of
from eval_pipeline_plugins.tracks.agent.trajectory import Trajectory


def step_rows(attempts: Sequence[Attempt[Trajectory]]) -> Iterator[Mapping[str, Json]]:
    """Yields a row of `STEPS` for each step of the last attempt."""
    artefact = attempts[-1].artefact if attempts else None
    for place, step in enumerate(artefact.steps if artefact is not None else ()):
        is_tool, told = step.kind == "tool", step.measured
        seconds = told.get("seconds")
        yield {
            "step": place,
            "kind": step.kind,
            "tool": step.calls[0].name if is_tool else None,
            "arguments": json_text(dict(step.calls[0].arguments)) if is_tool else None,
            "text": step.text,
            "error_class": step.error_class,
            "result_rows": rows_of(step) if is_tool else None,
            "result_bytes": step.size,
            "is_cut": step.cut,
            "input_tokens": told.get("input_tokens"),
            "output_tokens": told.get("output_tokens"),
            "usd": told.get("usd"),
            "latency_ms": told.get("latency_ms") if seconds is None else seconds * 1000,
        }
