"""What is known of a command or a Dagster run that is asking: the content of its small file, and the line about it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

from eval_pipeline.core.shown import count, dollars, duration, estimate, rate, tokens
from eval_pipeline.core.shown import counted as unit_text

RUNNING, STOPPED, FAILED = "running", "stopped", "failed"
"""States of the file; it is removed when all went well."""
ASKING, RECOVERY, JUDGING = "asking", "recovery", "judging"
"""What is asked for: first answers, others after errors, verdicts. Another `step` is the name of a stage."""
_ASKED = {ASKING: "", RECOVERY: "asking again after errors: ", JUDGING: "judging: "}
_LEAST_S, _LEAST_DONE = 5.0, 3
"""Of less, nobody can tell how long the rest takes."""
_FEW = 3


@dataclass(slots=True)
class Speed:
    """How fast it went in the last minute, or since the step began.

    Attributes:
        seconds: how long it was looked at.
        calls: requests sent, repeated ones among them.
        done: turns finished otherwise than from the journal.
    """

    seconds: float = 0.0
    calls: int = 0
    done: int = 0


@dataclass(slots=True)
class Status:
    """How far a run is.

    Attributes:
        id: id of the command, or of the Dagster run.
        command: `run`, or `dagster`.
        process: what asks, as `worldwide_mark` tells it.
        state: `running`, `stopped` (a wish or a signal ended it) or `failed`.
        request: what was asked for, so that the same can be asked for again.
        began, at: seconds since 1970: when it began, and when this was written.
        run_id: id of the run in `runs`.
        place: suite, model version and date of the evaluation that is made now.
        number, evaluations: it is the first, second, … of so many.
        step: what it is doing: `asking`, `recovery`, `judging`, or the name of a stage that is at something else.
        step_began: seconds since 1970.
        work, work_total, work_done: what a stage that asks nobody is at, of how many units, and how many it has done.
        work_unit: `turns`, or what else it counts.
        total: turns of the step, times samples; of `recovery`, answers that could not be executed.
        samples: how often each turn is asked.
        done: how many of them are finished, with or without an answer.
        journal: how many were answered from the journal, without a call.
        refused: how many the budget did not allow.
        unanswered: calls that gave no answer in the end.
        readable: how many answers have the form of the track.
        scored, right, low, high: answers judged so far, how many are right, and the 95% interval of that rate.
        why_unscored: why none is judged yet.
        errors: kind, count and an example of what went wrong in the end, most frequent first.
        retried: the same of calls that failed and are made again, which nobody would see else.
        calls: requests sent in this step, repeated ones among them.
        pace: how fast it goes.
        usd, tokens: spent in this step; dollars are None where no price is known.
        usd_before, tokens_before: spent in earlier steps of this evaluation.
        free: whether nothing is paid, as with stand-ins and recorded answers.
        limit_usd, limit_spent: the limit, and what is known to be spent or reserved of it.
        limit_kind: what the limit is on: `command`, `night`, `backfill`, `run` or `model version`.
        waiting: what is being waited for, such as batches.
        problems: sentences on what went wrong in the end.
        first: the fields `OF_FIRST` as they were when all first answers had been asked for; empty before.
    """

    id: str
    command: str
    process: str
    began: float
    state: str = RUNNING
    request: dict[str, Any] = field(default_factory=dict)
    at: float = 0.0
    run_id: str = ""
    place: list[str] = field(default_factory=list)
    number: int = 0
    evaluations: int = 0
    step: str = ""
    step_began: float = 0.0
    work: str = ""
    work_total: int = 0
    work_done: int = 0
    work_unit: str = "turns"
    total: int = 0
    samples: int = 1
    done: int = 0
    journal: int = 0
    refused: int = 0
    unanswered: int = 0
    readable: int = 0
    scored: int = 0
    right: int = 0
    low: float | None = None
    high: float | None = None
    why_unscored: str = ""
    errors: list[list[Any]] = field(default_factory=list)
    retried: list[list[Any]] = field(default_factory=list)
    calls: int = 0
    pace: Speed = field(default_factory=Speed)
    usd: float | None = None
    tokens: int = 0
    usd_before: float | None = None
    tokens_before: int = 0
    free: bool = False
    limit_usd: float | None = None
    limit_spent: float = 0.0
    limit_kind: str = ""
    waiting: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    first: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Returns the content of the file."""
        told = {name: value for (name, usual), value in zip(_USUAL.items(), _ALL(self), strict=True) if value != usual}
        pace = self.pace
        told["pace"] = {"seconds": pace.seconds, "calls": pace.calls, "done": pace.done}
        return _ENCODER.encode(told)

    @property
    def finished(self) -> int:
        """How many turns of the step have had their try: those that the budget refused have not."""
        return self.done - self.refused

    @property
    def asks(self) -> bool:
        """Whether models or judges are being asked."""
        return self.step in _ASKED

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the pace of the last minute; None if nobody can tell.

        Once a budget refuses turns, the rest is refused as well or waits for calls that cost less than was reserved.
        """
        pace = self.pace
        if not self.asks or self.waiting or self.refused or pace.seconds < _LEAST_S or pace.done < _LEAST_DONE:
            return None
        return (self.total - self.done) * pace.seconds / pace.done

    @property
    def calls_a_minute(self) -> float | None:
        """Requests a minute, repeated ones among them; None so far, or where none are counted."""
        if self.free or not self.calls or self.pace.seconds < _LEAST_S:
            return None
        return 60 * self.pace.calls / self.pace.seconds


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_OF_ALL = Status("", "", "", 0.0)
_USUAL = {
    one.name: None if one.default is one.default_factory else getattr(_OF_ALL, one.name) for one in fields(Status)
}
"""What a file leaves out of each field; None of those that each has."""
_ALL = attrgetter(*_USUAL)
OF_FIRST = (
    *("total", "samples", "done", "journal", "refused", "readable", "scored", "right", "low", "high"),
    *("why_unscored", "errors", "retried"),
)
"""What is told of first answers as long as their evaluation is made."""


def status_of(text: str) -> Status:
    """Reads the content of a file; what another version wrote more of is left out. Raises ValueError."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not the status of a run")
    values = {name: value for name, value in found.items() if name in _USUAL}
    try:
        values["pace"] = Speed(**values.get("pace", {}))
        return Status(**values)
    except TypeError as error:
        raise ValueError(str(error)) from error


