"""What the store keeps of turns: everything with a row a turn or finer."""

from collections.abc import Sequence

from eval_pipeline.store.schemas import SIMULATED, Column, Table
from eval_pipeline.store.tables.columns import (
    ANSWER,
    ATTEMPT_COUNT,
    CASE_ID,
    COMPLEXITY,
    CORRECT,
    EXPECTED,
    INPUT_TOKENS,
    LATENCY_MS,
    NUMBER,
    OUTPUT_TOKENS,
    QUESTION,
    SAMPLE,
    TAGS,
    TURN_ID,
    TURN_INDEX,
    USD,
)

ATTEMPTS = Table(
    "attempts",
    "One row a try at a turn: generations (number 0) and recovery attempts.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        NUMBER,
        Column("identity_hash", "VARCHAR", "Identity of the model version that was asked; never NULL."),
        Column("prompt_hash", "VARCHAR", "Which row of `prompts` was sent; never NULL."),
        Column("response", "VARCHAR", "The model's answer, as it came; NULL: the call failed.", long=True),
        Column(
            "reasoning",
            "VARCHAR",
            "What it thought aloud, apart from its answer; NULL: nothing that we know.",
            long=True,
        ),
        Column("artefact", "JSON", "What the response was parsed into; NULL: it could not be, or the call failed."),
        Column("outcome", "VARCHAR", "`ran`, `failed` (not parsed or not executed) or `call_error`; never NULL."),
        Column("result", "JSON", "What executing the artefact gave; NULL: it did not run."),
        Column("error_class", "VARCHAR", "Why it failed, e.g. `column_error`; NULL: it did not fail."),
        Column("error_message", "VARCHAR", "The failure's message; NULL: it did not fail."),
        Column("call_error", "VARCHAR", "Why the call gave no response, e.g. `rate_limited`; NULL: it gave one."),
        Column("stop_reason", "VARCHAR", "The provider's word for why the text ended; NULL: the call failed."),
        Column("input_tokens", "BIGINT", "Tokens sent, cache reads and writes included; NULL: not told."),
        Column("output_tokens", "BIGINT", "Tokens received; NULL: not told."),
        Column("cache_read_tokens", "BIGINT", "Part of `input_tokens` read from a cache; NULL: the call failed."),
        Column("cache_write_tokens", "BIGINT", "Part of `input_tokens` written to a cache; NULL: the call failed."),
        Column("usd", "DOUBLE", "US dollars at the price of the day it was asked; NULL: no price known."),
        Column("latency_ms", "DOUBLE", "Milliseconds of the successful try; NULL: unknown."),
        Column("first_byte_ms", "DOUBLE", "Milliseconds to the first byte of that try; NULL: unknown."),
        Column("retries", "BIGINT", "Tries before that one, from 0; never NULL."),
        Column("asked_on", "VARCHAR", "ISO date of the call; NULL: unknown."),
        Column("batch", "BOOLEAN", "Asked in a batch; NULL: the call failed."),
        Column("sandbox_tier", "VARCHAR", "What the artefact was executed in; NULL: nothing that needs one ran."),
        SIMULATED,
        Column("served_model", "VARCHAR", "Model that answered, in the provider's own words; NULL: not told."),
        Column("system_fingerprint", "VARCHAR", "What the provider says of the system that ran it; NULL: not told."),
        Column("metadata", "JSON", "Provider facts (request id, SDK version, drawn failure mode); NULL: none."),
    ),
    sources=("generations", "recovery_attempts"),
)

PROMPTS = Table(
    "prompts",
    "One row a distinct prompt that any attempt in the store was made with.",
    (
        Column("prompt_hash", "VARCHAR", "SHA-256 of the text, 32 hexadecimal digits; unique, never NULL."),
        Column("text", "VARCHAR", "All messages of the prompt as one text; never NULL.", long=True),
    ),
    key="shared",
    sources=("generation_prompts", "recovery_prompts"),
    unique="prompt_hash",
    referenced_by="attempts",
)

