"""Tables of comparisons and trends for pages."""

from collections.abc import Sequence

from eval_pipeline.core import shown
from eval_pipeline.core.covering.coverage import WORDS
from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.reports.comparison.contracts import by_model, contracts_query, order_sentence
from eval_pipeline.reports.comparison.conversation import FIGURES, figures_query, unit_of
from eval_pipeline.reports.comparison.suite import SIDES, Row, Standing, SuiteComparison, cases_query
from eval_pipeline.reports.comparison.words import (
    REACHED,
    counted_figures,
    equals_text,
    pair_verdict,
    trend_verdict,
)
from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable
from eval_pipeline.reports.html.drawing import clipped
from eval_pipeline.reports.html.render import Sheet, sheet_of

_MOST_TEXT = 400
"""Bytes of a question or an answer in a table."""
_SAID = ("answer", "failure")
_ENDS, _CORRECTED = ("low", "high"), ("low_corrected", "high_corrected")
_STANDINGS = (
    FigureColumn("model version", "named", "words"), FigureColumn("date", "eval_date", "told"),
    FigureColumn("turns", "n", "tokens"), FigureColumn("accuracy", "accuracy", "rate", _ENDS),
    FigureColumn("95% interval", "rests", "told"), FigureColumn("tokens per turn", "tokens_a_turn", "tokens"),
    FigureColumn("US dollars per turn", "usd_a_turn", "usd"), FigureColumn("Pareto front", "front", "told"),
    FigureColumn("not distinguishable from", "equals", "words"),
)  # fmt: skip
_COVERAGE = (
    FigureColumn("model version", "model_version", "words"),
    *(FigureColumn(word, name, "tokens") for word, name in zip(WORDS, REACHED, strict=True)),
    FigureColumn("cases", "cases", "told"), FigureColumn("others were left out because", "because", "words"),
)  # fmt: skip
_TRENDS = (
    FigureColumn("model version", "model_version", "words"), FigureColumn("date", "eval_date", "told"),
    FigureColumn("verdict", "told", "words"), FigureColumn("turns", "scored", "told"),
    FigureColumn("accuracy", "accuracy", "rate", _ENDS), FigureColumn("95% interval", "rests", "told"),
    FigureColumn("since the date before, points", "previous", "told"),
    FigureColumn("since the first date, points", "first", "told"),
)  # fmt: skip
_PAIRS = (
    FigureColumn("pair", "pair", "words"), FigureColumn("verdict", "told", "words"),
    FigureColumn("accuracies", "accuracies", "told"), FigureColumn("difference, points", "difference", "points", _ENDS),
    FigureColumn("corrected 95% interval", "", "interval", _CORRECTED, "points"),
    FigureColumn("p corrected", "p_corrected", "p"), FigureColumn("turns answered by both", "n", "tokens"),
    FigureColumn("broken", "broken", "tokens"), FigureColumn("fixed", "fixed", "tokens"),
)  # fmt: skip
_COSTS = (
    FigureColumn("pair", "pair", "words"), FigureColumn("smallest detectable, points", "detectable", "told"),
    FigureColumn("tokens per turn", "tokens_difference", "tokens", signed=True),
    FigureColumn("US dollars per turn", "usd_difference", "usd", signed=True),
    FigureColumn("latency per turn", "latency_ms_difference", "ms", signed=True),
)  # fmt: skip
_FIGURES = (
    FigureColumn("pair", "pair", "words"), FigureColumn("counted", "counted", "words"),
    FigureColumn("turns", "n", "tokens"), FigureColumn("unanswered, second and first", "unanswered", "told"),
    FigureColumn("difference, points", "difference", "points", _ENDS),
    FigureColumn("95% interval", "", "interval", _ENDS, "points"),
    FigureColumn("broken", "broken", "tokens"), FigureColumn("fixed", "fixed", "tokens"),
    FigureColumn("p by t or McNemar", "p_value", "p"), FigureColumn("p by sign flips", "p_exact", "p"),
)  # fmt: skip


def standings_sheet(standings: Sequence[Standing], sql: Sequence[str]) -> Sheet:
    """Returns a table of the newest evaluation of each model version."""
    rows = [
        found.row
        | {
            "named": f"{found.model_version}{' (simulated)' if found.row['simulated'] else ''}",
            "rests": _rests_on(found.row),
            "front": None if found.on_front is None else "yes" if found.on_front else "no",
            "equals": equals_text(found),
        }
        for found in standings
    ]
    return sheet_of(FigureTable("Newest evaluation of each model version, by accuracy", _STANDINGS, rows, sql))


def coverage_sheet(compared: SuiteComparison, sql: Sequence[str]) -> Sheet:
    """Returns a table of how far the turns of each model version's newest evaluation got, and of how many cases."""
    counted = [(found.row, compared.cases_of(found)) for found in compared.standings]
    rows = [row | {"cases": cases.count() or None, "because": cases.because() or None} for row, cases in counted]
    caption = "Coverage: how far the turns of each got"
    return sheet_of(FigureTable(caption, _COVERAGE, rows, [*sql, cases_query(compared.suite)]))