def line(status: Status) -> str:
    """Returns how far a run is, in one line; the same in the terminal, in Dagster's log and on the strip of pages."""
    return f"{place_text(status)}: {', '.join(parts(status))}"


def end_line(status: Status, state: str) -> str:
    """Returns how a run ended, in one line; `state` is empty if all went well."""
    ended = {STOPPED: "canceled", FAILED: "failed"}.get(state, "done")
    # Where it was last need not be where it failed.
    figures = parts(status) if state == STOPPED or status.asks else parts(status)[1:]
    return f"{place_text(status)}: {': '.join(filter(None, (ended, ', '.join(figures))))}"


def place_text(status: Status) -> str:
    """Returns which evaluation is made, and the how many-th it is."""
    place = " · ".join(status.place[:2]) or status.command
    return f"{place} ({status.number} of {status.evaluations})" if status.number and status.evaluations > 1 else place


def figures_of(status: Status) -> Status:
    """Returns the status whose figures are shown: the first answers', also while another step is on."""
    if not status.first or status.step == ASKING:
        return status
    own = {"errors": status.errors, "retried": status.retried} if status.asks else {}
    return replace(status, step=ASKING, **{**status.first, **own})


def parts(status: Status) -> Sequence[str]:
    """Returns the parts of the line on a run."""
    told, figures = [progress_text(status)], figures_of(status)
    if not figures.asks:
        return told
    if figures is not status:
        told.append(progress_text(figures))
    if figures.journal:
        told.append(f"{count(figures.journal)} from the journal")
    if figures.step != JUDGING and figures.finished:
        told.append(f"{rate(figures.readable / figures.finished)} readable")
    if figures.step == ASKING:
        told.append(f"{'right so far ' if figures.scored else ''}{right_text(figures)}")
    if spent := spent_text(status):
        told.append(spent)
    told += filter(
        None, (errors_text(figures.errors), errors_text(figures.retried, "call made again", "calls made again"))
    )
    if status.asks and (pace := status.calls_a_minute) is not None:
        told.append(f"{count(pace)} calls a minute")
    return [*told, *([left] if (left := left_text(status)) else [])]


