"""Tables of comparisons and trends for pages."""

from collections.abc import Iterator, Sequence

from eval_pipeline.core import shown
from eval_pipeline.core.covering.coverage import WORDS
from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.reports.comparison.contracts import by_model, contracts_query, order_sentence, rank
from eval_pipeline.reports.comparison.conversation import FIGURES, unit_of
from eval_pipeline.reports.comparison.differing import NOTHING_SAID, Differing
from eval_pipeline.reports.comparison.suite import Row, Standing, SuiteComparison
from eval_pipeline.reports.comparison.words import REACHED, equals_text, pair_verdict, trend_verdict
from eval_pipeline.reports.html.drawing import clipped
from eval_pipeline.reports.html.render import Sheet

_MOST_TEXT = 400
"""Bytes of a question or an answer in a table."""
_SAID = ("answer", "failure")


def standings_sheet(standings: Sequence[Standing], sql: Sequence[str]) -> Sheet:
    """Returns a table of the newest evaluation of each model version."""
    headers = (
        "model version", "date", "turns", "accuracy", "95% interval", "tokens per turn", "US dollars per turn",
        "Pareto front", "not distinguishable from",
    )  # fmt: skip
    rows = [
        [
            f"{found.model_version}{' (simulated)' if found.row['simulated'] else ''}",
            found.row["eval_date"].isoformat(),
            shown.count(found.row["n"]),
            shown.rate(found.row["accuracy"], found.row["low"], found.row["high"]),
            shown.interval_or_counts(found.row["accuracy"], found.row["n"], found.row["low"], found.row["high"])
            or UNKNOWN,
            shown.count(_a_turn(found.row, "tokens_total")),
            shown.dollars(_a_turn(found.row, "usd_total")),
            UNKNOWN if found.on_front is None else ("yes" if found.on_front else "no"),
            equals_text(found),
        ]
        for found in standings
    ]
    return Sheet("Newest evaluation of each model version, by accuracy", headers, rows, frozenset({8}), sql)


def coverage_sheet(compared: SuiteComparison, sql: Sequence[str]) -> Sheet:
    """Returns a table of how far the turns of each model version's newest evaluation got, and of how many cases."""
    rows = [
        [
            found.model_version,
            *(shown.count(found.row[name]) for name in REACHED),
            compared.cases_of(found).count() or UNKNOWN,
            compared.cases_of(found).because() or UNKNOWN,
        ]
        for found in compared.standings
    ]
    headers = ("model version", *WORDS, "cases", "others were left out because")
    texts = frozenset({len(headers) - 1})
    return Sheet("Coverage: how far the turns of each got", headers, rows, texts, [*sql, compared.cases_query()])


def differing_sheet(title: str, first: str, second: str, turns: Sequence[Differing]) -> Sheet:
    """Returns a table of the turns on which two model versions differ; long texts are cut."""
    of_both = (f"{what} of {name}" for name in (first, second) for what in _SAID)
    headers = ("turn", "question", "gold", *of_both)
    rows = [_differing(turn) for turn in turns]
    kept = [n for n, name in enumerate(headers) if not name.startswith(_SAID[1]) or any(row[n] for row in rows)]
    cells = [[UNKNOWN if row[n] is None else clipped(row[n] or "", _MOST_TEXT) for n in kept] for row in rows]
    return Sheet(title, [headers[n] for n in kept], cells, frozenset(range(1, len(kept))))


def _differing(turn: Differing) -> tuple[str | None, ...]:
    first, second = turn.first or NOTHING_SAID, turn.second or NOTHING_SAID
    asked = turn.first or second
    return turn.turn, asked.question, asked.expected, first.answer, first.failure, second.answer, second.failure


def pairs_sheet(pairs: Sequence[Row], sql: Sequence[str]) -> Sheet:
    """Returns a table of paired differences."""
    headers = (
        "pair", "verdict", "accuracies", "difference, points", "corrected 95% interval", "p corrected",
        "turns answered by both", "broken", "fixed",
    )  # fmt: skip
    return Sheet("Pairs of model versions, turn by turn", headers, [_pair(row) for row in pairs], frozenset({1}), sql)


def costs_sheet(pairs: Sequence[Row], sql: Sequence[str]) -> Sheet:
    """Returns a table of the smallest difference to be found, and of what the second costs more than the first."""
    headers = ("pair", "smallest detectable, points", "tokens per turn", "US dollars per turn", "latency per turn")
    rows = [
        [
            _pair_name(row),
            shown.points(row["minimum_detectable_difference"]).removeprefix("+"),
            shown.signed(row["tokens_difference"], "tokens"),
            shown.signed(row["usd_difference"], "usd"),
            shown.signed(row["latency_ms_difference"], "ms"),
        ]
        for row in pairs
    ]
    return Sheet("Smallest difference to be found, and what the second costs more", headers, rows, frozenset(), sql)


