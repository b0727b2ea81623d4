"""Tables with one row per turn or finer."""

from collections.abc import Sequence

from eval_pipeline.store.schemas import (
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
    SIMULATED,
    TAGS,
    TURN_ID,
    TURN_INDEX,
    USD,
    Column,
    Table,
)

ATTEMPTS = Table(
    "attempts",
    "One row per attempt at a turn: first attempts (number 0) and recovery attempts.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        NUMBER,
        Column("identity_hash", "VARCHAR", "Hash of the settings of the model version that was asked; never NULL."),
        Column("prompt_hash", "VARCHAR", "Row of `prompts` with the prompt that was sent; never NULL."),
        Column("response", "VARCHAR", "The model's answer, unchanged; NULL: the call failed.", long=True),
        Column(
            "reasoning",
            "VARCHAR",
            "Its reasoning, separate from the answer; NULL: none is known.",
            long=True,
        ),
        Column("artefact", "JSON", "The parsed response; NULL: it could not be parsed, or the call failed.", long=True),
        Column("outcome", "VARCHAR", "`ran`, `failed` (not parsed or not executed) or `call_error`; never NULL."),
        Column("result", "JSON", "Result of executing the artefact; NULL: it did not run."),
        Column("error_class", "VARCHAR", "Why it failed, e.g. `column_error`; NULL: it did not fail."),
        Column("error_message", "VARCHAR", "The failure's message; NULL: it did not fail."),
        Column("call_error", "VARCHAR", "Why the call gave no response, e.g. `rate_limited`; NULL: it gave one."),
        Column("stop_reason", "VARCHAR", "Why the text ended, as the provider calls it; NULL: the call failed."),
        Column("input_tokens", "BIGINT", "Tokens sent, including cache reads and writes; NULL: not reported."),
        Column("output_tokens", "BIGINT", "Tokens received; NULL: not reported."),
        Column("cache_read_tokens", "BIGINT", "Part of `input_tokens` read from a cache; NULL: the call failed."),
        Column("cache_write_tokens", "BIGINT", "Part of `input_tokens` written to a cache; NULL: the call failed."),
        Column("usd", "DOUBLE", "US dollars at the price of the day of the call; NULL: no known price."),
        Column("latency_ms", "DOUBLE", "Milliseconds of the successful call; NULL: unknown."),
        Column("first_byte_ms", "DOUBLE", "Milliseconds to the first byte of that call; NULL: unknown."),
        Column("retries", "BIGINT", "Failed calls before that one, from 0; never NULL."),
        Column("asked_on", "VARCHAR", "ISO date of the call; NULL: unknown."),
        Column("batch", "BOOLEAN", "Asked in a batch; NULL: the call failed."),
        Column(
            "sandbox_tier", "VARCHAR", "Kind of sandbox in which the artefact ran; NULL: nothing ran that needs one."
        ),
        SIMULATED,
        Column("served_model", "VARCHAR", "Model that answered, as the provider names it; NULL: not reported."),
        Column(
            "system_fingerprint", "VARCHAR", "The provider's fingerprint of the system that ran it; NULL: not reported."
        ),
        Column("metadata", "JSON", "Provider facts (request id, SDK version, drawn failure mode); NULL: none."),
    ),
    sources=("generations", "recovery_attempts"),
)

PROMPTS = Table(
    "prompts",
    "One row per distinct prompt of the attempts in the store.",
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
    "One row per metric of a turn. A metric that was not run has no row.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        Column("metric", "VARCHAR", "Name of the metric; never NULL."),
        Column("value", "DOUBLE", "0 or 1 for verdicts, 0..1 for scores; 0 with `error`; NULL: not applicable."),
        Column("label", "VARCHAR", "Value of metrics that give a name, e.g. a failure mode; NULL: other metrics."),
        Column("reason", "VARCHAR", "Explanation of the value; NULL: it needs none."),
        Column("details", "JSON", "Figures behind the value; NULL: none."),
        Column("error", "VARCHAR", "Why the metric itself failed; NULL: it did not."),
        Column("scorer_version", "VARCHAR", "Version of the metric's code that gave the value; never NULL."),
    ),
)