METRICS = Table(
    "metrics",
    "One row a metric of a turn. A metric never run has no row.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        Column("metric", "VARCHAR", "Name of the metric; never NULL."),
        Column("value", "DOUBLE", "0 or 1 for verdicts, 0..1 for scores; 0 with `error`; NULL: not applicable."),
        Column("label", "VARCHAR", "For metrics that name something, e.g. a failure mode; NULL: others."),
        Column("reason", "VARCHAR", "Why the value is what it is; NULL: it speaks for itself."),
        Column("details", "JSON", "Figures behind the value; NULL: none."),
        Column("error", "VARCHAR", "Why the metric itself failed; NULL: it did not."),
        Column("scorer_version", "VARCHAR", "Version of the metric's code that gave the value; never NULL."),
    ),
)

TURN_RESULTS = Table(
    "turn_results",
    "One row a turn and sample with what all tracks share.",
    (
        Column("track", "VARCHAR", "Kind of task; never NULL."),
        TURN_ID,
        CASE_ID,
        Column("cluster", "VARCHAR", "Turns that are not independent share it; never NULL."),
        TURN_INDEX,
        SAMPLE,
        TAGS,
        QUESTION,
        EXPECTED,
        ANSWER,
        CORRECT,
        Column("first_attempt_correct", "BOOLEAN", "The same before any recovery; NULL: the turn could not be scored."),
        Column("score", "DOUBLE", "Graded score of the track, 0..1; NULL: the track has none."),
        Column("outcome", "VARCHAR", "Of the final attempt: `ran`, `failed` or `call_error`; NULL: no attempt made."),
        Column("error_class", "VARCHAR", "Why it failed: error class, `wrong_answer` or `call_error`; NULL: right."),
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        Column("tokens", "BIGINT", "Input and output tokens over all attempts; NULL: not told."),
        USD,
        LATENCY_MS,
        ATTEMPT_COUNT,
        COMPLEXITY,
        SIMULATED,
    ),
)

VALIDATION = Table(
    "validation",
    "One row a turn and sample: what the track's validator said of the first attempt before it ran.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        NUMBER,
        Column("parsed", "BOOLEAN", "The response had the track's answer form; never NULL."),
        Column("verdict", "VARCHAR", "`valid`, `suspicious` (may run) or `invalid` (must fail); never NULL."),
        Column("checks", "JSON", "Check name to what it found; an empty object for none."),
        Column("errors", "JSON", "List of sentences; an empty list for none."),
    ),
)

EVIDENCE = Table(
    "evidence",
    "One row a comparison of a turn's final attempt with the gold.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        Column("kind", "VARCHAR", "What was compared, e.g. `value`; never NULL."),
        Column("verdict", "VARCHAR", "The track's word for the outcome, e.g. `equal`; never NULL."),
        Column("value", "DOUBLE", "Number belonging to the verdict, in the unit of its kind; NULL: none."),
        Column("details", "JSON", "What lets a reader check the verdict; an empty object for none."),
    ),
)

JUDGEMENTS = Table(
    "judgements",
    "One row a turn and sample whose final answer was to be compared with the gold by an LLM judge.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        Column("generated", "VARCHAR", "What the model wrote; empty where it wrote nothing."),
        Column("expected", "VARCHAR", "The accepted answer that it was compared with; never NULL."),
        Column("value", "DOUBLE", "1 same meaning, 0.5 partly, 0 wrong, and 0 with `error`; NULL: not judged."),
        Column("choice", "VARCHAR", "The judge's own word; NULL: it was not asked, or gave none."),
        Column("reason", "VARCHAR", "The judge's reasoning, or why it was not asked; NULL: it failed."),
        Column("error", "VARCHAR", "Why the judge failed, e.g. `LLM judge timeout`; NULL: it did not."),
        Column("trace", "VARCHAR", "Stack trace of that failure; NULL: none."),
        Column("model", "VARCHAR", "Who judged, `provider/model`; NULL: nobody was asked."),
        Column("prompt_version", "VARCHAR", "Version of the question to the judge; NULL: nobody was asked."),
        Column("asked", "BOOLEAN", "The judge was asked, or its cache answered; never NULL."),
        Column("cached", "BOOLEAN", "A judgement made before was used, or one call served equal pairs; never NULL."),
        Column("input_tokens", "BIGINT", "Tokens sent to the judge, not part of the model's; NULL: none, or not told."),
        Column("output_tokens", "BIGINT", "Tokens that the judge wrote; NULL: none, or not told."),
        Column("usd", "DOUBLE", "US dollars of this call, not part of the model's; NULL: none, or no price known."),
        Column("latency_ms", "DOUBLE", "Milliseconds until the judgement was there; NULL: nobody was asked."),
    ),
)

