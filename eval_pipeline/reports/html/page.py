"""Writes `report.html`: one evaluation on one page."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from eval_pipeline.core import shown
from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.reports.charts.canvas import write_chart
from eval_pipeline.reports.charts.evaluation import evaluation_charts
from eval_pipeline.reports.comparison.contracts import owed_text
from eval_pipeline.reports.comparison.suite import pairs_of_query
from eval_pipeline.reports.contents.facts import (
    LEFT_OUT_HEADERS,
    READING,
    causes,
    facts,
    turns_of_cases,
    warnings,
)
from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable
from eval_pipeline.reports.contents.figures import (
    Figure,
    coverage_table,
    extremes,
    figures_apart,
    further_tables,
    headline_figures,
    matrix_of,
    messages_table,
    metric_names,
    turns_of,
)
from eval_pipeline.reports.contents.gold import READING as GOLD_READING
from eval_pipeline.reports.evaluation import ALL, OVERALL, Evaluation, Row
from eval_pipeline.reports.html.comparisons import contracts_sheet, figures_sheet, pairs_sheet
from eval_pipeline.reports.html.drawing import FEWEST, DrawnTurns, drawn_turns, gold_sheets
from eval_pipeline.reports.html.render import Sheet, render, sheet_of
from eval_pipeline.reports.html.turns import Cards, mistakes_shown, turn_cards
from eval_pipeline.reports.places.paths import CHARTS, INDEX, PAGE, exported_state
from eval_pipeline.reports.queries import (
    NOT_SCORED,
    RIGHT,
    explain_query,
    literal,
    outcomes_query,
    statistics_query,
    table_query,
)
from eval_pipeline.store.tables import ACCURACY_BY_CONTRACT, COMPLEXITY_CEILING, COST_PER_CORRECT_ANSWER, COVERAGE

_MOST_TOLD = 3
_FIRST_CHARTS = 3
"""Charts that are seen first, a row of a wide screen; others are folded."""
_MOST_GROUPS = 25
_ENDS = ("low", "high")
_GROUPS = (
    FigureColumn("group", "group", "words"), FigureColumn("accuracy", "mean", "rate", _ENDS),
    FigureColumn("95% interval", "", "interval", _ENDS),
    FigureColumn("n", "n", "tokens"), FigureColumn("clusters", "clusters", "tokens"),
)  # fmt: skip
_CONTRACTS = (
    FigureColumn("contract", "contract", "words"), FigureColumn("accuracy", "accuracy", "rate", _ENDS),
    FigureColumn("95% interval", "", "interval", _ENDS), FigureColumn("right", "correct", "tokens"),
    FigureColumn("right only because it overlooks", "owed", "words"),
    FigureColumn("it overlooks", "overlooks", "words"),
)  # fmt: skip


def write_page(evaluation: Evaluation, folder: Path) -> None:
    """Writes the page, and its charts as files."""
    charts = list(evaluation_charts(evaluation))
    (folder / CHARTS).mkdir(exist_ok=True)
    for chart in charts:
        write_chart(chart, folder / CHARTS)
    part = evaluation.partition
    figures = list(headline_figures(evaluation))
    chosen = drawn_turns(evaluation)
    turns = turn_cards(evaluation, chosen, folder)
    text = render(
        "evaluation.html.j2",
        f"{part.suite} · {part.model_version} · {part.eval_date.isoformat()}",
        charts,
        heading=f"{part.suite} · {part.model_version}",
        subheading=_subheading(evaluation),
        warnings=warnings(evaluation),
        first_charts=_FIRST_CHARTS,
        key=list(_cards(evaluation, figures, chosen.outcomes)),
        figures=list(_headline(evaluation, figures)),
        figures_title=_figures_title(evaluation, figures),
        mistakes=mistakes_shown(evaluation, chosen),
        groups=list(_groups(evaluation)),
        comparisons=list(_comparisons(evaluation)),
        gold=list(gold_sheets(evaluation)),
        gold_reading=GOLD_READING,
        further=list(_further(evaluation)),
        extremes=[(sheet_of(table), missing) for table, missing in extremes(evaluation)],
        turns=turns.cards,
        turns_text=list(_turns_text(chosen, turns)),
        turns_sheet=_outcomes(chosen, evaluation) if chosen.turns else None,
        kinds=list(chosen.outcomes),
        exported=_exported(evaluation, folder),
        facts=facts(evaluation),
        reading=READING,
        explain=explain_query(part, evaluation.results["turn_id"][0].as_py() if evaluation.turns else "<turn id>"),
    )
    (folder / PAGE).write_text(text, encoding="utf-8")


def _exported(evaluation: Evaluation, folder: Path) -> str | None:
    """Returns a relative link to the evaluation's exported pages, or None if it was not exported."""
    if evaluation.exported is None or not exported_state(evaluation.exported):
        return None
    return quote(os.path.relpath(evaluation.exported / INDEX, folder), safe="/@+~")