TURN_RESULTS = Table(
    "turn_results",
    "One row per turn and sample, with the columns that all tracks share.",
    (
        Column("track", "VARCHAR", "Kind of task; never NULL."),
        TURN_ID,
        CASE_ID,
        Column("cluster", "VARCHAR", "Name of the group of turns that are not independent of each other; never NULL."),
        TURN_INDEX,
        SAMPLE,
        TAGS,
        QUESTION,
        EXPECTED,
        ANSWER,
        CORRECT,
        Column(
            "first_attempt_correct", "BOOLEAN", "The same for the first attempt; NULL: the turn could not be scored."
        ),
        Column(
            "score",
            "DOUBLE",
            "Graded score of the track, 0..1; NULL: the track has none, or the turn could not be scored.",
        ),
        Column(
            "outcome",
            "VARCHAR",
            "Outcome of the final attempt: `ran`, `failed` or `call_error`; NULL: no attempt made.",
        ),
        Column(
            "error_class",
            "VARCHAR",
            "Why it failed: error class, `wrong_answer` or `call_error`; NULL: right, or not scored.",
        ),
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        Column("tokens", "BIGINT", "Input and output tokens of all attempts; NULL: not reported."),
        USD,
        LATENCY_MS,
        ATTEMPT_COUNT,
        COMPLEXITY,
        SIMULATED,
        Column(
            "gold_drifted",
            "BOOLEAN",
            "The gold gave another result beside the answer than when the suite was read; NULL: it was not executed.",
        ),
    ),
)

VALIDATION = Table(
    "validation",
    "One row per turn and sample: what the track's validator reported about the first attempt before it ran.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        NUMBER,
        Column("parsed", "BOOLEAN", "The response had the track's answer form; never NULL."),
        Column("verdict", "VARCHAR", "`valid`, `suspicious` (may run) or `invalid` (must fail); never NULL."),
        Column("checks", "JSON", "Findings by name of the check; an empty object for none."),
        Column("errors", "JSON", "Errors as a list of sentences; an empty list for none."),
    ),
)

EVIDENCE = Table(
    "evidence",
    "One row per comparison of a turn's final attempt with the gold.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        Column("kind", "VARCHAR", "What was compared, e.g. `value`; never NULL."),
        Column("verdict", "VARCHAR", "The track's word for the outcome, e.g. `equal`; never NULL."),
        Column("value", "DOUBLE", "Number that belongs to the verdict, in the unit of its kind; NULL: none."),
        Column("details", "JSON", "Details with which a reader can check the verdict; an empty object for none."),
    ),
    sources=("evidence", "measured_evidence"),
)
"""The record keeps measured times apart, so that the hash of all other evidence does not change with them."""

JUDGEMENTS = Table(
    "judgements",
    "One row per turn and sample whose final answer an LLM judge compares with the gold.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        Column("generated", "VARCHAR", "The model's answer; empty where it gave none."),
        Column("expected", "VARCHAR", "The accepted answer with which it is compared; never NULL."),
        Column("value", "DOUBLE", "1 same meaning, 0.5 partly, 0 wrong, and 0 with `error`; NULL: not judged."),
        Column("choice", "VARCHAR", "The judge's own word; NULL: it was not asked, or gave none."),
        Column("reason", "VARCHAR", "The judge's reasoning, or why it was not asked; NULL: it failed."),
        Column("error", "VARCHAR", "Why the judge failed, e.g. `LLM judge timeout`; NULL: it did not."),
        Column("trace", "VARCHAR", "Stack trace of that failure; NULL: none."),
        Column("model", "VARCHAR", "The judging model, `provider/model`; NULL: the judge was not asked."),
        Column("prompt_version", "VARCHAR", "Version of the question to the judge; NULL: the judge was not asked."),
        Column("asked", "BOOLEAN", "true: the judge was asked, or its cache answered; never NULL."),
        Column("cached", "BOOLEAN", "true: an earlier judgement was used, or one call served equal pairs; never NULL."),
        Column(
            "input_tokens",
            "BIGINT",
            "Tokens sent to the judge, not included in the model's; NULL: none, or not reported.",
        ),
        Column("output_tokens", "BIGINT", "Tokens that the judge wrote; NULL: none, or not reported."),
        Column("usd", "DOUBLE", "US dollars of this call, not included in the model's; NULL: none, or no known price."),
        Column("latency_ms", "DOUBLE", "Milliseconds until the judge answered; NULL: the judge was not asked."),
    ),
)

