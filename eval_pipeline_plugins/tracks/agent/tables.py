"""Columns and tables of the track."""

from collections.abc import Iterator, Mapping, Sequence

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Attempt, Json
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline_plugins.tracks.agent.checking.foreign import rows_of
from eval_pipeline_plugins.tracks.agent.trajectory import Trajectory

FEATURE_COLUMNS = (
    Column("asks_user", "BOOLEAN", "The user can be asked; never NULL."),
    Column("is_unanswerable", "BOOLEAN", "The right answer is that there is none; never NULL."),
    Column("has_effects", "BOOLEAN", "Only what is changed counts, and no answer; never NULL."),
)
TURN_COLUMNS = (
    Column("world", "VARCHAR", "World that the task is worked on in; never NULL."),
    Column("difficulty", "BIGINT", "The case's `difficulty`, from 0; never NULL."),
    Column("gold_calls", "BIGINT", "Calls of tools in the gold, from 1; never NULL."),
    Column("ended", "VARCHAR", "Why the attempt ended, such as `answered` or a limit; NULL where there is none."),
    Column("agent_answer", "VARCHAR", "The last answer, as JSON where it is no text; NULL where none was given."),
)
WORLDS = Table(
    "agent_worlds",
    "One row per suite and world: what tasks are worked on in.",
    (
        Column("world", "VARCHAR", "Name of the world; never NULL."),
        Column("description", "VARCHAR", "What models are told of it; may be empty, never NULL."),
        Column("databases", "JSON", "Its databases by name, each with its file; never NULL."),
        Column("world_hash", "VARCHAR", "Hash of everything that makes it; never NULL."),
        Column("options", "JSON", "Options of the suite; never NULL."),
    ),
    key="suite",
)
STEPS = Table(
    "steps",
    "One row per call of a model or of a tool in an attempt of the track `agent`.",
    (
        Column("case_id", "VARCHAR", "Case the turn belongs to; never NULL."),
        Column("turn_id", "VARCHAR", "Turn; never NULL."),
        Column("turn_index", "BIGINT", "Position of the turn in its conversation, from 0; never NULL."),
        Column("sample", "BIGINT", "Sample of the attempt, from 0; never NULL."),
        Column("step", "BIGINT", "Place in the attempt, from 0; never NULL."),
        Column("kind", "VARCHAR", "`model` or `tool`; never NULL."),
        Column("tool", "VARCHAR", "Name of the tool; NULL for a call of the model."),
        Column("arguments", "JSON", "Arguments of the tool; NULL for a call of the model."),
        Column("text", "VARCHAR", "What the tool gave, or the model said beside its calls; never NULL.", long=True),
        Column("error_class", "VARCHAR", "Why the tool failed; NULL if it did not."),
        Column("result_rows", "BIGINT", "Rows that the tool gave; NULL where it gave no table or does not tell."),
        Column("result_bytes", "BIGINT", "Bytes of the tool's whole result; NULL where they are not known."),
        Column("is_cut", "BOOLEAN", "The model was told a part of the result only; never NULL."),
        Column("input_tokens", "BIGINT", "Tokens of the model's input; NULL for a tool, and where not reported."),
        Column("output_tokens", "BIGINT", "Tokens of the model's output; NULL for a tool, and where not reported."),
        Column("usd", "DOUBLE", "Dollars of the model's call; NULL for a tool, and where not known."),
        Column("latency_ms", "DOUBLE", "Milliseconds of the call, of whichever kind; NULL where not known."),
    ),
)


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