def _subheading(evaluation: Evaluation) -> str:
    return (
        f"Evaluation of {evaluation.partition.eval_date.isoformat()} · track {evaluation.profile.track} · "
        f"{turns_of_cases(evaluation)}"
    )


def _cards(
    evaluation: Evaluation, figures: Sequence[Figure], outcomes: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, str, str]]:
    """Yields label, value and remark of what is shown large: how good, at what cost, what went wrong, how far."""
    known = {figure.name: figure for figure in reversed(figures) if figure.value is not None}
    if accuracy := known.get("correct"):
        yield (
            accuracy.label,
            _value(accuracy, accuracy.value),
            _sure(accuracy, shown.turns(accuracy.n or 0)),
        )
    if cost := known.get("usd_per_correct_turn") or known.get("tokens_per_correct_turn"):
        tokens = known.get("tokens_per_correct_turn")
        unit = "" if cost.unit == "usd" else " tokens"
        also = f"{_value(tokens, tokens.value)} tokens" if tokens and tokens is not cost else ""
        yield "A right turn costs", f"{_value(cost, cost.value)}{unit}", _sure(cost, also)
    wrong = {kind: there for kind, (there, _) in outcomes.items() if kind not in (RIGHT, NOT_SCORED)}
    often = sorted(wrong, key=lambda kind: -wrong[kind])[:_MOST_TOLD]
    if evaluation.turns:
        told = ", ".join(f"{kind} {shown.count(wrong[kind])}" for kind in often)
        yield "Wrong turns", shown.count(sum(wrong.values())), told
    if whole := known.get("conversation_success"):
        yield whole.label, _value(whole, whole.value), _sure(whole, f"{shown.count(whole.n)} conversations")
    if ceiling := known.get("ceiling"):
        yield ceiling.label, _value(ceiling, ceiling.value), _sure(ceiling)


def _sure(figure: Figure, also: str = "") -> str:
    interval = _interval(figure)
    return ", ".join(filter(None, [f"95%: {interval}" if interval else "", also]))


def _figures_title(evaluation: Evaluation, figures: Sequence[Figure]) -> str:
    metrics = sum(figure.name in metric_names(evaluation) for figure in figures)
    return f"All figures: coverage, accuracy, cost, ceilings, latency, {metrics} metrics of {evaluation.profile.track}"


def _value(figure: Figure, value: float | None) -> str:
    if figure.unit == "level":
        return shown.number(value)
    return shown.figure(value, figure.unit, figure.low, figure.high)


def _interval(figure: Figure) -> str:
    if figure.low is None and figure.high is None:
        return ""
    low, high = ("…" if end is None else _value(figure, end) for end in (figure.low, figure.high))
    return f"{low} to {high}"


def _headline(evaluation: Evaluation, figures: list[Figure]) -> Iterator[Sheet]:
    """Yields tables of figures: those that every track has, then the track's own metrics."""
    partition = evaluation.partition
    own = metric_names(evaluation)
    headers = ("figure", "value", "95% interval", "n", "clusters", "note")
    first = [figure for figure in figures if figure.name not in own]
    metrics = [figure for figure in figures if figure.name in own]
    queries = [statistics_query(partition, OVERALL)]
    further = [table_query(partition, table.name) for table in (COST_PER_CORRECT_ANSWER, COMPLEXITY_CEILING)]
    notes = frozenset({5})
    if evaluation.case_counts.left_out:
        yield _left_out(evaluation)
    yield sheet_of(coverage_table(evaluation))
    yield Sheet(
        "Accuracy, cost and ceilings", headers, [_row(f, f.note or "") for f in first], notes, queries + further
    )
    if evaluation.own_contracts:
        yield _contracts(evaluation)
    apart = figures_apart(evaluation)
    tables = {"All metrics: means of turns, where nothing else is said": metrics} | apart
    for title, own_figures in tables.items():
        meanings = [_row(f, f.note or evaluation.profile.meaning(f.name)) for f in own_figures]
        if meanings:
            links = [turns_of(evaluation, figure) for figure in own_figures] if title in apart else []
            yield Sheet(title, headers, meanings, notes, queries, links)


def _left_out(evaluation: Evaluation) -> Sheet:
    """Returns a table of the causes for which cases were left out."""
    counts = evaluation.case_counts
    rows = [[because, shown.count(cases), examples] for because, cases, examples in causes(counts)]
    query = table_query(evaluation.partition, COVERAGE.name)
    return Sheet(
        f"Cases left out: {counts.count()} are in the figures", LEFT_OUT_HEADERS, rows, frozenset({2}), [query]
    )


