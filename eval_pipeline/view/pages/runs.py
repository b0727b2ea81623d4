"""The page of runs: how far those in progress are, stopping them, and resuming those that ended early."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response

from eval_pipeline.core.shown import count
from eval_pipeline.operations.upkeep.resuming import resume
from eval_pipeline.view.page import Page, Visit
from eval_pipeline.workspace.watching.running import ELSEWHERE, GONE, Seen, seen, why_not_writable, wish_end
from eval_pipeline.workspace.watching.status import (
    ASKING,
    FAILED,
    JUDGING,
    RUNNING,
    STOPPED,
    Status,
    right_text,
    spent_text,
)
from eval_pipeline.workspace.watching.watch import output_path

_STATES = {
    RUNNING: "running",
    STOPPED: "stopped",
    FAILED: "ended with problems",
    GONE: "its process is gone",
    ELSEWHERE: "not heard of",
}
_LAST, _LAST_BYTES = 12, 4000


@dataclass(frozen=True, slots=True)
class Shown:
    """A run as the page shows it.

    Attributes:
        state: its state in words.
        facts: names and texts.
        note: what is to be known about it, as a sentence; may be empty.
        said: the last that a resumed run has printed, if it ended early.
    """

    seen: Seen
    state: str
    facts: Sequence[tuple[str, str]]
    note: str
    said: str

    @property
    def resumable(self) -> bool:
        """Whether it can be resumed from here."""
        return not self.seen.runs and not self.seen.host and bool(self.seen.status.request.get("partitions"))


def _runs(visit: Visit) -> Response:
    home = visit.bench.home
    shown = [_shown(visit, one) for one in seen(home)]
    locked = why_not_writable(home)
    elsewhere = home.bucket is not None
    return visit.page("runs.html.j2", "Runs", shown=shown, locked=locked, elsewhere=elsewhere, watches=True)


def _shown(visit: Visit, one: Seen) -> Shown:
    said = ""
    if not one.runs:
        with suppress(OSError):
            text = output_path(visit.bench.home, one.status.id).read_bytes()[-_LAST_BYTES:]
            said = "\n".join(text.decode(errors="replace").strip().splitlines()[-_LAST:])
    return Shown(one, _STATES[one.state], list(_facts(one.status)), _note(one), said)


def _facts(status: Status) -> list[tuple[str, str]]:
    told = [("Model versions of suites", f"{status.number} of {status.evaluations}")] if status.evaluations > 1 else []
    if not status.asks:
        return told
    if status.step != JUDGING and status.finished:
        told.append(("Readable", f"{count(status.readable)} of {count(status.finished)}"))
    if status.step == ASKING:
        told.append(("Right so far", right_text(status)))
    if status.journal:
        told.append(("From the journal", count(status.journal)))
    if spent := spent_text(status):
        told.append(("Spent", spent))
    if status.state == RUNNING and (pace := status.calls_a_minute) is not None:
        told.append(("Calls a minute", count(pace)))
    return told


def _note(one: Seen) -> str:
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
