"""Tables of suites, model versions and runs."""

from eval_pipeline.store.schemas import (
    CASE_ID,
    COMPLEXITY,
    EXPECTED,
    QUESTION,
    SIMULATED,
    TAGS,
    TURN_ID,
    TURN_INDEX,
    Column,
    Table,
)

SUITES = Table(
    "suites",
    "One row per suite: what it is, and what its files contained when it was read.",
    (
        Column("track", "VARCHAR", "Kind of task, e.g. `finqa`; never NULL."),
        Column("version", "VARCHAR", "Version of the suite, as its authors state it; never NULL."),
        Column("description", "VARCHAR", "What the suite asks, in the authors' words; empty for none."),
        Column("licence", "VARCHAR", "Licence of the data; NULL: not stated."),
        Column("content_hash", "VARCHAR", "SHA-256 over every file of the suite, 32 hexadecimal digits; never NULL."),
        Column("files", "JSON", "Every file: name, bytes, hash (of SHA-256, 32 hexadecimal digits); never NULL."),
        Column("options", "JSON", "The suite's settings for its track; an empty object for none."),
    ),
    key="suite",
)

CASES = Table(
    "cases",
    "One row per case: a conversation over one context, as read from the suite.",
    (
        CASE_ID,
        Column(
            "cluster",
            "VARCHAR",
            "Name of the group of cases that are not independent; the case's id by default; never NULL.",
        ),
        TAGS,
        Column("features", "JSON", "Facts from the data set by which results are split; an empty object for none."),
        Column("turns", "BIGINT", "Number of turns, from 1; never NULL."),
        Column("source_file", "VARCHAR", "File the case was read from, relative to the suite; never NULL."),
        Column("source_line", "BIGINT", "Line in that file, from 1; never NULL."),
        Column("source_hash", "VARCHAR", "SHA-256 of that file, 32 hexadecimal digits; never NULL."),
        Column("content", "JSON", "The case in the suite's file format; never NULL.", long=True),
        Column(
            "shared_hash",
            "VARCHAR",
            "Hash of what the suite's cases share (e.g. a catalogue); NULL: they share nothing.",
        ),
    ),
    key="suite",
)

CASE_PROBLEMS = Table(
    "case_problems",
    "One row per problem in the files of a suite whose other cases are evaluated nevertheless.",
    (
        Column("file", "VARCHAR", "File with the case that was left out, relative to the suite; never NULL."),
        Column("line", "BIGINT", "Line in that file, from 1; NULL: the file could not be read at all."),
        Column("field", "VARCHAR", "Dotted path of the field; empty for the whole entry; never NULL."),
        Column("message", "VARCHAR", "What was found and what was expected; never NULL."),
    ),
    key="suite",
)

LEFT_OUT_CASES = Table(
    "left_out_cases",
    "One row per case of a suite's files that is not evaluated, whatever the model.",
    (
        Column("file", "VARCHAR", "File with the case, relative to the suite; never NULL."),
        Column("line", "BIGINT", "Line where the case begins, from 1; NULL: the file could not be read at all."),
        Column("case_id", "VARCHAR", "Id of the case; NULL: it could not be read."),
        Column(
            "cause",
            "VARCHAR",
            "`wrong`: see `case_problems`; `unreadable_file`: the whole file; `wrong_gold`: left out when the suite "
            "was imported; never NULL.",
        ),
        Column("why", "VARCHAR", "Its first problem, with file and line; never NULL."),
    ),
    key="suite",
)

TURNS = Table(
    "turns",
    "One row per turn of a suite: the question and the right answer.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        QUESTION,
        EXPECTED,
        Column(
            "expected_printed",
            "VARCHAR",
            "The answer as the source prints it; NULL: it is the same, or not in the source.",
        ),
        Column("gold", "JSON", "The right answer in the track's own form; never NULL."),
        Column(
            "expected_result",
            "JSON",
            "Result of executing the gold, in the form of `attempts.result` (for sql that of the first accepted query: "
            "columns, up to 20 rows, number of rows); NULL: the track executes nothing, or the gold does not run.",
        ),
        COMPLEXITY,
        Column("gold_problem", "VARCHAR", "Why the gold of the turn does not hold; NULL: it holds."),
        Column(
            "gold_results",
            "JSON",
            "A hash of what each accepted gold gave when it was executed, by which drift is seen; NULL: not executed.",
        ),
    ),
    key="suite",
)

