"""The figures that every kind of report shows: headline, coverage, messages, ceilings, labels, slowest turns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eval_pipeline.core import shown
from eval_pipeline.core.shown import Unit
from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable, Kind
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.places.links import evaluation_path
from eval_pipeline.reports.profile import OF_CASES, WORSE_WHEN_HIGH
from eval_pipeline.reports.queries import extremes_query, table_query
from eval_pipeline.store.tables import COVERAGE, ERROR_ANALYSIS, LABEL_CONFUSION

_MOST_MESSAGES = 12
_MESSAGES = (
    FigureColumn("error class", "error_class"), FigureColumn("turns", "turns", "tokens"),
    FigureColumn("share", "share", "rate"),
    FigureColumn("example", "example_turn_id", "place"), FigureColumn("", ""), FigureColumn("", ""),
    FigureColumn("message, without its numbers", "value", "long"),
)  # fmt: skip
_FIRST = ("correct", "first_attempt_correct", "conversation_success")
_LAST = ("latency_ms_p50", "latency_ms_p95")
_SHOWN_K = frozenset({1, 2, 5, 10, 20, 50, 100})
_NO_VALUES = "no turns"
_COSTS: tuple[tuple[str, str, Unit, str], ...] = (
    ("Tokens per right turn", "tokens_per_correct_turn", "tokens", "reason"),
    ("US dollars per right turn", "usd_per_correct_turn", "usd", "usd_reason"),
    ("Tokens per successful conversation", "tokens_per_success", "tokens", "reason"),
    ("US dollars per successful conversation", "usd_per_success", "usd", "usd_reason"),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its uncertainty.

    Attributes:
        name: the metric, or the table column that it comes from.
        unit: unit of value, low and high; `level` for a level of complexity.
        low, high: ends of the 95% interval.
        n: number of turns, or of conversations for a figure about conversations.
        note: why a number is missing, or another remark.
    """

    name: str
    label: str
    unit: Unit | Literal["level"]
    value: float | None
    low: float | None
    high: float | None
    n: int | None = None
    clusters: int | None = None
    note: str | None = None

    @property
    def is_primary(self) -> bool:
        """Whether this is the accuracy."""
        return self.name == _FIRST[0]

    @property
    def is_good_when_high(self) -> bool:
        """Whether this is a rate for which higher is better."""
        return self.unit == "rate" and self.name not in WORSE_WHEN_HIGH


def headline_figures(evaluation: Evaluation) -> Iterator[Figure]:
    """Yields accuracy, conversations, cost and complexity ceilings, then all other metrics and latency."""
    primary = evaluation.profile.primary_metric
    labels = {
        "correct": f"Accuracy ({primary})",
        "first_attempt_correct": "Accuracy at the first attempt",
        "conversation_success": "Conversations all right",
        "latency_ms_p50": "Latency of a turn, median",
        "latency_ms_p95": "Latency of a turn, 95th percentile",
    }
    metrics = [
        name
        for metric in evaluation.profile.averaged
        if metric.name not in evaluation.profile.apart
        for name in (metric.name, f"{OF_CASES}{metric.name}")
        if name != primary
    ]
    # A metric that has both means says which one is shown.
    both = [name for name in metrics if f"{OF_CASES}{name}" in evaluation.overall]
    labels |= {name: f"{name}, mean of turns" for name in both}
    labels |= {f"{OF_CASES}{name}": f"{name}, mean of cases" for name in both}
    for metric in (*_FIRST, *metrics, *_LAST):
        if metric in evaluation.overall:
            yield _statistic(evaluation, labels.get(metric, metric), evaluation.overall[metric])
        if metric == _FIRST[-1]:
            yield from _repeated_figures(evaluation)
            yield from _cost_figures(evaluation.cost)
            yield from _ceiling_figures(evaluation.ceilings)


def metric_names(evaluation: Evaluation) -> set[str]:
    """Returns the names under which the headline has means of the track's own metrics."""
    averaged = [metric.name for metric in evaluation.profile.averaged]
    return {*averaged, *(f"{OF_CASES}{name}" for name in averaged)}


def figures_apart(evaluation: Evaluation) -> dict[str, list[Figure]]:
    """Returns the figures that have tables of their own, by the table's title."""
    found: dict[str, list[Figure]] = {}
    for name, title in evaluation.profile.apart.items():
        if name in evaluation.overall:
            found.setdefault(title, []).append(_statistic(evaluation, name, evaluation.overall[name]))
    return found


