"""The four pictures of a suite on the home page; each mark leads to the turns behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from eval_pipeline.reports.charts.trend import trend_of
from eval_pipeline.reports.places.links import compare_path
from eval_pipeline.reports.queries import KINDS
from eval_pipeline.view.addresses import turns_address
from eval_pipeline.view.filtering.filter import Condition, Filter
from eval_pipeline.view.overview.figures import ModelVersionLine, SuiteLines
from eval_pipeline.view.overview.parts import (
    MOST_MODES,
    MOST_TAGS,
    Mode,
    ModeChange,
    Modes,
    TagChange,
    changes_of,
    changes_sql,
    mode_changes,
    mode_changes_sql,
    modes_of,
    weakest_sql,
)
from eval_pipeline.view.published import StoreView

MODES_CORRECTED = "changes in points, corrected for all ways to fail"


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


def pictures_of(look: StoreView, suite: SuiteLines) -> list[Picture]:
    """Returns the pictures of a suite."""
    line = suite.told
    return [_accuracy(suite), _modes(look, line), _tags(look, line), _cost(suite)]


def _accuracy(suite: SuiteLines) -> Picture:
    nights = {line.partition.model_version: line.nights for line in suite.charted if line.nights}
    if not nights:
        return Picture("Accuracy", "No evaluation is complete yet.", Markup(), suite.sql)
    found = trend_of(suite.name, nights)
    return Picture(found.title, _left_out(found.model_versions, suite), markup(found.svg), suite.sql)


def _modes(look: StoreView, line: ModelVersionLine) -> Picture:
    now, before = line.partition, line.before
    found = modes_of(look, now, before)
    about = f"{now.model_version}, {shown.turns(found.turns)}"
    if before is not None:
        about += f"; {shown.turns(found.turns_before)} on {before.eval_date}; {MODES_CORRECTED}"
    if not found.modes:
        return Picture("Failure modes", f"{about}: nothing is wrong.", Markup(), [found.sql])
    changes = mode_changes(look, before, now) if before is not None else {}
    parts = [_part(mode, found, now, before, changes.get(mode.name)) for mode in found.modes[:MOST_MODES]]
    words = f"How answers of {now.model_version} fail: {'; '.join(part.words for part in parts)}"
    svg = parts_chart(parts, str(now.eval_date), str(before.eval_date) if before else "", words)
    if more := len(found.modes) - len(parts):
        about += f"; {more} more mode{'s' if more > 1 else ''}"
    sql = [found.sql, *([mode_changes_sql(before, now)] if before is not None else [])]
    return Picture("Failure modes", about, markup(svg), sql)


def _part(mode: Mode, of: Modes, now: Partition, before: Partition | None, change: ModeChange | None) -> Part:
    """Returns a mode as its share of all turns, since dates may have different numbers of them."""
    share, was = mode.now / max(1, of.turns), None
    words = f"{mode.name}: {mode.now:,} of {shown.turns(of.turns)}, {shown.rate(share)}"
    if mode.before is not None and before is not None:
        was = mode.before / max(1, of.turns_before)
        words += f"; {mode.before:,} of {of.turns_before:,} on {before.eval_date}, {shown.rate(was)}"
    href = turns_address(now, _how(mode, of.modes))
    return part_of(mode.name, share, was, f"{mode.now:,} · {shown.rate(share)}", change, words, href)


def part_of(
    name: str, share: float, before: float | None, told: str, change: ModeChange | None, words: str, href: str
) -> Part:
    """Returns a way to fail with its change, which is for the worse only if the test says so."""
    if change is None:
        return Part(name, share, before, told, "", False, words, href)
    words += f"; {mode_change_text(change)}"
    points = shown.points(change.difference, change.low, change.high) if change.difference else ""
    return Part(name, share, before, told, points, change.state == LOSS, words, href)


def mode_change_text(change: ModeChange) -> str:
    """Describes the change of a way to fail in words."""
    verdict = {LOSS: "significantly more", GAIN: "significantly fewer"}.get(change.state, "not significantly different")
    told = shown.points_text(change.difference, change.low, change.high)
    return f"on the turns that both have {told}, {verdict}"


def _how(mode: Mode, modes: Sequence[Mode]) -> Mapping[str, Any]:
    """Returns the filter of turns that fail so: no earlier one of `KINDS` tells of them."""
    first = KINDS[0]
    earlier = mode.column != first and any(other.column == first for other in modes)
    conditions = (Condition(first, "empty", ""),) if earlier else ()
    return {**Filter(verdict="wrong", conditions=conditions).arguments, mode.column: mode.name}


def _tags(look: StoreView, line: ModelVersionLine) -> Picture:
    now, change = line.partition, line.change
    if change is None or line.before is None:
        return _weakest(look, line, _why_no_change(line))
    sql = changes_sql(now, line.before)
    title = "Tags that changed most"
    about = f"{now.model_version} on {now.eval_date} against {line.before.eval_date}"
    found = changes_of(look, now, line.before)
    if not found:
        return _weakest(look, line, f"no tag has changed against {line.before.eval_date}")
    rows = [_tag_row(tag, [line.before, now]) for tag in found]
    about += f"; 95% intervals, corrected for {found[0].tags} tag{'s' if found[0].tags > 1 else ''}"
    words = f"{title}, {about}: {'; '.join(row.words for row in rows)}"
    if len(found) < MOST_TAGS:
        about += "; no other one of three conversations"
    return Picture(title, about, markup(change_rows(rows, words)), [sql])


def _tag_row(found: TagChange, sides: Sequence[Partition]) -> IntervalRow:
    told, state = shown.points(found.difference, found.low, found.high), SAME
    if found.low is not None and found.high is not None:
        state = LOSS if found.high < 0 else GAIN if found.low > 0 else SAME
    change = shown.points_text(found.difference, found.low, found.high)
    words = f"{found.tag}: {change}, {found.broken:,} broken and {found.fixed:,} fixed of {found.turns:,}"
    href = compare_path(sides, {"tag": found.tag})
    return IntervalRow(found.tag, found.difference, found.low, found.high, told, state, words, href)


def _weakest(look: StoreView, line: ModelVersionLine, why: str) -> Picture:
    """Returns the tags that the evaluation gets wrong most often, where none has changed or can be compared."""
    now, sql = line.partition, weakest_sql(line.partition)
    rows = [
        IntervalRow(
            row["tag"], row["mean"], row["low"], row["high"], shown.rate(row["mean"], row["low"], row["high"]), "",
            f"{row['tag']}: {shown.estimate(row['mean'], row['low'], row['high'])} of {row['n']:,} right",
            turns_address(now, {"tag": row["tag"], "verdict": "wrong"}),
        )
        for row in look.rows(sql)
    ]  # fmt: skip
    about = f"{now.model_version}; {why}"
    if not rows:
        return Picture("Weakest tags", f"{about}; none is in three conversations.", Markup(), [sql])
    words = f"Weakest tags of {now.model_version}: {'; '.join(row.words for row in rows)}"
    return Picture("Weakest tags", about, markup(rate_rows(rows, words)), [sql])


def _why_no_change(line: ModelVersionLine) -> str:
    row = line.newest
    if row is None or not row.get("compared", True):
        return "not compared yet"
    if row["break_reason"]:
        return f"{row['break_reason']} changed since the date before"
    return "no earlier date" if line.before is None else str(row["reason"] or "not compared with the date before")


def _cost(suite: SuiteLines) -> Picture:
    """Returns cost against accuracy of models, or of stand-ins where no model has a known cost."""
    title = "Cost against accuracy"
    whole = [line for line in suite.charted if not line.figures["sampled"] and line.figures["accuracy"] is not None]
    kinds = [[line for line in whole if bool(line.figures["simulated"]) is kind] for kind in (False, True)]
    known, unit = next((found for kind in kinds if (found := _known(kind))[0]), ([], ""))
    if not known:
        return Picture(title, "Neither dollars nor tokens are known.", Markup(), suite.sql)
    points = [_cost_point(line, unit) for line in known]
    stand_ins = bool(known[0].figures["simulated"])
    about = "" if not all(kinds) else "stand-ins only" if stand_ins else "without stand-ins"
    if unknown := [line.partition.model_version for line in kinds[stand_ins] if line not in known]:
        about += f"{'; ' if about else ''}without {', '.join(unknown)}: {_UNITS[unit]} unknown"
    words = f"{title} on {suite.name}{f', {about}' if about else ''}: {'; '.join(point.words for point in points)}"
    told = f"{_UNITS[unit]} a turn"
    return Picture(title, about, markup(cost_chart(points, told, words, dollars=unit == "usd")), suite.sql)


_UNITS = {"usd": "dollars", "tokens": "tokens"}


def _known(lines: Sequence[ModelVersionLine]) -> tuple[Sequence[ModelVersionLine], str]:
    """Returns those whose costs are known in the unit in which most are, dollars before tokens."""
    found = [([line for line in lines if line.figures[f"{unit}_per_turn"] is not None], unit) for unit in _UNITS]
    return max(found, key=lambda one: len(one[0]))


def _cost_point(line: ModelVersionLine, unit: str) -> CostPoint:
    row, name = line.figures, line.partition.model_version
    cost = row[f"{unit}_per_turn"]
    told = shown.dollars(cost) if unit == "usd" else f"{shown.count(cost)} tokens"
    words = f"{name}: {told} a turn, {shown.estimate(row['accuracy'], row['low'], row['high'])} right"
    front = bool(row["on_front"])
    if front:
        words += ", on the Pareto front"
    href = turns_address(line.partition)
    return CostPoint(name, cost, row["accuracy"], row["low"], row["high"], "", front, words, href)


def _left_out(drawn: int, suite: SuiteLines) -> str:
    """Describes which model versions a picture leaves out; empty if none."""
    other = len(suite.lines) - len(suite.charted)
    told = f"{drawn} of {len(suite.lines)} model versions" if drawn < len(suite.lines) else ""
    return f"{told}; {other} asked another part of the suite" if other else told


def markup(svg: str) -> Markup:
    """Returns a drawing as markup for a template."""
    return Markup(svg)  # noqa: S704, every text in it is escaped