def _contracts(evaluation: Evaluation) -> Sheet:
    """Returns a table of what would be right if answers were compared under each contract."""
    rows = [
        row | {"owed": owed_text(row) or UNKNOWN, "overlooks": row["overlooks"].replace("_", " ")}
        for row in evaluation.own_contracts
    ]
    caption = f"Accuracy under each contract, of {shown.turns(rows[0]['turns'])}"
    query = table_query(evaluation.partition, ACCURACY_BY_CONTRACT.name)
    return sheet_of(FigureTable(caption, _CONTRACTS, rows, [query]))


def _row(figure: Figure, note: str) -> list[str]:
    n = "" if figure.n is None else shown.count(figure.n)
    clusters = "" if figure.clusters is None else shown.count(figure.clusters)
    return [figure.label, _value(figure, figure.value), _interval(figure) or UNKNOWN, n, clusters, note]


def _groups(evaluation: Evaluation) -> Iterator[Sheet]:
    """Yields accuracy by tag and by feature of the case, largest groups first, then the reasons for failures."""
    skipped = (ALL, "turn_number", "error_class", *(row["axis"] for row in evaluation.ceilings))
    other = f"split NOT IN ({', '.join(map(literal, skipped))})"
    query = statistics_query(evaluation.partition, f"metric = 'correct' AND n > 0 AND {other}")
    rows = sorted(evaluation.query(query), key=lambda row: (row["split"] == "tag", -row["n"]))
    if rows:
        more = f"; {_MOST_GROUPS} of {len(rows):,} groups" if len(rows) > _MOST_GROUPS else ""
        named = [row | {"group": _group(row)} for row in rows[:_MOST_GROUPS]]
        yield sheet_of(FigureTable(f"Accuracy by tag and feature{more}", _GROUPS, named, [query]))
    table, _ = messages_table(evaluation)
    if table.rows:
        yield sheet_of(replace(table, columns=[table.columns[-1], *table.columns[:-1]]))
    if evaluation.profile.page_sheets is not None:
        yield from evaluation.profile.page_sheets(evaluation)


def _group(row: Row) -> str:
    return str(row["split_value"]) if row["split"] == "tag" else f"{row['split']}: {row['split_value']}"


def _comparisons(evaluation: Evaluation) -> Iterator[Sheet]:
    """Yields the paired tests against other model versions of the suite, as far as they are on record."""
    if evaluation.comparisons:
        query = pairs_of_query(evaluation.partition)
        yield pairs_sheet(evaluation.comparisons, [query])
        yield figures_sheet(evaluation.comparisons, [query])
        if evaluation.contracts:
            yield contracts_sheet(evaluation.partition.suite, evaluation.contracts)


def _further(evaluation: Evaluation) -> Iterator[Sheet]:
    """Yields tables of further aggregates; that of labels comes as a matrix, too."""
    for table in further_tables(evaluation):
        if matrix := matrix_of(table):
            yield sheet_of(matrix)
        yield sheet_of(table)


def _turns_text(chosen: DrawnTurns, turns: Cards) -> Iterator[str]:
    """Yields sentences on which turns are shown and how their texts were cut."""
    if not chosen.turns:
        yield "No turns were evaluated."
        return
    if chosen.is_sample:
        yield (
            f"{len(chosen.kinds):,} of {chosen.turns:,} turns, a sample by outcome: in proportion, but at least "
            f"{FEWEST} of each, as far as there are any. They are drawn by a hash of their ids, so that other model "
            "versions and dates show the same ones where outcomes are the same. The workbook's sheet Turns has all."
        )
    else:
        turns_shown = "The only turn." if chosen.turns == 1 else f"All {chosen.turns:,} turns."
        yield f"{turns_shown} Each opens to what was expected, what the model did and the conversation."
    for what, bound in (("Texts", turns.bound), ("Prompts", turns.prompt_bound)):
        if bound is not None:
            yield f"{what} are whole up to some {bound:,} characters; longer ones are cut, with a note."


def _outcomes(chosen: DrawnTurns, evaluation: Evaluation) -> Sheet:
    """Returns a table with the number of turns for each outcome, and how many of them are shown."""
    rows = [
        [kind, shown.count(there), shown.rate(there / chosen.turns), shown.count(drawn)]
        for kind, (there, drawn) in chosen.outcomes.items()
    ]
    query = outcomes_query(evaluation.partition)
    return Sheet("Outcomes", ("outcome", "turns", "share", "shown below"), rows, frozenset(), [query])