MODEL_VERSIONS = Table(
    "model_versions",
    "One row per model version: a named, fixed configuration of a model under evaluation.",
    (
        Column("provider", "VARCHAR", "Where responses come from, e.g. `anthropic`; never NULL."),
        Column("model", "VARCHAR", "The provider's name for the model; empty where the provider has only one."),
        Column("description", "VARCHAR", "Description from `model_versions.yaml`; empty for none."),
        SIMULATED,
        Column("recorded", "BOOLEAN", "true: the responses were read from a file of predictions; never NULL."),
        Column("identity_hash", "VARCHAR", "SHA-256 of all settings that can change a response; never NULL."),
        Column("settings", "JSON", "Every setting of the entry; never NULL."),
        Column(
            "retired",
            "BOOLEAN",
            "true: it is no longer in any file of model versions; NULL: a row of an older version.",
        ),
    ),
    key="model_version",
)

RUNS = Table(
    "runs",
    "One row per run that made or changed an evaluation of the partition's date; the latest by `started_at` describes "
    "the newest one now.",
    (
        Column("run_id", "VARCHAR", "Id of the Dagster run; never NULL."),
        Column("evaluation_id", "VARCHAR", "Evaluation that it made or changed; NULL: an older run."),
        Column("identity", "JSON", "Settings of the model version that can change a response; NULL: an older run."),
        Column("prompt", "VARCHAR", "Version of the track's prompt, and the hash of the suite's; NULL: an older run."),
        Column(
            "prompt_text",
            "JSON",
            "The suite's own words in the prompt; an empty object for none; NULL: an older run.",
        ),
        Column("scope", "VARCHAR", "`full`, or the part of the suite that was requested; never NULL."),
        Column("turns_planned", "BIGINT", "Turns in that scope, from 0; never NULL."),
        Column("cases_planned", "BIGINT", "Cases in that scope, from 0; never NULL."),
        Column(
            "status",
            "VARCHAR",
            "`running`, `complete`, `incomplete` (a budget was reached) or `failed` (killed runs too, once the next "
            "run notices); never NULL.",
        ),
        Column(
            "epoch",
            "VARCHAR",
            "Part of the journal's key: with a new epoch everything is asked again; NULL: the first epoch.",
        ),
        Column("started_at", "TIMESTAMP", "UTC; never NULL."),
        Column("finished_at", "TIMESTAMP", "UTC; NULL: the run was killed, or is running."),
        Column("calls", "BIGINT", "Model calls made, including recovery attempts, from 0; never NULL."),
        Column(
            "responses", "BIGINT", "Responses to these calls, which is what was paid for, from 0; NULL: an older run."
        ),
        Column("journal_hits", "BIGINT", "Responses taken from the journal instead of calling, from 0; never NULL."),
        Column("call_errors", "BIGINT", "Calls that gave no response after all retries, from 0; never NULL."),
        Column("calls_refused", "BIGINT", "Calls that the budget did not allow, from 0; NULL: an older run."),
        Column("tokens_spent", "BIGINT", "Tokens of the calls that this run made, from 0; NULL: an older run."),
        Column("usd_spent", "DOUBLE", "US dollars of the calls that this run made; NULL: none, or no known price."),
        Column(
            "judge_tokens_spent", "BIGINT", "Tokens of the calls to the judge that this run made; NULL: none were made."
        ),
        Column(
            "judge_usd_spent", "DOUBLE", "US dollars of these calls to the judge; NULL: none, or no price is known."
        ),
        Column("judge_calls_refused", "BIGINT", "Answers not judged as the judge's budget was reached; NULL: none."),
        Column("tokens", "BIGINT", "Tokens of all attempts in the partition, in whichever run; NULL: not reported."),
        Column("usd", "DOUBLE", "US dollars of all attempts in the partition, in whichever run; NULL: no known price."),
        Column("software", "JSON", "Versions of this package and of libraries that matter; never NULL."),
    ),
    version=2,
)

SUITE_TABLES = (SUITES, CASES, CASE_PROBLEMS, LEFT_OUT_CASES, TURNS, MODEL_VERSIONS, RUNS)