JUDGE_REPEATS = Table(
    "judge_repeats",
    "One row an answer of the LLM judge that was asked the same several times (`eval-pipeline rejudge`).",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        Column("repeat", "BIGINT", "Which time it was asked, from 0; never NULL."),
        Column("value", "DOUBLE", "1 same meaning, 0.5 partly, 0 wrong; NULL: it failed."),
        Column("choice", "VARCHAR", "The judge's own word; NULL: it gave none."),
        Column("reason", "VARCHAR", "The judge's reasoning; NULL: it gave none."),
        Column("error", "VARCHAR", "Why the judge failed; NULL: it did not."),
        Column("model", "VARCHAR", "Who judged, `provider/model`; NULL: nobody was asked."),
        Column("prompt_version", "VARCHAR", "Version of the question to the judge; NULL: nobody was asked."),
        Column("input_tokens", "BIGINT", "Tokens sent to the judge; NULL: not told."),
        Column("output_tokens", "BIGINT", "Tokens that the judge wrote; NULL: not told."),
    ),
)

TURN_ERRORS = Table(
    "turn_errors",
    "One row a turn that is not correct, with the context that a person needs to see why.",
    (
        Column("trace_id", "VARCHAR", "`<turn id>@<model version>`; never NULL."),
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        QUESTION,
        Column("expected_answer", "VARCHAR", "The right answer as text; NULL: the track has none."),
        ANSWER,
        Column("error_class", "VARCHAR", "Why it failed: error class, `wrong_answer` or `call_error`; never NULL."),
        Column("error_message", "VARCHAR", "The failure's message, or what was expected and what came; never NULL."),
        Column("failure_mode", "VARCHAR", "The track's name for how a running answer is wrong; NULL: none fits."),
        ATTEMPT_COUNT,
        COMPLEXITY,
        Column("error_context", "JSON", "Everything else worth seeing, by name; an empty object for none.", long=True),
    ),
    sources=("errors",),
)

METRIC_ERRORS = Table(
    "metric_errors",
    "One row a metric that failed itself; its value counts as 0.",
    (
        TURN_ID,
        SAMPLE,
        Column("metric", "VARCHAR", "Name of the metric; never NULL."),
        Column("inputs", "JSON", "The values it was given, by name; NULL: JSON cannot hold them."),
        Column("message", "VARCHAR", "The exception's message; never NULL."),
        Column("stack_trace", "VARCHAR", "Where it was raised; never NULL."),
        Column("at", "TIMESTAMP", "When, UTC; never NULL."),
    ),
)


def track_turns_table(
    track: str,
    feature_columns: Sequence[Column],
    turn_columns: Sequence[Column],
    metric_columns: Sequence[Column],
) -> Table:
    """The table `<track>_turns`: a row a turn and sample, with the track's own columns and a column a metric.

    Args:
        track: name of the track.
        feature_columns: facts of the case or turn.
        turn_columns: what the track adds about what the model did.
        metric_columns: one for each metric of the track.

    Raises:
        ValueError: two columns have the same name, as DuckDB compares names (without regard to case).
    """
    cost = (INPUT_TOKENS, OUTPUT_TOKENS, USD, LATENCY_MS, ATTEMPT_COUNT)
    shared = (TURN_ID, CASE_ID, TURN_INDEX, SAMPLE, QUESTION, EXPECTED, ANSWER, CORRECT)
    columns = (*shared, *feature_columns, *turn_columns, *metric_columns, *cost)
    table = Table(f"{track}_turns", f"One row a turn and sample of the {track} track, with every metric.", columns)
    names = [column.name.casefold() for column in (*table.all_columns, SIMULATED)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{table.name} would have more than one column named {', '.join(twice)}")
    return table


TURN_TABLES = (
    ATTEMPTS,
    PROMPTS,
    METRICS,
    TURN_RESULTS,
    VALIDATION,
    EVIDENCE,
    JUDGEMENTS,
    JUDGE_REPEATS,
    TURN_ERRORS,
    METRIC_ERRORS,
)
