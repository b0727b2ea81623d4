"""The four pictures of a suite on the home page; each mark leads to the turns behind it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.charts.svg.plane import CostPoint, cost_chart
from eval_pipeline.reports.charts.svg.rows import (
    GAIN,
    LOSS,
    SAME,
    IntervalRow,
    Part,
    change_rows,
    parts_chart,
    rate_rows,
)
from eval_pipeline.reports.charts.svg.series import MOST_SERIES, DatePoint, Series, series_chart
from eval_pipeline.reports.places.links import compare_path
from eval_pipeline.reports.shown import UNKNOWN, shown_count, shown_dollars, shown_points, shown_rate
from eval_pipeline.view.addresses import turns_address
from eval_pipeline.view.overview.figures import Line, SuiteLines
from eval_pipeline.view.overview.parts import (
    MOST_MODES,
    TagChange,
    changes_of,
    changes_sql,
    modes_of,
    weakest_sql,
)
from eval_pipeline.view.published import Look, Row

_MOST_NIGHTS = 40
_MOST_ROWS = 8


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture with its heading.

    Attributes:
        title: what it shows.
        about: whose figures these are, or what is left out; empty if there is nothing to add.
        svg: the drawing; empty if there is nothing to draw, which `about` explains.
        sql: the queries of its figures.
    """

    title: str
    about: str
    svg: Markup
    sql: Sequence[str]


def pictures_of(look: Look, suite: SuiteLines) -> list[Picture]:
    """Returns the pictures of a suite."""
    line = suite.told
    return [_accuracy(suite), _modes(look, line), _tags(look, line), _cost(suite)]


def night_point(suite: str, row: Row) -> DatePoint:
    """Returns a row of `trends` as a point of a series that leads to its turns, or of a loss to what was lost."""
    here = Partition(suite, row["model_version"], row["eval_date"])
    loss = row["verdict"] == LOSS_VERDICT
    words = f"{row['model_version']} on {row['eval_date']}: {shown_rate(row['accuracy'])}{_between(row)} right"
    href = turns_address(here)
    if loss:
        words += f", {shown_points(row['previous_difference'])} points since {row['previous_date']}, a loss"
        href = compare_path([Partition(suite, row["model_version"], row["previous_date"]), here])
    elif row["break_reason"]:
        words += f"; not comparable with the date before ({row['break_reason']} changed)"
    compared = row.get("compared", True)
    if not compared:
        words += "; not compared yet"
    return DatePoint(
        row["eval_date"], row["accuracy"], row["low"], row["high"], loss, row["break_reason"] or "", compared, words, href
    )


LOSS_VERDICT = "loss"


def _accuracy(suite: SuiteLines) -> Picture:
    lines = [line for line in suite.lines if line.nights]
    if not lines:
        return Picture("Accuracy", "No evaluation is complete yet.", Markup(), suite.sql)
    if all(len(line.nights) == 1 for line in lines):
        shown = lines[:_MOST_ROWS]
        rows = [_rate_row(line) for line in shown]
        svg = rate_rows(rows, f"Accuracy of model versions on {suite.name}: {'; '.join(row.words for row in rows)}")
        return Picture("Accuracy", _left_out(len(shown), len(lines)), _markup(svg), suite.sql)
    # The longest series say most; colours follow the order of the table.
    chosen = sorted(lines, key=lambda line: (line.loss is None, -len(line.nights)))[:MOST_SERIES]
    shown = [line for line in lines if line in chosen]
    series = [_series(suite.name, line) for line in shown]
    words = f"Accuracy on {suite.name} by date, with 95% intervals: {'; '.join(_words(line) for line in shown)}"
    return Picture("Accuracy by date", _left_out(len(shown), len(lines)), _markup(series_chart(series, words)), suite.sql)


def _series(suite: str, line: Line) -> Series:
    points = [night_point(suite, row) for row in line.nights[-_MOST_NIGHTS:]]
    last = line.nights[-1]
    return Series(
        line.partition.model_version, points, f"{shown_rate(last['accuracy'])}{_between(last)}", turns_address(line.partition)
    )


def _rate_row(line: Line) -> IntervalRow:
    row = line.nights[-1]
    name, text = line.partition.model_version, f"{shown_rate(row['accuracy'])}{_between(row)}"
    href = turns_address(line.partition)
    return IntervalRow(name, row["accuracy"], row["low"], row["high"], text, "", f"{name}: {text} right", href)


def _modes(look: Look, line: Line) -> Picture:
    now, before = line.partition, line.before
    found = modes_of(look, now, before)
    about = f"{now.model_version}, {found.turns:,} turns"
    if not found.modes:
        return Picture("Failure modes", f"{about}: nothing is wrong.", Markup(), [found.sql])
    shown = found.modes[:MOST_MODES]
    parts = []
    for mode in shown:
        was = "" if mode.before is None else f"; {mode.before:,} of {found.turns_before:,} on {before and before.eval_date}"
        grown = mode.now - (mode.before or 0) if mode.before is not None else 0
        parts.append(
            Part(
                mode.name,
                mode.now / max(1, found.turns),
                None if mode.before is None else mode.before / max(1, found.turns_before),
                f"{mode.now:,}",
                f"{grown:+,}".replace("-", "−") if grown else "",
                grown > 0,
                f"{mode.name}: {mode.now:,} of {found.turns:,} turns{was}",
                turns_address(now, {"verdict": "wrong", mode.column: mode.name}),
            )
        )
    words = f"How answers of {now.model_version} fail: {'; '.join(part.words for part in parts)}"
    svg = parts_chart(parts, str(now.eval_date), str(before.eval_date) if before else "", words)
    if more := len(found.modes) - len(shown):
        about += f"; {more} more modes"
    return Picture("Failure modes", about, _markup(svg), [found.sql])
