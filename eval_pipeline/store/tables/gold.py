"""Tables about the gold answers: doubts, overrides, and the editions that figures are based on."""

from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables.columns import CASE_ID, QUESTION, TURN_ID, TURN_INDEX

_ACTION = "`corrected` (another gold), `both` (either gold is right) or `excluded` (counted in no figure)"

GOLD_OVERRIDES = Table(
    "gold_overrides",
    "One row per turn whose gold is overridden by the suite's `gold_overrides.yaml`, with who decided it and why.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        Column("action", "VARCHAR", f"{_ACTION}; never NULL."),
        Column("who", "VARCHAR", "Who decided it; never NULL."),
        Column("why", "VARCHAR", "The reason given; never NULL."),
        Column(
            "published", "VARCHAR", "The right answer as the suite published it, as text; NULL: the track has none."
        ),
        Column("overridden", "VARCHAR", "The right answer of the override, as text; NULL: the turn is excluded."),
        Column("gold", "JSON", "The fields of the turn in the case file that the override replaces; NULL: excluded."),
        Column("source_line", "BIGINT", "Line in `gold_overrides.yaml`, from 1; never NULL."),
    ),
    key="suite",
)

SUITE_EDITIONS = Table(
    "suite_editions",
    "One row per suite: the edition of the data set, and of its gold, that the record holds.",
    (
        Column("data_edition", "VARCHAR", "Name of the data set's edition: `version` of `suite.yaml`; never NULL."),
        Column("data_hash", "VARCHAR", "Hash of everything that models are shown: questions and contexts; never NULL."),
        Column("published_edition", "VARCHAR", "Name of the gold without overrides; never NULL."),
        Column("published_hash", "VARCHAR", "Hash of the gold of every turn without overrides; never NULL."),
        Column("gold_edition", "VARCHAR", "Name of the gold that is used for scoring; never NULL."),
        Column(
            "gold_hash", "VARCHAR", "Hash of that gold; equal to `published_hash` if nothing is overridden; never NULL."
        ),
        Column("overridden_turns", "BIGINT", "Turns with an override, from 0; never NULL."),
        Column("overrides_hash", "VARCHAR", "Hash of the overrides; NULL: there are none."),
    ),
    key="suite",
)

GOLD_SUSPECTS = Table(
    "gold_suspects",
    "One row per turn and reason to doubt its gold: a list for people to check, best sorted by `turn_score`.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        QUESTION,
        Column("expected", "VARCHAR", "The right answer that is used for scoring, as text; NULL: the track has none."),
        Column(
            "reason",
            "VARCHAR",
            "`contradiction` (the gold contradicts itself), `lint` (it has the form of a usual mistake), `agreement` "
            "(model versions agree with each other against it), `oracle` (the gold answer fails a strict metric) or "
            "`printing` (one row for all turns that differ only in percent or fraction); never NULL.",
        ),
        Column("evidence", "VARCHAR", "The reason to doubt the gold, as a sentence; never NULL."),
        Column("score", "DOUBLE", "Strength of this reason, 0..1, for sorting; never NULL."),
        Column("turn_score", "DOUBLE", "1 - product of (1 - score) over the turn's reasons, 0..1; never NULL."),
        Column("agreed_answer", "VARCHAR", "The answer that models agree on, as text; NULL: they do not agree."),
        Column("model_versions", "BIGINT", "Model versions with that answer, from 0; never NULL."),
        Column("for_gold", "BIGINT", "Model versions with the gold's answer; NULL: the reason is not about agreement."),
        Column("answered", "BIGINT", "Model versions with any answer; NULL: the reason is not about agreement."),
        Column(
            "simulated",
            "BOOLEAN",
            "true: only stand-ins agree, no real models; NULL: the reason is not about agreement.",
        ),
        Column("override", "VARCHAR", f"Decision about the turn: {_ACTION}; NULL: none yet."),
    ),
    key="suite",
)

GOLD_EDITIONS = Table(
    "gold_editions",
    "One row per edition of the gold and metric: the metric over all turns, scored with that edition.",
    (
        Column("edition", "VARCHAR", "`scored` (as in `statistics`) or `published` (without overrides); never NULL."),
        Column("name", "VARCHAR", "Name of the edition; never NULL."),
        Column("gold_hash", "VARCHAR", "Its hash; never NULL."),
        Column("data_edition", "VARCHAR", "Name of the data set's edition; never NULL."),
        Column("data_hash", "VARCHAR", "Its hash; never NULL."),
        Column("overridden_turns", "BIGINT", "Overridden turns among those asked, from 0; never NULL."),
        Column("excluded_turns", "BIGINT", "How many of these are excluded, from 0; never NULL."),
        Column("metric", "VARCHAR", "A metric, or `correct`; never NULL."),
        Column("n", "BIGINT", "Turns and samples with a value, from 0; never NULL."),
        Column("mean", "DOUBLE", "Mean, with failures of the metric counted as 0; NULL: no turn has a value."),
        Column(
            "se",
            "DOUBLE",
            "Its standard error, clustered by conversation; NULL: there is only one conversation, or none.",
        ),
        Column("low", "DOUBLE", "Lower end of its 95% interval; NULL: as `se`."),
        Column("high", "DOUBLE", "Upper end of its 95% interval; NULL: as `se`."),
    ),
)

GOLD_SUITE_TABLES = (GOLD_OVERRIDES, SUITE_EDITIONS, GOLD_SUSPECTS)
GOLD_TURN_TABLES = (GOLD_EDITIONS,)
