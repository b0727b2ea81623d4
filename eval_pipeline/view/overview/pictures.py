"""The four pictures of a suite on the home page; each mark leads to the turns behind it."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from eval_pipeline.core import shown
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
from eval_pipeline.view.addresses import turns_address
from eval_pipeline.view.overview.figures import Line, SuiteLines
from eval_pipeline.view.overview.parts import (
    MOST_MODES,
    Mode,
    TagChange,
    changes_of,
    changes_sql,
    modes_of,
    weakest_sql,
)
from eval_pipeline.view.published import Look, Row

_MOST_NIGHTS = 40
_MOST_ROWS = 8
_LOSS_VERDICT = "loss"


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
    loss = row["verdict"] == _LOSS_VERDICT
    accuracy = f"{shown.rate(row['accuracy'], row['low'], row['high'])}{_between(row)}"
    words = f"{row['model_version']} on {row['eval_date']}: {accuracy} right"
    href = turns_address(here)
    if loss:
        change = shown.points(row["previous_difference"], row["previous_low"], row["previous_high"])
        words += f", {change} points since {row['previous_date']}, a loss"
        href = compare_path([Partition(suite, row["model_version"], row["previous_date"]), here])
    elif row["break_reason"]:
        words += f"; not comparable with the date before ({row['break_reason']} changed)"
    compared = row.get("compared", True)
    if not compared:
        words += "; not compared yet"
    return DatePoint(
        row["eval_date"],
        row["accuracy"],
        row["low"],
        row["high"],
        loss,
        row["break_reason"] or "",
        compared,
        words,
        href,
    )


def _accuracy(suite: SuiteLines) -> Picture:
    lines = [line for line in suite.charted if line.nights]
    if not lines:
        return Picture("Accuracy", "No evaluation is complete yet.", Markup(), suite.sql)
    if all(len(line.nights) == 1 for line in lines):
        shown = lines[:_MOST_ROWS]
        rows = [_rate_row(line) for line in shown]
        svg = rate_rows(rows, f"Accuracy of model versions on {suite.name}: {'; '.join(row.words for row in rows)}")
        return Picture("Accuracy", _left_out(len(shown), suite), _markup(svg), suite.sql)
    # The longest series say most; colours follow the order of the table.
    chosen = sorted(lines, key=lambda line: (line.loss is None, -len(line.nights)))[:MOST_SERIES]
    shown = [line for line in lines if line in chosen]
    series = [_series(suite.name, line) for line in shown]
    words = f"Accuracy on {suite.name} by date, with 95% intervals: {'; '.join(_words(line) for line in shown)}"
    return Picture("Accuracy by date", _left_out(len(shown), suite), _markup(series_chart(series, words)), suite.sql)


def _series(suite: str, line: Line) -> Series:
    points = [night_point(suite, row) for row in line.nights[-_MOST_NIGHTS:]]
    last = line.nights[-1]
    return Series(
        line.partition.model_version,
        points,
        f"{shown.rate(last['accuracy'], last['low'], last['high'])}{_between(last)}",
        turns_address(line.partition),
    )


def _rate_row(line: Line) -> IntervalRow:
    row = line.nights[-1]
    name, text = line.partition.model_version, f"{shown.rate(row['accuracy'], row['low'], row['high'])}{_between(row)}"
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
        was = (
            ""
            if mode.before is None
            else f"; {mode.before:,} of {found.turns_before:,} on {before and before.eval_date}"
        )
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
                turns_address(now, _how(mode, found.modes)),
            )
        )
    words = f"How answers of {now.model_version} fail: {'; '.join(part.words for part in parts)}"
    svg = parts_chart(parts, str(now.eval_date), str(before.eval_date) if before else "", words)
    if more := len(found.modes) - len(shown):
        about += f"; {more} more modes"
    return Picture("Failure modes", about, _markup(svg), [found.sql])


def _how(mode: Mode, modes: Sequence[Mode]) -> dict[str, str]:
    """Returns the filter of turns that fail so; those that have a failure mode are not counted by their error class."""
    found = {"verdict": "wrong", mode.column: mode.name}
    if mode.column == "error_class" and any(other.column == "failure_mode" for other in modes):
        return {**found, "column": "failure_mode", "is": "empty", "value": ""}
    return found


def _tags(look: Look, line: Line) -> Picture:
    now, change = line.partition, line.change
    if change is None or line.before is None:
        return _weakest(look, line, _why_no_change(line))
    sql = changes_sql(now, line.before)
    title, about = "Tags that changed most", f"{now.model_version} since {line.before.eval_date}"
    found = changes_of(look, now, line.before)
    if not found:
        return _weakest(look, line, f"no tag has changed since {line.before.eval_date}")
    rows = [_tag_row(tag, [line.before, now]) for tag in found]
    words = f"{title}, {about}: {'; '.join(row.words for row in rows)}"
    return Picture(title, about, _markup(change_rows(rows, words)), [sql])


def _tag_row(found: TagChange, sides: Sequence[Partition]) -> IntervalRow:
    told, interval, state = shown.points(found.difference, found.low, found.high), "", SAME
    if found.low is not None and found.high is not None:
        interval = f" ({shown.interval(found.low, found.high, 'points')})"
        state = LOSS if found.high < 0 else GAIN if found.low > 0 else SAME
    words = (
        f"{found.tag}: {told} points{interval}, {found.broken:,} broken and {found.fixed:,} fixed of {found.turns:,}"
    )
    href = compare_path(sides, {"tag": found.tag})
    return IntervalRow(found.tag, found.difference, found.low, found.high, told, state, words, href)


def _weakest(look: Look, line: Line, why: str) -> Picture:
    """Returns the tags that the evaluation gets wrong most often, where none has changed or can be compared."""
    now, sql = line.partition, weakest_sql(line.partition)
    rows = [
        IntervalRow(
            row["tag"], row["mean"], row["low"], row["high"], shown.rate(row["mean"], row["low"], row["high"]), "",
            f"{row['tag']}: {shown.rate(row['mean'], row['low'], row['high'])}{_between(row)} of {row['n']:,} right",
            turns_address(now, {"tag": row["tag"], "verdict": "wrong"}),
        )
        for row in look.rows(sql)
    ]  # fmt: skip
    about = f"{now.model_version}; {why}"
    if not rows:
        return Picture("Weakest tags", f"{about}; none is in three conversations.", Markup(), [sql])
    words = f"Weakest tags of {now.model_version}: {'; '.join(row.words for row in rows)}"
    return Picture("Weakest tags", about, _markup(rate_rows(rows, words)), [sql])


def _why_no_change(line: Line) -> str:
    row = line.newest
    if row is None or not row.get("compared", True):
        return "not compared yet"
    if row["break_reason"]:
        return f"{row['break_reason']} changed since the date before"
    return "no earlier date" if line.before is None else str(row["reason"] or "not compared with the date before")


def _cost(suite: SuiteLines) -> Picture:
    """Returns cost against accuracy of models, or of stand-ins if more of these have costs."""
    title = "Cost against accuracy"
    whole = [line for line in suite.charted if not line.figures["sampled"] and line.figures["accuracy"] is not None]
    kinds = [[line for line in whole if bool(line.figures["simulated"]) is kind] for kind in (False, True)]
    priced = [(found, _unit(found)) for found in kinds]
    shown, unit = max(priced, key=lambda one: len(one[0]) if one[1] else 0)
    if not shown or not unit:
        return Picture(title, "Neither dollars nor tokens are known.", Markup(), suite.sql)
    points = [_cost_point(line, unit) for line in shown]
    stand_ins = bool(shown[0].figures["simulated"])
    about = "" if len(shown) == len(whole) else "stand-ins only" if stand_ins else "without stand-ins"
    words = f"{title} on {suite.name}{f', {about}' if about else ''}: {'; '.join(point.words for point in points)}"
    told = "dollars a turn" if unit == "usd" else "tokens a turn"
    return Picture(title, about, _markup(cost_chart(points, told, words, dollars=unit == "usd")), suite.sql)


def _unit(lines: Sequence[Line]) -> str:
    """Returns in what all of them have costs: `usd`, otherwise `tokens`; empty if neither."""
    return next((u for u in ("usd", "tokens") if all(line.figures[f"{u}_per_turn"] is not None for line in lines)), "")


def _cost_point(line: Line, unit: str) -> CostPoint:
    row, name = line.figures, line.partition.model_version
    cost = row[f"{unit}_per_turn"]
    told = shown.dollars(cost) if unit == "usd" else f"{shown.count(cost)} tokens"
    words = f"{name}: {told} a turn, {shown.rate(row['accuracy'], row['low'], row['high'])}{_between(row)} right"
    front = bool(row["on_front"])
    if front:
        words += ", on the Pareto front"
    href = turns_address(line.partition)
    return CostPoint(name, cost, row["accuracy"], row["low"], row["high"], "", front, words, href)


def _words(line: Line) -> str:
    row = line.nights[-1]
    loss = ", a loss is open" if line.loss else ""
    accuracy = shown.rate(row["accuracy"], row["low"], row["high"])
    return f"{line.partition.model_version}: {accuracy} on {row['eval_date']}{loss}"


def _left_out(shown: int, suite: SuiteLines) -> str:
    """Describes which model versions a picture leaves out; empty if none."""
    other = len(suite.lines) - len(suite.charted)
    told = f"{shown} of {len(suite.lines)} model versions" if shown < len(suite.lines) else ""
    return f"{told}; {other} asked another part of the suite" if other else told


def _between(row: Row) -> str:
    """Returns the interval in brackets, as it follows a rate; empty if it is unknown."""
    if row["low"] is None or row["high"] is None:
        return ""
    return f" ({shown.interval(row['low'], row['high'])})"


def _markup(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704, every text in it is escaped
