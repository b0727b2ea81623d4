"""Tables of evaluations whose cases were drawn by known probabilities (docs/adaptive.md)."""

from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables.columns import CASE_ID

SAMPLING_DESIGN = Table(
    "sampling_design",
    "One row a case that `run --until` may draw: in which batch it was drawn, with which probability. An evaluation "
    "that was run in full afterwards keeps its rows.",
    (
        CASE_ID,
        Column("place", "BIGINT", "Position of the case in the suite, from 0; never NULL."),
        Column("turns", "JSON", "Ids of its turns that count, a list; turns with an excluded gold do not; never NULL."),
        Column("batch", "BIGINT", "Batch in which it was drawn, from 1; NULL: not drawn."),
        Column(
            "probability",
            "DOUBLE",
            "Probability of being drawn in that batch, given those before, above 0 and at most 1; NULL: not drawn.",
        ),
        Column(
            "history",
            "JSON",
            "What earlier evaluations made of these turns, a text a turn, a character an evaluation: `1` right, `0` "
            "wrong, `-` unknown; never NULL.",
        ),
    ),
)

SAMPLED_ESTIMATES = Table(
    "sampled_estimates",
    "One row a look and figure of an evaluation whose cases were drawn: the estimate for the whole suite. The one with "
    "the highest `look` counts. Evaluations that were not drawn have no row.",
    (
        Column("look", "BIGINT", "Number of the look, one after each batch, from 1; never NULL."),
        Column("looks", "BIGINT", "Looks that the schedule has; the interval allows for all of them; never NULL."),
        Column(
            "metric",
            "VARCHAR",
            "`correct`, the share of right turns, or `difference`, that share less the baseline's; never NULL.",
        ),
        Column(
            "until",
            "VARCHAR",
            "The rule to stop by: `±2pp`, `decided-against NAME` (`within 30%`), `budget 5usd`, `ranked`; never NULL.",
        ),
        Column("baseline", "VARCHAR", "`<model version> <date>` that is compared with; NULL: none."),
        Column("turns", "BIGINT", "Turns asked so far, from 1; never NULL."),
        Column("cases", "BIGINT", "Cases asked so far, from 1; never NULL."),
        Column("suite_turns", "BIGINT", "Turns of the whole suite that count, from 1; never NULL."),
        Column("evaluations", "BIGINT", "Earlier evaluations that the choice goes by, from 0; never NULL."),
        Column(
            "value",
            "DOUBLE",
            "The figure for the whole suite, each answer weighted by its probability of being asked; never NULL.",
        ),
        Column("low", "DOUBLE", "Lower end of its 95% interval, for all looks together; never NULL."),
        Column("high", "DOUBLE", "Upper end; never NULL."),
        Column("effective", "DOUBLE", "Turns of a uniform draw that would tell as much, above 0; never NULL."),
        Column("naive", "DOUBLE", "The plain mean over the asked turns, which the draw biases; never NULL."),
        Column("naive_low", "DOUBLE", "Lower end of the interval of a uniform draw around it; NULL: one case only."),
        Column("naive_high", "DOUBLE", "Upper end; NULL: one case only."),
        Column("usd", "DOUBLE", "US dollars of the answers so far; NULL: no price known."),
        Column("verdict", "VARCHAR", "`better`, `worse` or `undecided` against the baseline; NULL: no baseline."),
        Column("stopped", "VARCHAR", "Why asking stopped here, a sentence; NULL: it went on, or was interrupted."),
    ),
)

DRAW_TABLES = (SAMPLING_DESIGN, SAMPLED_ESTIMATES)