def progress_text(status: Status) -> str:
    """Returns what is done of the step."""
    if not status.asks:
        if status.work:
            of = f" of {count(status.work_total)}" if status.work_total else ""
            return f"{status.work}: {count(status.work_done)}{of} {status.work_unit}"
        return "about to ask" if status.step in {"", "generations"} else f"at {status.step.replace('_', ' ')}"
    unit = "turns" if status.step == ASKING else "answers"
    if status.samples > 1 and status.step == ASKING:
        unit = f"answers ({count(status.total // status.samples)} turns × {status.samples})"
    if not (status.done or status.calls or status.waiting):  # nobody has looked into the journal, which may have many
        return f"{_ASKED[status.step]}none of {count(status.total)} {unit} looked at yet"
    refused = f", {count(status.refused)} refused by the budget" if status.refused else ""
    return f"{_ASKED[status.step]}{count(status.finished)} of {count(status.total)} {unit}{refused}"


def right_text(status: Status) -> str:
    """Returns the share of right answers so far with its interval and of how many, or that it is not known."""
    if not status.scored:
        return "not scored yet"
    told = f"{estimate(status.right / status.scored, status.low, status.high)} of {count(status.scored)} scored"
    return told if status.low is not None else f"{told} (of one conversation: no interval)"


def spent_text(status: Status) -> str:
    """Returns what is spent, and of how much; empty where nothing is paid."""
    if status.free:
        return ""
    if status.limit_usd is not None:
        of = f"{dollars(status.limit_spent)} of {dollars(status.limit_usd)}"
        # Others under a limit of many runs spend at the same time.
        return f"at least {of}" if status.limit_kind in {"night", "backfill"} else of
    spent = [usd for usd in (status.usd_before, status.usd) if usd is not None]
    if not spent:
        told = status.tokens_before + status.tokens
        return f"{tokens(told)} tokens" if told else ""
    return dollars(sum(spent))


def errors_text(errors: Sequence[Sequence[Any]], one: str = "error", many: str = "errors") -> str:
    """Returns how many errors there were of which kind, and what they are called."""
    if not errors:
        return ""
    kinds = [f"{count(times)} {kind}" for kind, times, _ in errors[:_FEW]]
    more = ["…"] if len(errors) > _FEW else []
    return f"{unit_text(sum(times for _, times, _ in errors), one, many)} ({', '.join([*kinds, *more])})"


def left_text(status: Status) -> str:
    """Returns how long the rest takes, or what is being waited for; empty if nobody can tell."""
    if status.waiting:
        more = f" and {len(status.waiting) - 1} more" if len(status.waiting) > 1 else ""
        return f"{status.waiting[0]}{more}"
    left = status.seconds_left
    return "" if left is None else f"about {duration(left)} left"


def counted(errors: Mapping[str, tuple[int, str]], most: int = 8) -> list[list[Any]]:
    """Returns errors as a status has them: kind → count and an example, the most frequent first."""
    ordered = sorted(errors.items(), key=lambda one: -one[1][0])
    return [[kind, times, example] for kind, (times, example) in ordered[:most]]
