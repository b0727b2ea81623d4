"""The track `agent`: tasks that are worked on with tools, in a world of files and databases (docs/agent.md)."""

from collections.abc import Mapping

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.tracks.manifest import Manifest
from eval_pipeline.tracks.metric import Metric

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
_NOT_CHECKED = "NULL where the case does not check it, or nothing came of the attempt."
METRICS: tuple[Metric, ...] = (
    Metric(
        "task_correct",
        Later("eval_pipeline_plugins.tracks.agent.metrics:task_correct"),
        "boolean",
        "All checks are passed; NULL where nobody can judge that.",
    ),
    Metric(
        "checks_passed",
        Later("eval_pipeline_plugins.tracks.agent.metrics:checks_passed"),
        "score",
        "Share of checks passed by weight, 0..1; NULL where nobody can judge that.",
    ),
    Metric(
        "answer_correct",
        Later("eval_pipeline_plugins.tracks.agent.metrics:answer_correct"),
        "boolean",
        f"The answer is right. {_NOT_CHECKED}",
    ),
    Metric(
        "state_correct",
        Later("eval_pipeline_plugins.tracks.agent.metrics:state_correct"),
        "boolean",
        f"The end state is that of the gold. {_NOT_CHECKED}",
    ),
    Metric(
        "queries_hold",
        Later("eval_pipeline_plugins.tracks.agent.metrics:queries_hold"),
        "boolean",
        f"Queries give in the end what they have to, and commands succeed. {_NOT_CHECKED}",
    ),
    Metric(
        "rules_kept",
        Later("eval_pipeline_plugins.tracks.agent.metrics:rules_kept"),
        "boolean",
        f"Nothing forbidden was tried or done. {_NOT_CHECKED}",
    ),
    Metric(
        "failure_mode",
        Later("eval_pipeline_plugins.tracks.agent.metrics:failure_mode"),
        "label",
        "Why the attempt is wrong, first that applies; `harness`: its world failed; NULL: it is right, or not judged.",
    ),
    Metric(
        "first_wrong_step",
        Later("eval_pipeline_plugins.tracks.agent.metrics:first_wrong_step"),
        "count",
        "Place in `steps` of the step that left every way to the gold, from 0; NULL where it is correct or untold.",
    ),
    Metric(
        "never_looked",
        Later("eval_pipeline_plugins.tracks.agent.metrics:never_looked"),
        "count",
        "Tables, files and facts of the user that the gold reads and the attempt never did; NULL without a result.",
    ),
    Metric(
        "model_calls",
        Later("eval_pipeline_plugins.tracks.agent.metrics:model_calls"),
        "count",
        "Calls of the model, from 0; NULL where they are not on record.",
    ),
    Metric(
        "tool_calls",
        Later("eval_pipeline_plugins.tracks.agent.metrics:tool_calls"),
        "count",
        "Calls of tools, from 0; never NULL.",
    ),
    Metric(
        "tool_errors",
        Later("eval_pipeline_plugins.tracks.agent.metrics:tool_errors"),
        "count",
        "Calls of tools that failed, from 0; never NULL.",
    ),
    Metric(
        "recovered_errors",
        Later("eval_pipeline_plugins.tracks.agent.metrics:recovered_errors"),
        "count",
        "Failed calls after which the tool succeeded, from 0; never NULL.",
    ),
    Metric(
        "rows_scanned",
        Later("eval_pipeline_plugins.tracks.agent.metrics:rows_scanned"),
        "count",
        "Rows that calls of tools gave, from 0; NULL where not told.",
    ),
    Metric(
        "repeated_calls",
        Later("eval_pipeline_plugins.tracks.agent.metrics:repeated_calls"),
        "count",
        "Calls made before that gave the same, from 0; never NULL.",
    ),
)
"""In the order of computation: a metric can use the values of those before it."""
DAMAGES = ("gave_up", "out_of_budget", "forbidden", "side_effect", "not_done", "invented", "wrong_state")
"""Those that `damage` can make of any gold."""


class AgentManifest(Manifest):
    """Its names, columns and tables."""

    name = "agent"
    task = "eval_pipeline_plugins.tracks.agent.track:TRACK"
    reason_tells_difference: bool = True
    metrics: tuple[Metric, ...] = METRICS
    feature_columns: tuple[Column, ...] = FEATURE_COLUMNS
    turn_columns: tuple[Column, ...] = TURN_COLUMNS
    error_columns: tuple[str, ...] = ("world", "ended")
    suite_tables: tuple[Table, ...] = (WORLDS,)
    turn_tables: tuple[Table, ...] = (STEPS,)
    prompt_versions: tuple[str, ...] = ("agent-1",)
    complexity_columns: Mapping[str, str] = {"gold_calls": "gold_calls", "difficulty": "difficulty"}
    failure_modes: tuple[str, ...] = DAMAGES


MANIFEST = AgentManifest()
