"""The sheet `Overview`: what was evaluated and what came out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.ceilings import axis_title, ceiling_sentence
from eval_pipeline.reports.excel.colours import colour_rates, compressed
from eval_pipeline.reports.excel.looks import (
    BY_UNIT,
    COUNT,
    DOLLARS,
    INTEGER,
    NOTE,
    PERCENT,
    PLAIN,
    SCORE,
    WARNING,
    WRAPPED,
    Look,
    Styled,
)
from eval_pipeline.reports.excel.page import Page
from eval_pipeline.reports.profile import WORSE_WHEN_HIGH

SIMULATED = "SIMULATED: these responses are not a real model's; no figure here says anything about a model."
_WIDTHS = (38, 16, 13, 13, 11, 15, 78)
_FIRST = ("correct", "first_attempt_correct", "conversation_success")
_LAST = ("latency_ms_p50", "latency_ms_p95")
_NO_VALUES = "no turns"
_MOST_MESSAGES = 12
_ELSEWHERE = frozenset({"name", "provider", "model", "description", "active"})


def write_overview(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    partition = evaluation.partition
    page = Page(book, "Overview", _WIDTHS)
    page.title(
        f"{partition.suite} · {partition.model_version}",
        f"Evaluation of {partition.eval_date.isoformat()} · track {evaluation.profile.track} · "
        f"{evaluation.turns:,} turns in {evaluation.cost['conversations']:,} conversations",
    )
    if evaluation.simulated:
        page.band(SIMULATED, WARNING)
    if not evaluation.planned.is_full:
        page.band(f"PART OF THE SUITE ONLY: {_scope_text(evaluation.planned.scope)}", WARNING)
    _headline(page, evaluation)
    _failures(page, evaluation)
    _evaluated(page, evaluation)
    _explained(page, evaluation)


def _headline(page: Page, evaluation: Evaluation) -> None:
    page.section("Headline")
    headers = ["figure", "value", "95% low", "95% high", "n", "clusters", "note"]
    rows = list(_headline_rows(evaluation))
    found = page.table(headers, rows)
    looks = [(row[0][0], row[1][1].format) for row in rows]
    rates = [
        found.first + place
        for place, (name, form) in enumerate(looks)
        if form == PERCENT and name not in WORSE_WHEN_HIGH
    ]
    if rates:
        colour_rates(page.sheet, compressed(rates, "B"))


def _headline_rows(evaluation: Evaluation) -> Iterator[list[Styled]]:
    primary = evaluation.profile.primary_metric
    labels = {
        "correct": f"Accuracy ({primary})",
        "first_attempt_correct": "Accuracy at the first attempt",
        "conversation_success": "Conversations all right",
        "latency_ms_p50": "Latency of a turn, median",
        "latency_ms_p95": "Latency of a turn, 95th percentile",
    }
    metrics = [metric.name for metric in evaluation.profile.averaged if metric.name != primary]
    for metric in (*_FIRST, *metrics, *_LAST):
        if metric in evaluation.overall:
            yield _figure(evaluation, labels.get(metric, metric), evaluation.overall[metric])
        if metric == _FIRST[-1]:
            yield from _cost_rows(evaluation.cost)
            yield from _ceiling_rows(evaluation.ceilings)


def _figure(evaluation: Evaluation, label: str, row: Row) -> list[Styled]:
    look = Look(BY_UNIT[evaluation.profile.unit(row["metric"])])
    bold = Look(look.format, bold=True)
    note = row["reason"] or ""
    if note == _NO_VALUES and evaluation.turns:
        note = "no turn has this figure"
    if row["failures"]:
        without = row["mean_without_failures"]
        shown = "" if without is None else f"; {without:.4g} without them"
        note = "; ".join(filter(None, [note, f"the metric failed on {row['failures']:,} turns, counted as 0{shown}"]))
    first = Look(bold=label.startswith("Accuracy ("))
    return [
        (label, first), (row["mean"], bold), (row["low"], look), (row["high"], look),
        (row["n"], COUNT), (row["clusters"], COUNT), (note or None, NOTE),
    ]  # fmt: skip


def _cost_rows(cost: Row) -> Iterator[list[Styled]]:
    parts = (
        ("Tokens a successful conversation", "tokens_per_success", INTEGER, "reason"),
        ("US dollars a successful conversation", "usd_per_success", DOLLARS, "usd_reason"),
    )
    for label, name, form, reason in parts:
        look = Look(form)
        yield [
            (label, PLAIN), (cost[name], Look(form, bold=True)), (cost[f"{name}_low"], look),
            (cost[f"{name}_high"], look), (cost["conversations"], COUNT), (None, PLAIN), (cost[reason], NOTE),
        ]  # fmt: skip


def _ceiling_rows(ceilings: Sequence[Row]) -> Iterator[list[Styled]]:
    for row in ceilings:
        yield [
            (f"Complexity ceiling, {axis_title(row['axis'])}", PLAIN), (row["ceiling"], Look(bold=True)),
            (row["ceiling_low"], PLAIN), (row["ceiling_high"], PLAIN), (None, PLAIN), (None, PLAIN),
            (ceiling_sentence(row), NOTE),
        ]  # fmt: skip


def _failures(page: Page, evaluation: Evaluation) -> None:
    page.section("Turns that are not correct")
    groups: dict[str, list[Row]] = {}
    for row in evaluation.error_groups:
        groups.setdefault(row["grouping"], []).append(row)
    if not groups.keys() & {"error_class", "failure_mode"}:
        page.note("none" if evaluation.turns else "no turns were evaluated")
        return
    for grouping, title in (("error_class", "error class"), ("failure_mode", "failure mode")):
        share = Look(PERCENT)
        shown: list[list[Styled]] = [
            [(row["value"], PLAIN), (row["turns"], COUNT), (row["share"], share), (row["example_turn_id"], NOTE)]
            for row in groups.get(grouping, ())
        ]
        page.table([title, "turns", "share", "example"], shown)
        page.blank()
    _messages(page, groups.get("message_shape", []))


def _messages(page: Page, rows: list[Row]) -> None:
    headers = ["error class", "turns", "share", "example", "", "", "message, without its numbers"]
    shown: list[list[Styled]] = [
        [
            (row["error_class"], PLAIN), (row["turns"], COUNT), (row["share"], Look(PERCENT)),
            (row["example_turn_id"], NOTE), (None, PLAIN), (None, PLAIN), (row["value"], WRAPPED),
        ]
        for row in rows[:_MOST_MESSAGES]
    ]  # fmt: skip
    page.table(headers, shown)
    if len(rows) > _MOST_MESSAGES:
        page.note(f"and {len(rows) - _MOST_MESSAGES} more in error_analysis of statistics.json")


def _evaluated(page: Page, evaluation: Evaluation) -> None:
    suite, model, planned = evaluation.suite, evaluation.model, evaluation.planned
    page.section("What was evaluated")
    facts = (
        ("Suite", f"{evaluation.partition.suite}, version {suite['version']}"),
        ("What it asks", suite["description"]),
        ("Licence", suite["licence"] or "not stated"),
        ("Suite contents (hash)", suite["content_hash"]),
        ("Model version", evaluation.partition.model_version),
        ("Description", model["description"]),
        ("Provider and model", " · ".join(filter(None, [model["provider"], model["model"]]))),
        ("Responses", _responses(evaluation)),
        ("Settings", _settings(model["settings"])),
        ("Scope", _scope_text(planned.scope)),
        ("Turns planned", "not on record" if planned.turns is None else f"{planned.turns:,}"),
        ("Turns evaluated", f"{evaluation.turns:,}"),
        ("Software", _software(planned.software) or "not on record"),
    )
    for name, value in facts:
        if value:
            page.fact(name, value)


def _responses(evaluation: Evaluation) -> str:
    if evaluation.simulated:
        return "simulated, not a real model's"
    return "recorded, read from a file of predictions" if evaluation.model["recorded"] else "a model's, asked for this"


def _settings(text: str | None) -> str:
    """The settings that are set, without what stands elsewhere on the page."""
    settings: dict[str, Any] = json.loads(text or "{}")
    shown = [
        f"{name} {json.dumps(value) if isinstance(value, dict | list) else value}"
        for name, value in settings.items()
        if value not in (None, "", {}, []) and name not in _ELSEWHERE
    ]
    return ", ".join(shown)


def _software(versions: Mapping[str, str]) -> str:
    return ", ".join(text if text.startswith(name) else f"{name} {text}" for name, text in versions.items())


def _explained(page: Page, evaluation: Evaluation) -> None:
    partition = evaluation.partition
    where = f"suite = '{_quoted(partition.suite)}' AND model_version = '{_quoted(partition.model_version)}' "
    where += f"AND eval_date = DATE '{partition.eval_date.isoformat()}'"
    page.section("How to read this")
    for text in (
        "Turns of one conversation are not independent: errors and 95% intervals are clustered "
        "by conversation, or by the group that the suite names; clusters says how many there are.",
        "A number that the data cannot carry is left empty; the note says why. It is never 0.",
        "Where a metric itself failed on a turn its value counts as 0; such failures are noted.",
        f"Scores from 0 to 1 are shown as {SCORE}, rates in percent. Everything about one conversation is in traces/.",
        "Figures come from the tables statistics, cost_per_correct_answer and complexity_ceiling, for example:",
    ):
        page.note(text)
    page.row((f"SELECT * FROM statistics WHERE {where} AND metric = 'correct' AND split = 'all'", PLAIN))


def _scope_text(scope: str) -> str:
    if scope == "full":
        return "the whole suite"
    values = json.loads(scope)
    parts = [
        f"{name.replace('_', ' ')} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in values.items()
    ]
    return ", ".join(parts) or "which one is not on record"


def _quoted(text: str) -> str:
    return text.replace("'", "''")
