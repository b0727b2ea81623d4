"""The charts of one evaluation."""

from collections.abc import Iterator, Mapping

from eval_pipeline.core import shown
from eval_pipeline.reports.charts.canvas import Chart
from eval_pipeline.reports.charts.svg.plane import CeilingMark, LevelPoint, level_chart
from eval_pipeline.reports.charts.svg.rows import IntervalRow, Part, parts_chart, rate_rows
from eval_pipeline.reports.contents.figures import FEW, FITTED, axis_title, below_sentence, ceiling_sentence
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.store.tables import CALIBRATION

FORM = "right but for form"
_MOST_BARS = 12
_LEVELS = ("low", "medium", "high")


def evaluation_charts(evaluation: Evaluation) -> Iterator[Chart]:
    """Yields charts of failures, of accuracy by complexity, of the track, and of calibration if it is known."""
    yield from _failures(evaluation, "failure_mode", "Failure modes", evaluation.wrong_in_form)
    for ceiling in evaluation.ceilings:
        levels = [row for row in evaluation.levels if row["axis"] == ceiling["axis"]]
        if any(row["accuracy"] is not None for row in levels):
            yield _accuracy(ceiling, levels)
    yield from _failures(evaluation, "error_class", "Error classes", None)
    if evaluation.profile.charts is not None:
        yield from evaluation.profile.charts(evaluation)
    levels = [row for row in evaluation.optional(CALIBRATION) if row["level"] in _LEVELS]
    if levels:
        yield _calibration(sorted(levels, key=lambda row: _LEVELS.index(row["level"])))


def _failures(evaluation: Evaluation, grouping: str, title: str, forms: Mapping[str, int] | None) -> Iterator[Chart]:
    groups = [row for row in evaluation.error_groups if row["grouping"] == grouping]
    if groups:
        yield _bars(grouping, title, groups[:_MOST_BARS], forms)


def _accuracy(ceiling: Row, levels: list[Row]) -> Chart:
    axis = axis_title(ceiling["axis"])
    sentence = "; ".join(filter(None, (ceiling_sentence(ceiling), below_sentence(ceiling, levels))))
    return Chart(
        f"accuracy-by-{ceiling['axis'].replace('_', '-')}",
        f"Accuracy by {axis}",
        f"Share of correct turns at each level, with 95% intervals clustered by conversation; {sentence}. {FITTED}",
        (axis, "turns", "accuracy", "95% interval", "fitted curve"),
        [
            (
                str(row["level"]),
                shown.count(row["n"]),
                shown.rate(row["accuracy"], row["low"], row["high"]),
                shown.interval(row["low"], row["high"]),
                shown.rate(row["fitted"]),
            )
            for row in levels
        ],
        svg=_accuracy_svg(ceiling, levels),
        note=sentence,
    )


def _accuracy_svg(ceiling: Row, levels: list[Row]) -> str:
    axis = axis_title(ceiling["axis"])
    told = [shown.estimate(row["accuracy"], row["low"], row["high"]) for row in levels]
    points = [
        LevelPoint(
            row["level"], row["accuracy"], row["low"], row["high"], row["fitted"],
            f"{axis} {row['level']}: {text} of {shown.turns(row['n'])}", few=row["n"] if row["n"] < FEW else None,
        )
        for row, text in zip(levels, told, strict=True)
    ]  # fmt: skip
    mark = CeilingMark(ceiling["threshold"], ceiling["ceiling"], ceiling["ceiling_low"], ceiling["ceiling_high"])
    return level_chart(points, mark, axis, f"Accuracy by {axis}: {ceiling_sentence(ceiling)}")


def _bars(grouping: str, title: str, groups: list[Row], forms: Mapping[str, int] | None) -> Chart:
    """Returns a chart of counts; `forms` are those turns of a group that are right but for their form, if known."""
    first, told = groups[0], ""
    headers = [title.removesuffix("es") if title.endswith("sses") else title.removesuffix("s"), "turns", "share"]
    rows = [[str(row["value"]), shown.count(row["turns"]), shown.rate(row["share"])] for row in groups]
    if forms is not None:
        told = f"; {sum(forms.values()):,} of all are {FORM}"
        headers.append(FORM)
        rows = [[*cells, shown.count(forms.get(cells[0], 0))] for cells in rows]
    return Chart(
        grouping.replace("_", "-"),
        title,
        f"Turns that are not correct, counted; the most frequent is {first['value']} with {first['turns']:,}{told}.",
        headers,
        rows,
        svg=_bars_svg(title, groups, forms),
    )


def _bars_svg(title: str, groups: list[Row], forms: Mapping[str, int] | None) -> str:
    parts = []
    for row in groups:
        in_form = (forms or {}).get(row["value"], 0)
        count, told = shown.count(row["turns"]), f"{shown.count(in_form)} {FORM}" if in_form else ""
        words = f"{row['value']}: {shown.turns(row['turns'])}, {shown.rate(row['share'])}" + (
            f", {told}" if told else ""
        )
        parts.append(Part(str(row["value"]), row["share"], None, count, told, words=words))
    return parts_chart(parts, "turns", "", f"{title}: {', '.join(part.words for part in parts)}")


def _calibration(levels: list[Row]) -> Chart:
    return Chart(
        "calibration",
        "Calibration: confidence and accuracy",
        "How often answers are right at each level of confidence, against the accuracy that the level promises; "
        "on the dashed line they would be equal.",
        ("confidence", "promised", "answers", "right", "95% interval"),
        [
            (row["level"], shown.rate(row["nominal"]), shown.count(row["n"]),
             shown.rate(row["accuracy"], row["low"], row["high"]), shown.interval(row["low"], row["high"]))
            for row in levels
        ],
        svg=_calibration_svg(levels),
        note="how often each level of confidence is right",
    )  # fmt: skip


def _calibration_svg(levels: list[Row]) -> str:
    rows = []
    for row in levels:
        name = f"{row['level']}: promises {shown.rate(row['nominal'])}"
        text = shown.rate(row["accuracy"], row["low"], row["high"])
        words = f"{name}, {text} of {shown.count(row['n'])} answers are right"
        rows.append(IntervalRow(name, row["accuracy"], row["low"], row["high"], text, words=words))
    return rate_rows(rows, "Calibration: how often answers are right at each level of confidence")
