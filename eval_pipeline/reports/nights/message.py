"""The results of a night as one short message, suitable for reading on a phone."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from eval_pipeline.core import shown
from eval_pipeline.core.covering.coverage import implausible_text
from eval_pipeline.core.model import Partition
from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.reports.contents.draws import difference_text
from eval_pipeline.reports.nights.night import COMPLETE, NO_SERIES, NOT_COMPARED, Night, NightEvaluation, Row, ToldLoss
from eval_pipeline.reports.places.links import compare_path, linked, view_url
from eval_pipeline.reports.places.paths import night_page

MOST_LINES = 60
HOW_TO_SEE = "losses side by side: `eval-pipeline view`; where EVAL_VIEW_URL has its address, messages have links"
_CHANGES = {
    "start": "first evaluation",
    "break": "not comparable with the date before",
    "loss": "significantly worse",
    "gain": "significantly better",
    "drift_down": "drifted below its first date",
    "drift_up": "drifted above its first date",
    "no_change": "no significant change",
}


def night_message(night: Night, ui: str = "") -> str:
    """Returns the text of the digest.

    Args:
        night: the results to report.
        ui: address of the Dagster UI, for links; empty for none.
    """
    lines = [headline(night), *_losses(night), *_failures(night, ui), *(f"• {text}" for text in oddities(night))]
    body = [
        line for suite, found in groupby(night.evaluated, lambda one: one.suite) for line in (suite, *map(_line, found))
    ]
    if len(body) > MOST_LINES:
        body = [*body[:MOST_LINES], f"… and {len(body) - MOST_LINES} more lines on the page"]
    page = night_page(Path(), night.day).as_posix()
    links = [f"workbench: {linked('/')}"] * bool(view_url()) + [f"page: {page} in the reports of the home"]
    links += [f"runs: {ui.rstrip('/')}/runs"] * bool(ui)
    links += [HOW_TO_SEE] * (bool(night.waiting) and not view_url())
    return "\n".join([*lines, *body, *links])


def headline(night: Night) -> str:
    """Returns the night's summary in one line."""
    versions = len({one.model_version for one in night.evaluated})
    suites = len({one.suite for one in night.evaluated})
    new = sum(loss.new for loss in night.losses)
    known = sum(loss.new and loss.acknowledged for loss in night.losses)
    still = sum(not loss.new for loss in night.waiting)
    parts = [f"{_count(versions, 'model version')} on {_count(suites, 'suite')}"]
    acknowledged = f" ({known} acknowledged)" if known else ""
    parts.append(f"{_count(new, 'new loss', 'new losses')}{acknowledged}, {still} still open")
    if in_part := sum(one.is_worse_in_part for one in night.evaluated):
        parts.append(f"{_count(in_part, 'loss', 'losses')} by a part of the suite")
    if night.uncompared:
        parts.append(f"{_count(len(night.uncompared), 'evaluation')} {NOT_COMPARED}")
    if night.failed:
        parts.append(f"{_count(len(night.failed), 'run')} failed")
    if night.canceled:
        parts.append(f"{_count(len(night.canceled), 'run')} canceled")
    if night.unfinished:
        parts.append(f"{_count(len(night.unfinished), 'evaluation')} not complete")
    parts.append(dollars(night.usd) if not night.usd_lacks else _partly(night.usd, night.usd_lacks))
    if night.limit:
        parts.append(f"limit: {night.limit}")
    return f"eval-pipeline: night of {night.day.isoformat()}: {'; '.join(parts)}"


def change(row: Row) -> str:
    """Describes how accuracy changed since the previous date, and whether chance can explain it."""
    if not row.get("compared", True):
        return NOT_COMPARED
    if row["verdict"] is None:
        return f"not tested: {row['reason']}"
    verdict = _CHANGES[row["verdict"]]
    if row["break_reason"]:
        verdict += f" ({row['break_reason']} changed)"
    if row["previous_difference"] is None:
        return verdict
    told = shown.points_text(*(row[f"previous_{name}"] for name in ("difference", "low", "high")))
    against = f"{told} against {row['previous_date']}"
    return f"{against}, p {shown.p_value(row['previous_p_corrected'])}: {verdict}"


def loss_text(loss: ToldLoss) -> str:
    """Describes a loss in one line."""
    row = loss.row
    said = "new loss" if loss.new else f"loss of {row['open_loss_date']} still open"
    known = ", acknowledged" if loss.acknowledged else ""
    by, p = shown.open_loss(row), shown.open_loss_p(row)
    return (
        f"{said}{known}: {loss.suite} · {row['model_version']}: {by} points against {row['open_loss_against']}, p {p}"
    )