def coverage_table(evaluation: Evaluation) -> FigureTable:
    """Returns a table of how far the turns got."""
    counts = evaluation.coverage.columns()
    columns = (FigureColumn("", "what"), *(FigureColumn(name, name, "tokens") for name in counts))
    sql = table_query(evaluation.partition, COVERAGE.name)
    return FigureTable("Coverage: how far the turns got", columns, [{"what": "turns", **counts}], [sql])


def messages_table(evaluation: Evaluation) -> tuple[FigureTable, int]:
    """Returns a table of the most frequent messages of failed turns, and how many further ones there are."""
    sql = table_query(evaluation.partition, ERROR_ANALYSIS.name, rest="AND grouping = 'message_shape'")
    rows, title = evaluation.query(sql), "Most frequent messages of failed turns"
    return FigureTable(title, _MESSAGES, rows[:_MOST_MESSAGES], [sql]), max(0, len(rows) - _MOST_MESSAGES)


_FURTHER: Mapping[str, Kind] = {"share": "rate", **dict.fromkeys(("precision", "recall", "f1"), "score")}
"""What columns of further aggregates tell, by their names."""


def further_tables(evaluation: Evaluation) -> Iterator[FigureTable]:
    """Yields tables of further aggregates with their rows unchanged."""
    for table, rows in evaluation.further():
        columns = [FigureColumn(one.name, one.name, _FURTHER.get(one.name, "plain")) for one in table.columns]
        sql = table_query(evaluation.partition, table.name)
        yield FigureTable(f"{table.name}: {table.comment}", columns, rows, [sql])


def turns_of(evaluation: Evaluation, figure: Figure) -> str:
    """Returns the workbench's path of the turns that a rate counts, beside the figures of its table; else empty."""
    if figure.unit != "rate":
        return ""
    apart = evaluation.profile.apart
    beside = [name for name, title in apart.items() if title == apart[figure.name] and name != figure.name]
    asked = {"column": figure.name, "is": "is", "value": "yes", "show": beside}
    return evaluation_path(evaluation.partition, asked)


def _statistic(evaluation: Evaluation, label: str, row: Row) -> Figure:
    note = row["reason"] or ""
    if note == _NO_VALUES and evaluation.turns:
        note = "no turn has this figure"
    if row["failures"]:
        without = row["mean_without_failures"]
        unit = evaluation.profile.unit(row["metric"])
        left = "" if without is None else f"; {shown.figure(without, unit, row['low'], row['high'])} without them"
        note = "; ".join(
            filter(
                None,
                [note, f"the metric failed on {shown.turns(row['failures'])}, counted as 0{left}"],
            )
        )
    return Figure(
        row["metric"], label, evaluation.profile.unit(row["metric"]), row["mean"], row["low"], row["high"], row["n"],
        row["clusters"], note or None,
    )  # fmt: skip


def _repeated_figures(evaluation: Evaluation) -> Iterator[Figure]:
    """Yields pass@k and pass^k where turns were answered several times: for a few k, and the largest one."""
    known = [k for k in range(1, len(evaluation.overall)) if f"pass@{k}" in evaluation.overall]
    for name, words in (("pass@", "right at least once in"), ("pass^", "right each time in")):
        for k in known:
            if k in _SHOWN_K or k == known[-1]:
                label = f"{name}{k}: {words} {k} {'try' if k == 1 else 'tries'}"
                yield _statistic(evaluation, label, evaluation.overall[f"{name}{k}"])


def _cost_figures(cost: Row) -> Iterator[Figure]:
    for label, name, unit, reason in _COSTS:
        low, high = cost[f"{name}_low"], cost[f"{name}_high"]
        n = cost["turns"] if name.endswith("turn") else cost["conversations"]
        yield Figure(name, label, unit, cost[name], low, high, n, None, None if cost[name] else cost[reason])


def _ceiling_figures(ceilings: list[Row]) -> Iterator[Figure]:
    for row in ceilings:
        label, sentence = f"Complexity ceiling, {axis_title(row['axis'])}", ceiling_sentence(row)
        low, high = row["ceiling_low"], row["ceiling_high"]
        yield Figure("ceiling", label, "level", row["ceiling"], low, high, None, None, sentence)


_AXES = {
    "operations": "operations of the gold program",
    "plan_operations": "operations of the plan",
    "turn_number": "turn number (from 0)",
}


def axis_title(axis: str) -> str:
    """Returns a readable title for an axis of complexity."""
    return _AXES.get(axis, axis.replace("_", " "))


FEW = 20
"""Levels of fewer turns are merged for the fitted curve; `complexity_ceiling` has the same number."""
FITTED = (
    f"The ceiling is read from the fitted curve: it only falls, and levels of fewer than {FEW} turns are merged into "
    "the one below. A single point may lie below the threshold where the curve does not."
)