def figures_sheet(pairs: Sequence[Row], sql: Sequence[str]) -> Sheet:
    """Returns a table with both figures of each pair and their tests.

    One counts only turns that both answered, the other counts missing answers as wrong.
    """
    headers = (
        "pair", "counted", "turns", "unanswered, second and first", "difference, points", "95% interval", "broken",
        "fixed", "p by t or McNemar", "p by sign flips",
    )  # fmt: skip
    rows = [cells for row in pairs for cells in _both_figures(row)]
    return Sheet("Both counts with both tests, not corrected", headers, rows, frozenset({1}), sql)


def _both_figures(row: Row) -> Iterator[list[str]]:
    """Returns one row instead of two if both models answered everything, since the figures are then equal."""
    missing = bool(row["unanswered_a"] or row["unanswered_b"])
    for which, counted in (
        ("", "answered by both"),
        *([("conservative_", "unanswered as wrong")] if missing else []),
    ):
        yield [
            _pair_name(row),
            counted,
            shown.count(row[f"{which}n"]),
            f"{shown.count(row['unanswered_b'])}, {shown.count(row['unanswered_a'])}" if which else UNKNOWN,
            shown.points(row[f"{which}difference"], row[f"{which}low"], row[f"{which}high"]),
            shown.interval(row[f"{which}low"], row[f"{which}high"], "points"),
            shown.count(row[f"{which}broken"]),
            shown.count(row[f"{which}fixed"]),
            shown.p_value(row[f"{which}p_value"]),
            shown.p_value(row[f"{which}p_exact"]),
        ]


def conversations_sheet(rows: Sequence[Row], sql: Sequence[str]) -> Sheet:
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
        for metric in FIGURES
        for row in rows
        if row["metric"] == metric
    ]
    return Sheet("What turns make of those before them", headers, cells, frozenset({0}), sql)


def contracts_sheet(suite: str, rows: Sequence[Row]) -> Sheet:
    """Returns a table of the rank and accuracy of each model version under each contract."""
    found, contracts = by_model(rows), list(dict.fromkeys(row["contract"] for row in rows))
    cells = [
        [name, *(f"{rank(rows, of[one])}. {shown.rate(of[one]['accuracy'], of[one]['low'], of[one]['high'])}"
                 if one in of else UNKNOWN for one in contracts)]
        for name, of in found.items()
    ]  # fmt: skip
    order = order_sentence(rows)
    caption = f"Rank and accuracy under each contract{': ' if order else ''}{order}"
    return Sheet(caption, ("model version", *contracts), cells, frozenset(), [contracts_query(suite)])


def trends_sheet(nights: Sequence[Row], sql: Sequence[str]) -> Sheet:
    """Returns a table with one row per date and model version."""
    headers = (
        "model version", "date", "verdict", "turns", "accuracy", "95% interval", "since the date before, points",
        "since the first date, points",
    )  # fmt: skip
    rows = [
        [
            row["model_version"],
            row["eval_date"].isoformat(),
            trend_verdict(row),
            _turns(row),
            shown.rate(row["accuracy"], row["low"], row["high"]),
            _rests_on(row),
            _against(row, "previous"),
            _against(row, "first"),
        ]
        for row in nights
    ]
    return Sheet("Evaluation dates, tested turn by turn", headers, rows, frozenset({2}), sql)


def _rests_on(row: Row) -> str:
    return shown.interval_or_counts(row["accuracy"], row["n"], row["low"], row["high"]) or UNKNOWN


def _pair(row: Row) -> list[str]:
    return [
        _pair_name(row),
        pair_verdict(row),
        " − ".join(shown.rates(row["accuracy_b"], row["accuracy_a"], row["low"], row["high"])),
        shown.points(row["difference"], row["low"], row["high"]),
        shown.interval(row["low_corrected"], row["high_corrected"], "points"),
        shown.p_value(row["p_corrected"]),
        shown.count(row["n"]),
        shown.count(row["broken"]),
        shown.count(row["fixed"]),
    ]


def _pair_name(row: Row) -> str:
    return f"{row['model_b']} minus {row['model_a']}"


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


def _a_turn(row: Row, column: str) -> float | None:
    return row[column] / row["n"] if row[column] is not None and row["n"] else None