def part_losses(night: Night) -> Iterator[str]:
    """Yields a line for each loss that a part of a suite shows."""
    for one in night.evaluated:
        if one.is_worse_in_part:
            yield f"loss by a part of the suite: {one.suite} · {one.model_version}: {changed(one)}"


def figure(one: NightEvaluation) -> str:
    """Returns the accuracy of an evaluation, marked if it is estimated from a part."""
    if one.row is not None:
        return accuracy(one.row)
    if one.estimate is None:
        return UNKNOWN
    share = shown.estimate(*(one.estimate[name] for name in ("value", "low", "high")))
    of = f"{one.estimate['turns']:,} of {one.estimate['suite_turns']:,} turns"
    return f"about {share}, estimated from {of}"


def changed(one: NightEvaluation) -> str:
    """Describes how accuracy changed: against the date before, or of a part against the last full evaluation."""
    if one.row is not None:
        return change(one.row)
    if one.difference is None:
        return why_no_row(one) if one.estimate is None else "a part only: not compared with any date"
    return f"{difference_text(one.difference)}: {one.difference['verdict']}"


def why_no_row(one: NightEvaluation) -> str:
    """Returns why `trends` has nothing of an evaluation."""
    return NO_SERIES.get(one.status) or f"{f'{one.status}: ' * (one.status != COMPLETE)}not compared"


def loss_link(loss: ToldLoss) -> str:
    """Returns a link to the workbench page that shows the two evaluations side by side; a path without its address."""
    days = (loss.row["open_loss_against"], loss.row["eval_date"])
    return linked(compare_path([Partition(loss.suite, loss.row["model_version"], day) for day in days]))


def how_far(one: NightEvaluation) -> str:
    """Returns how many turns got how far: one number if all got to the end."""
    reached = one.coverage
    if reached.scored is None or not reached.is_whole:
        return reached.text()
    return "the only turn" if reached.scored == 1 else f"all {reached.scored:,} turns"


def accuracy(row: Row) -> str:
    """Returns the accuracy with its interval."""
    return shown.estimate(row["accuracy"], row["low"], row["high"])


def dollars(usd: float | None) -> str:
    """Returns an amount in dollars, or the text that it is unknown."""
    return "dollars unknown" if usd is None else shown.dollars(usd)


def _losses(night: Night) -> Iterator[str]:
    yield from (f"• {loss_text(loss)}" + f": {loss_link(loss)}" * bool(view_url()) for loss in night.waiting)
    yield from (f"• {text}" for text in part_losses(night))


def _failures(night: Night, ui: str) -> Iterator[str]:
    for run in (*night.failed, *night.canceled):
        where = f"{ui.rstrip('/')}/runs/{run.run_id}" if ui else f"run {run.run_id}"
        yield f"• the run of {run.model_version} {'failed' if run.failed else 'was canceled'}: {where}"


def oddities(night: Night) -> Iterator[str]:
    """Yields a line for each evaluation whose answers speak for a wrong configuration."""
    for one in night.evaluated:
        if one.signs:
            yield f"{one.suite} · {one.model_version}: {implausible_text(one.signs)}"


def _partly(usd: float | None, lacks: int) -> str:
    """Returns an amount of which a part is unknown."""
    return dollars(None) if usd is None else f"at least {shown.dollars(usd)}, unknown of {_count(lacks, 'evaluation')}"


def _spent(one: NightEvaluation) -> str:
    return f"at least {dollars(one.usd)}" if one.usd_lacks and one.usd is not None else dollars(one.usd)


def _line(one: NightEvaluation) -> str:
    name = f"  {one.model_version}"
    if one.row is None and one.estimate is not None:
        status = "" if one.status == COMPLETE else f"; {one.status}"
        return f"{name}: {figure(one)}, {changed(one)}; {_spent(one)}{status}"
    if one.row is None:
        return f"{name}: {why_no_row(one)}; {_spent(one)}"
    simulated = " (simulated)" if one.row["simulated"] else ""
    coverage = how_far(one)
    # Without examples: these quote the suite's files, and the message leaves the machine.
    if one.cases.left_out:
        coverage = f"{coverage}; {one.cases.text(examples=False)}"
    status = "" if one.status == COMPLETE else f"; {one.status}"
    return f"{name}{simulated}: {accuracy(one.row)}, {change(one.row)}; {coverage}; {_spent(one)}{status}"


def _count(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or f'{one}s'}"