def differing_sheet(title: str, first: str, second: str, turns: Sequence[Row]) -> Sheet:
    """Returns a table of rows of `differing_query`; long texts are cut."""
    of_both = (f"{what} of {name}" for name in (first, second) for what in _SAID)
    headers = ("turn", "question", "gold", *of_both)
    columns = ("turn", "question", "expected", *(f"{what}_{side}" for side in SIDES for what in _SAID))
    rows = [[row[name] for name in columns] for row in turns]
    kept = [n for n, name in enumerate(headers) if not name.startswith(_SAID[1]) or any(row[n] for row in rows)]
    cells = [[UNKNOWN if row[n] is None else clipped(row[n] or "", _MOST_TEXT) for n in kept] for row in rows]
    return Sheet(title, [headers[n] for n in kept], cells, frozenset(range(1, len(kept))))


def pairs_sheet(pairs: Sequence[Row], sql: Sequence[str]) -> Sheet:
    """Returns a table of paired differences."""
    return sheet_of(FigureTable("Pairs of model versions, turn by turn", _PAIRS, list(map(_told, pairs)), sql))


def costs_sheet(pairs: Sequence[Row], sql: Sequence[str]) -> Sheet:
    """Returns a table of the smallest difference to be found, and of what the second costs more than the first."""
    caption = "Smallest difference to be found, and what the second costs more"
    return sheet_of(FigureTable(caption, _COSTS, list(map(_told, pairs)), sql))


def figures_sheet(pairs: Sequence[Row], sql: Sequence[str]) -> Sheet:
    """Returns a table with both figures of each pair and their tests.

    One counts only turns that both answered, the other counts missing answers as wrong.
    """
    rows = [
        _told(row) | found | {"unanswered": _unanswered(row) if number else None}
        for row in pairs
        for number, found in enumerate(counted_figures(row))
    ]
    return sheet_of(FigureTable("Both counts with both tests, not corrected", _FIGURES, rows, sql))


def _told(row: Row) -> Row:
    """Returns a row of `model_comparisons` with what is told of it in words."""
    return row | {
        "pair": f"{row['model_b']} minus {row['model_a']}",
        "told": pair_verdict(row),
        "accuracies": " − ".join(shown.rates(row["accuracy_b"], row["accuracy_a"], row["low"], row["high"])),
        "detectable": shown.points(row["minimum_detectable_difference"]).removeprefix("+"),
    }


def _unanswered(row: Row) -> str:
    return f"{shown.count(row['unanswered_b'])}, {shown.count(row['unanswered_a'])}"


def conversations_sheet(compared: SuiteComparison) -> Sheet:
    """Returns a table of how errors continue through conversations, for each model version."""
    headers = ("figure", "model version", "date", "turns", "value", "95% interval")
    cells = [
        [
            FIGURES[row["metric"]],
            row["model_version"],
            row["eval_date"].isoformat(),
            shown.count(row["n"]),
            shown.figure(row["mean"], unit_of(row["metric"]), row["low"], row["high"]),
            shown.interval(row["low"], row["high"], unit_of(row["metric"])),
        ]
        for row in sorted(compared.conversations, key=lambda row: list(FIGURES).index(row["metric"]))
    ]
    sql = [figures_query(compared.suite)]
    return Sheet("What turns make of those before them", headers, cells, frozenset({0}), sql)


def contracts_sheet(suite: str, rows: Sequence[Row]) -> Sheet:
    """Returns a table of the rank and accuracy of each model version under each contract."""
    found, contracts = by_model(rows), list(dict.fromkeys(row["contract"] for row in rows))
    cells = [
        [name, *(f"{of[one]['rank']}. {shown.rate(of[one]['accuracy'], of[one]['low'], of[one]['high'])}"
                 if one in of else UNKNOWN for one in contracts)]
        for name, of in found.items()
    ]  # fmt: skip
    order = order_sentence(rows)
    caption = f"Rank and accuracy under each contract{': ' if order else ''}{order}"
    return Sheet(caption, ("model version", *contracts), cells, frozenset(), [contracts_query(suite)])


def trends_sheet(nights: Sequence[Row], sql: Sequence[str]) -> Sheet:
    """Returns a table with one row per date and model version."""
    rows = [
        row
        | {"told": trend_verdict(row), "scored": _turns(row), "rests": _rests_on(row)}
        | {which: _against(row, which) for which in ("previous", "first")}
        for row in nights
    ]
    return sheet_of(FigureTable("Evaluation dates, tested turn by turn", _TRENDS, rows, sql))


def _rests_on(row: Row) -> str:
    return shown.interval_or_counts(row["accuracy"], row["n"], row["low"], row["high"]) or UNKNOWN


def _turns(row: Row) -> str:
    """Returns the number of scored turns, and how many were answered if not all were."""
    answered = row["answered"]
    scored = shown.count(row["n"])
    return scored if answered is None or answered >= row["n"] else f"{scored} ({shown.count(answered)} answered)"


def _against(row: Row, which: str) -> str:
    if row[f"{which}_difference"] is None:
        return UNKNOWN
    told = (row[f"{which}_{name}"] for name in ("difference", "low", "high"))
    value, low, high = told
    return shown.estimate(value, low, high, "points")