def ceiling_sentence(row: Row) -> str:
    """Returns a row of `complexity_ceiling` as a phrase, such as `ceiling 3 [2 to 4] at 50% accuracy`."""
    threshold = shown.given(row["threshold"])
    interval = shown.level_interval(row["ceiling_low"], row["ceiling_high"])
    if row["verdict"] == "no ceiling observed":
        return f"no ceiling [{interval}]: fitted curve at or above {threshold}"
    if row["verdict"] == "insufficient data":
        return f"no ceiling: too few turns for a curve of three levels (at {threshold} accuracy)"
    if row["ceiling"] is None:
        return str(row["reason"] or f"{row['verdict']} (at {threshold} accuracy)")
    return f"ceiling {shown.number(row['ceiling'])} [{interval}] at {threshold} accuracy"


def below_sentence(row: Row, levels: Sequence[Row]) -> str:
    """Returns why levels lie below the threshold although no ceiling is observed; empty if none does.

    `levels` are the rows of `accuracy_by_complexity` of the ceiling's row.
    """
    if row["verdict"] != "no ceiling observed":
        return ""
    below = [one for one in levels if one["accuracy"] is not None and one["accuracy"] < row["threshold"]]
    told = ", ".join(f"level {shown.number(one['level'])} (n = {shown.count(one['n'])})" for one in below)
    if not below:
        return ""
    if all(one["high"] is not None and one["high"] >= row["threshold"] for one in below):
        return f"below the line but with intervals that reach it: {told}"
    return f"below the line: {told}"


NO_LABEL = "no label"
CAPTION = "Labels: expected (rows) and given (columns), in turns"
MOST_LABELS = 30
"""Matrices of more labels are not drawn; the rows of the table are."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """A matrix of turns.

    Attributes:
        given: labels of the columns: first the expected labels in their order, last `NO_LABEL` if some answers gave no
            label.
        rows: for each expected label: the label, the number of turns for each of `given`, and their total.
    """

    given: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...], int], ...]


def confusion_of(rows: Sequence[Mapping[str, Any]]) -> Confusion | None:
    """Returns the matrix of the table's rows; None without labels, or with more than `MOST_LABELS`."""
    expected = sorted({row["expected_label"] for row in rows})
    others = sorted({row["answer_label"] for row in rows} - {None, *expected})
    given: list[str | None] = [*expected, *others]
    if any(row["answer_label"] is None for row in rows):
        given.append(None)
    if not rows or len(given) > MOST_LABELS:
        return None
    turns = {(row["expected_label"], row["answer_label"]): row["turns"] for row in rows}
    counts = {label: tuple(turns.get((label, said), 0) for said in given) for label in expected}
    names = tuple(NO_LABEL if label is None else label for label in given)
    return Confusion(names, tuple((label, counts[label], sum(counts[label])) for label in expected))


def matrix_of(table: FigureTable) -> FigureTable | None:
    """Returns the matrix of a table of further figures; None for other tables, or if there is no matrix."""
    found = confusion_of(table.rows) if table.caption.startswith(f"{LABEL_CONFUSION.name}:") else None
    if found is None:
        return None
    columns = [
        FigureColumn("expected", "expected"),
        *(FigureColumn(name, f"given {name}", "tokens") for name in found.given),
    ]
    rows = [
        {"expected": label, "total": total}
        | {f"given {n}": c or None for n, c in zip(found.given, counts, strict=True)}
        for label, counts, total in found.rows
    ]
    return FigureTable(CAPTION, [*columns, FigureColumn("turns", "total", "tokens")], rows, [])


_MOST = 10
"""How many such turns are listed."""
_EXTREMES = (
    ("Most expensive turns, by tokens", "tokens", "no turn's tokens are known"),
    ("Slowest turns", "latency_ms", "no turn's latency is known"),
)
_COLUMNS = (
    FigureColumn("turn", "turn_id", "place"), FigureColumn("tokens", "tokens", "tokens"),
    FigureColumn("US dollars", "usd", "usd"),
    FigureColumn("latency", "latency_ms", "ms"), FigureColumn("attempts", "attempts", "tokens"),
    FigureColumn("correct", "correct", "verdict"), FigureColumn("complexity", "complexity", "tokens"),
    FigureColumn("question", "question", "long"),
)  # fmt: skip


def extremes(evaluation: Evaluation) -> Iterator[tuple[FigureTable, str]]:
    """Yields both tables, each with the message if no turn has a value."""
    for title, column, missing in _EXTREMES:
        sql = extremes_query(evaluation.partition, column, _MOST)
        yield FigureTable(title, _COLUMNS, evaluation.query(sql), [sql]), missing
