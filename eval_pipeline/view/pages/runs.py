"""The page of runs: how far those in progress are, stopping them, resuming those that ended early; the last ended."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import RedirectResponse, Response

from eval_pipeline.core import shown
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.shown import UNKNOWN, count
from eval_pipeline.operations.upkeep.resuming import resume
from eval_pipeline.view.addresses import turns_address
from eval_pipeline.view.page import Page, Visit
from eval_pipeline.view.published import Row
from eval_pipeline.workspace.homes.places import place_of
from eval_pipeline.workspace.runs import CANCELED
from eval_pipeline.workspace.watching.running import ELSEWHERE, GONE, SeenRun, seen, why_not_writable, wish_end
from eval_pipeline.workspace.watching.status import (
    ASKING,
    FAILED,
    JUDGING,
    RUNNING,
    STOPPED,
    Status,
    figures_of,
    progress_text,
    right_text,
    spent_text,
)
from eval_pipeline.workspace.watching.watch import output_path

_STATES = {
    RUNNING: "running",
    STOPPED: CANCELED,
    FAILED: "failed",
    GONE: "its process is gone",
    ELSEWHERE: "not heard of",
}
_LAST, _LAST_BYTES = 12, 4000
_ENDED = """SELECT r.suite, r.model_version, r.eval_date, r.evaluation_id, r.status, r.started_at, r.finished_at,
    CASE WHEN coalesce(r.usd_spent, r.judge_usd_spent) IS NOT NULL
        THEN coalesce(r.usd_spent, 0) + coalesce(r.judge_usd_spent, 0) END AS usd,
    coalesce(r.tokens_spent, 0) + coalesce(r.judge_tokens_spent, 0) AS tokens,
    r.evaluation_id IS DISTINCT FROM n.evaluation_id AS earlier
FROM runs AS r LEFT JOIN meta.newest_evaluations AS n USING (suite, model_version, eval_date)
WHERE r.status <> 'running' ORDER BY coalesce(r.finished_at, r.started_at) DESC, r.suite, r.model_version LIMIT 12"""
_HOW = {"complete": "well", "incomplete": "a budget was reached"}
"""Statuses of `runs` in other words than there; `canceled` and `failed` are the same words everywhere."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A run as the page shows it.

    Attributes:
        state: its state in words.
        facts: names and texts.
        note: what is to be known about it, as a sentence; may be empty.
        said: the last that a resumed run has printed, if it ended early.
        figures: the status whose figures are shown.
    """

    seen: SeenRun
    state: str
    facts: Sequence[tuple[str, str]]
    note: str
    said: str
    figures: Status

    @property
    def resumable(self) -> bool:
        """Whether it can be resumed from here."""
        return not self.seen.runs and not self.seen.host and bool(self.seen.status.request.get("partitions"))


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended, as the published store knows it.

    Attributes:
        place: the evaluation that it made or changed.
        address: its turns; empty if the run did not come to its end.
        how: how it ended.
        at: when it ended, else when it began.
        seconds: how long it took; None if it was killed.
        cost: what it spent.
    """

    place: Partition
    address: str
    how: str
    at: datetime
    seconds: float | None
    cost: str


def _runs(visit: Visit) -> Response:
    home = visit.bench.home
    runs = [_shown(visit, one) for one in seen(home)]
    locked = why_not_writable(home)
    elsewhere = place_of(home).is_shared
    ended = _ended(visit)
    return visit.page("runs.html.j2", "Runs", shown=runs, ended=ended, locked=locked, elsewhere=elsewhere, watches=True)


def _ended(visit: Visit) -> list[Ended]:
    with suppress(StoreError), visit.bench.published.look() as look:  # the first run makes the store
        return look.remembered("ended runs", lambda: [ended_run(row) for row in look.rows(_ENDED)])
    return []


def ended_run(row: Row) -> Ended:
    """Returns how a row of `runs` is shown."""
    place = Partition(row["suite"], row["model_version"], row["eval_date"])
    began, end = row["started_at"], row["finished_at"]
    status: str = row["status"]
    made = status in {"complete", "incomplete"}
    of_date = Partition(place.suite, place.model_version, place.eval_date, row["evaluation_id"] or "")
    cost = shown.dollars(row["usd"]) if row["usd"] is not None else UNKNOWN
    if row["usd"] is None and row["tokens"]:
        cost = f"{shown.tokens(row['tokens'])} tokens"
    return Ended(
        place,
        turns_address(of_date if row["earlier"] else place) if made else "",
        "failed (killed)" if status == "failed" and end is None else _HOW.get(status, status),
        end or began,
        None if end is None else (end - began).total_seconds(),
        cost,
    )


def _shown(visit: Visit, one: SeenRun) -> Shown:
    said = ""
    if not one.runs:
        with suppress(OSError):
            text = output_path(visit.bench.home, one.status.id).read_bytes()[-_LAST_BYTES:]
            said = "\n".join(text.decode(errors="replace").strip().splitlines()[-_LAST:])
    return Shown(one, _STATES[one.state], _facts(one.status), _note(one), said, figures_of(one.status))


def _facts(status: Status) -> list[tuple[str, str]]:
    told, figures = list[tuple[str, str]](), figures_of(status)
    if status.number and status.evaluations > 1:
        told.append(("Model versions of suites", f"{status.number} of {status.evaluations}"))
    if not figures.asks:
        return told
    if figures is not status:
        told.append(("Asked", progress_text(figures)))
    if figures.step != JUDGING and figures.finished:
        told.append(("Readable", f"{count(figures.readable)} of {count(figures.finished)}"))
    if figures.step == ASKING:
        told.append(("Right so far", right_text(figures)))
    if figures.journal:
        told.append(("From the journal", count(figures.journal)))
    if spent := spent_text(status):
        told.append(("Spent", spent))
    if status.asks and status.state == RUNNING and (pace := status.calls_a_minute) is not None:
        told.append(("Calls a minute", count(pace)))
    return told


def _note(one: SeenRun) -> str:
    if one.state == ELSEWHERE:
        return f"It runs on {one.host}, which has not written for a while: whether it goes on can be seen there only."
    if one.host:
        return f"It runs on {one.host}."
    if one.state == GONE:
        return (
            "Its process was ended from outside, or failed before it could say why. Nothing that was answered is lost."
        )
    return ""


def _stop(visit: Visit) -> Response:
    wish_end(visit.bench.home, _known_as(visit))
    return RedirectResponse("/runs", 303)


def _resume(visit: Visit) -> Response:
    resume(visit.bench.home, _known_as(visit))
    return RedirectResponse("/runs", 303)


def _known_as(visit: Visit) -> str:
    return visit.form.get("run", [""])[-1]


PAGES = (
    Page("/runs", _runs, stored=False),
    Page("/runs/stop", _stop, ("POST",), stored=False),
    Page("/runs/resume", _resume, ("POST",), stored=False),
)