JUDGE_REPEATS = Table(
    "judge_repeats",
    "One row per answer of an LLM judge that was asked the same question several times (`eval-pipeline rejudge`).",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        SAMPLE,
        Column("repeat", "BIGINT", "Number of the repetition, from 0; never NULL."),
        Column("value", "DOUBLE", "1 same meaning, 0.5 partly, 0 wrong; NULL: it failed."),
        Column("choice", "VARCHAR", "The judge's own word; NULL: it gave none."),
        Column("reason", "VARCHAR", "The judge's reasoning; NULL: it gave none."),
        Column("error", "VARCHAR", "Why the judge failed; NULL: it did not."),
        Column("model", "VARCHAR", "The judging model, `provider/model`; NULL: the judge was not asked."),
        Column("prompt_version", "VARCHAR", "Version of the question to the judge; NULL: the judge was not asked."),
        Column("input_tokens", "BIGINT", "Tokens sent to the judge; NULL: not reported."),
        Column("output_tokens", "BIGINT", "Tokens that the judge wrote; NULL: not reported."),
    ),
)

TURN_ERRORS = Table(
    "turn_errors",
    "One row per turn that is not correct, with the context that a person needs to find out why.",
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
        Column(
            "error_message",
            "VARCHAR",
            "The failure's message, or in what the answer differs from the expected one; never NULL.",
        ),
        Column(
            "failure_mode", "VARCHAR", "Kind of mistake of an answer that ran, as the track names it; NULL: none fits."
        ),
        ATTEMPT_COUNT,
        COMPLEXITY,
        Column("error_context", "JSON", "Further useful values, by name; an empty object for none.", long=True),
    ),
    sources=("errors",),
)

METRIC_ERRORS = Table(
    "metric_errors",
    "One row per failure of a metric itself; its value counts as 0.",
    (
        TURN_ID,
        SAMPLE,
        Column("metric", "VARCHAR", "Name of the metric; never NULL."),
        Column("inputs", "JSON", "Arguments of the metric, by name; NULL: they cannot be written as JSON."),
        Column("message", "VARCHAR", "The exception's message; never NULL."),
        Column("stack_trace", "VARCHAR", "Stack trace of the exception; never NULL."),
        Column("at", "TIMESTAMP", "Time, UTC; never NULL."),
    ),
)


def track_turns_table(
    track: str,
    feature_columns: Sequence[Column],
    turn_columns: Sequence[Column],
    metric_columns: Sequence[Column],
) -> Table:
    """Declares the table `<track>_turns`: one row per turn and sample, with the track's columns and one per metric.

    Args:
        track: name of the track.
        feature_columns: facts about the case or turn.
        turn_columns: the track's columns about what the model did.
        metric_columns: one for each metric of the track.

    Raises:
        ValueError: two columns have the same name, as DuckDB compares names (without regard to case).
    """
    cost = (INPUT_TOKENS, OUTPUT_TOKENS, USD, LATENCY_MS, ATTEMPT_COUNT)
    shared = (TURN_ID, CASE_ID, TURN_INDEX, SAMPLE, QUESTION, EXPECTED, ANSWER, CORRECT)
    columns = (*shared, *feature_columns, *turn_columns, *metric_columns, *cost)
    table = Table(f"{track}_turns", f"One row per turn and sample of the {track} track, with every metric.", columns)
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
