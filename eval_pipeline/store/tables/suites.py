"""What the store keeps of suites, model versions and runs."""

from eval_pipeline.store.schemas import SIMULATED, Column, Table
from eval_pipeline.store.tables.columns import (
    CASE_ID,
    COMPLEXITY,
    EXPECTED,
    QUESTION,
    TAGS,
    TURN_ID,
    TURN_INDEX,
)

SUITES = Table(
    "suites",
    "One row a suite: what it is and what its files held when it was read.",
    (
        Column("track", "VARCHAR", "Kind of task, e.g. `finqa`; never NULL."),
        Column("version", "VARCHAR", "The authors' own version of the suite; never NULL."),
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
    "One row a case: a conversation over one context, as read from the suite.",
    (
        CASE_ID,
        Column("cluster", "VARCHAR", "Cases that are not independent share it; the case's id by default; never NULL."),
        TAGS,
        Column("features", "JSON", "Facts from the data set that results are split by; an empty object for none."),
        Column("turns", "BIGINT", "Number of turns, from 1; never NULL."),
        Column("source_file", "VARCHAR", "File the case was read from, relative to the suite; never NULL."),
        Column("source_line", "BIGINT", "Line in that file, from 1; never NULL."),
        Column("source_hash", "VARCHAR", "SHA-256 of that file, 32 hexadecimal digits; never NULL."),
        Column("content", "JSON", "The case in the suite's file format; never NULL.", long=True),
        Column("shared_hash", "VARCHAR", "Hash of what the suite's cases share (a catalogue); NULL: nothing."),
    ),
    key="suite",
)

CASE_PROBLEMS = Table(
    "case_problems",
    "One row a thing that is wrong in the files of a suite whose good cases are evaluated all the same.",
    (
        Column("file", "VARCHAR", "File with the case that was left out, relative to the suite; never NULL."),
        Column("line", "BIGINT", "Line in that file, from 1; NULL: the file could not be read at all."),
        Column("field", "VARCHAR", "Dotted path of the field; empty for the whole entry; never NULL."),
        Column("message", "VARCHAR", "What was found and what was expected; never NULL."),
    ),
    key="suite",
)

TURNS = Table(
    "turns",
    "One row a turn of a suite: the question and what a right answer is.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        QUESTION,
        EXPECTED,
        Column(
            "expected_printed", "VARCHAR", "The answer as the source prints it; NULL: the same or not in the source."
        ),
        Column("gold", "JSON", "What a right answer is, in the track's own form; never NULL."),
        Column(
            "expected_result",
            "JSON",
            "What executing the gold gives, as `attempts.result` has it of an answer (of sql the first accepted query: "
            "columns, up to 20 rows, their number); NULL: the track executes nothing, or the gold does not run.",
        ),
        COMPLEXITY,
        Column("gold_problem", "VARCHAR", "Why the turn's own gold does not hold; NULL: the gold holds."),
    ),
    key="suite",
)

MODEL_VERSIONS = Table(
    "model_versions",
    "One row a model version: a named, frozen configuration of a model under evaluation.",
    (
        Column("provider", "VARCHAR", "Where responses come from, e.g. `anthropic`; never NULL."),
        Column("model", "VARCHAR", "The provider's name for the model; empty where it has one only."),
        Column("description", "VARCHAR", "In the words of `model_versions.yaml`; empty for none."),
        SIMULATED,
        Column("recorded", "BOOLEAN", "true: the responses were read from a file of predictions; never NULL."),
        Column("identity_hash", "VARCHAR", "SHA-256 of all settings that can change a response; never NULL."),
        Column("settings", "JSON", "Every setting of the entry; never NULL."),
        Column("retired", "BOOLEAN", "true: no file of model versions lists it any more; NULL: an older row, in use."),
    ),
    key="model_version",
)

RUNS = Table(
    "runs",
    "One row a run that made or changed the partition; the last one by `started_at` says what it holds now.",
    (
        Column("run_id", "VARCHAR", "Id of the Dagster run; never NULL."),
        Column("scope", "VARCHAR", "`full`, or which part of the suite was asked for; never NULL."),
        Column("turns_planned", "BIGINT", "Turns in that scope, from 0; never NULL."),
        Column("cases_planned", "BIGINT", "Cases in that scope, from 0; never NULL."),
        Column(
            "status",
            "VARCHAR",
            "`running`, `complete`, `incomplete` (its budget was reached) or `failed` (killed ones too, once noticed); "
            "never NULL.",
        ),
        Column("epoch", "VARCHAR", "Part of the journal's key: a new one asks everything anew; NULL: the first."),
        Column("started_at", "TIMESTAMP", "UTC; never NULL."),
        Column("finished_at", "TIMESTAMP", "UTC; NULL: it was cut off."),
        Column("calls", "BIGINT", "Model calls made, recovery attempts among them, from 0; never NULL."),
        Column(
            "responses", "BIGINT", "Responses that these calls gave, so what was paid for, from 0; NULL: an older run."
        ),
        Column("journal_hits", "BIGINT", "Responses taken from the journal instead of calling, from 0; never NULL."),
        Column("call_errors", "BIGINT", "Calls that gave no response after all retries, from 0; never NULL."),
        Column("calls_refused", "BIGINT", "Calls that the budget did not allow, from 0; NULL: an older run."),
        Column("tokens_spent", "BIGINT", "Tokens of the calls that this run made, from 0; NULL: an older run."),
        Column("usd_spent", "DOUBLE", "US dollars of the calls that this run made; NULL: none, or no price known."),
        Column("tokens", "BIGINT", "Tokens of all attempts of the partition, whenever asked; NULL: not told."),
        Column("usd", "DOUBLE", "US dollars of all attempts of the partition, whenever asked; NULL: no price."),
        Column("software", "JSON", "Versions of this package and of what it runs on; never NULL."),
    ),
)

SUITE_TABLES = (SUITES, CASES, CASE_PROBLEMS, TURNS, MODEL_VERSIONS, RUNS)
