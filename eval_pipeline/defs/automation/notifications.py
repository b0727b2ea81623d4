"""Sends one notification for each run that failed or has a failed check, to a webhook or else to the log."""

import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import dagster as dg

from eval_pipeline.analysis.comparisons.verdicts import SERVED_AS_BEFORE, SIDE_BY_SIDE
from eval_pipeline.chain.evaluation import COMPARING, INGESTING
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.errors import EvalError
from eval_pipeline.defs.assets.partitions import EVAL_DATE
from eval_pipeline.defs.dagster_inside.running import BACKFILL_ID_TAG, PARTITION_NAME_TAG
from eval_pipeline.defs.running.origin import is_of_command_line
from eval_pipeline.reports.contents.gold import edition_rows_told, overridden_text
from eval_pipeline.reports.nights.message import HOW_TO_SEE
from eval_pipeline.reports.places.links import linked, view_url
from eval_pipeline.store.tables import COVERAGE, GOLD_EDITIONS


def suite_of(event: dg.DagsterEvent) -> str:
    """Returns the suite of a step event; a step is named after its asset: `suite__name`."""
    return (event.step_key or "").rpartition("__")[0]


def asset_of(event: dg.DagsterEvent) -> str:
    """Returns the asset of a step event, without its suite."""
    return (event.step_key or "").rpartition("__")[2]


def error_of(event: dg.DagsterEvent) -> str | None:
    """Returns the error in an event: a failed step, or a failed check that is not a mere warning; else None."""
    if event.is_step_failure:
        failure = event.step_failure_data
        if failure.user_failure_data is not None and failure.user_failure_data.description:
            return failure.user_failure_data.description
        return failure.error_display_string
    if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        found = event.asset_check_evaluation_data
        told = found.severity == dg.AssetCheckSeverity.ERROR or found.check_name == SERVED_AS_BEFORE
        if not found.passed and told:
            return f"check {found.check_name}: {found.description}"
    return None


def side_by_side_of(event: dg.DagsterEvent) -> list[str]:
    """Returns workbench paths that show what a check has found; empty for other events."""
    if event.event_type != dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        return []
    told = event.asset_check_evaluation_data.metadata.get(SIDE_BY_SIDE)
    paths = told.value if isinstance(told, dg.JsonMetadataValue) else None
    return [str(path) for path in paths or ()]


NOTIFY_URL = "EVAL_NOTIFY_URL"
"""Environment variable: URL to which notifications are posted in the form of Slack's incoming webhooks."""
NOTIFY_FORM = "EVAL_NOTIFY_FORM"
"""Environment variable: `slack` (default) or `plain` (only the text)."""
UI_URL = "EVAL_UI_URL"
"""Environment variable: address of the UI, for links."""
NOTIFIED = ".dagster/eval_pipeline/notified"
"""Tag of a run that was reported. Re-executions copy tags, so its value is the run's id."""

FORMS = ("slack", "plain")
MOST_SENTENCES = 10
LONGEST_SENTENCE = 600
TIMEOUT_SECONDS = 10.0
PAUSES_SECONDS = (1.0, 4.0)
"""Pauses before the second and the third attempt."""
TELLING = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.ASSET_CHECK_EVALUATION}

OF_SUITE = frozenset({*INGESTING, *COMPARING})
"""Assets that all model versions of a suite share."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notice:
    """What to report about a failed step or check.

    Attributes:
        of_suite: whether it concerns the suite rather than one model version.
        paths: workbench paths that show it.
    """

    sentence: str
    of_suite: bool
    paths: tuple[str, ...] = ()


@dg.run_failure_sensor(
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=f"Tells of a run that failed: webhook by {NOTIFY_URL}, else the log.",
)
def notify_failed_run(context: dg.RunFailureSensorContext) -> None:
    """Notifies of a failed run, whatever the reason."""
    notify(context.instance, context.dagster_run, context.failure_event.message or "the run failed")


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=f"Tells of a check that failed in a run that did not: webhook by {NOTIFY_URL}, else the log.",
)
def notify_failed_check(context: dg.RunStatusSensorContext) -> None:
    """Notifies of a successful run with a failed check that is not a warning."""
    notify(context.instance, context.dagster_run)


def notify(instance: dg.DagsterInstance, run: dg.DagsterRun, otherwise: str | None = None) -> None:
    """Sends one notification of what went wrong in a run, unless already done or the run was started on a terminal.

    Problems of a suite as a whole make every run of a night or a backfill fail; they are reported once.

    Args:
        instance: has the run's events.
        run: a run that has ended.
        otherwise: the message if no step or check reports an error; None: then nothing went wrong.

    Raises:
        EvalError: the webhook did not accept it.
    """
    known = instance.get_run_by_id(run.run_id) or run
    if is_of_command_line(known) or known.tags.get(NOTIFIED) == run.run_id:
        return
    found = errors_of(instance, run.run_id)
    if found:
        told = {
            error for other in _told_runs(instance, known) for error in errors_of(instance, other) if error.of_suite
        }
        new = [error for error in found if error not in told]
    else:
        new = [Notice(otherwise, of_suite=False)] if otherwise else []
    if not new:
        return
    text = message(known, new, os.environ.get(UI_URL, ""), figures_of(instance, run.run_id))
    url = os.environ.get(NOTIFY_URL, "")
    if url:
        post(url, text)
    else:
        logger.error(text)
    instance.add_run_tags(run.run_id, {NOTIFIED: run.run_id})


def errors_of(instance: dg.DagsterInstance, run_id: str) -> list[Notice]:
    """Returns a notice for each failed step and check of a run."""
    events = [entry.dagster_event for entry in instance.all_logs(run_id, of_type=TELLING)]
    wrong = [(event, error) for event in events if event is not None and (error := error_of(event))]
    return [
        Notice(f"{suite_of(event)}: {error}", asset_of(event) in OF_SUITE, tuple(side_by_side_of(event)))
        for event, error in wrong
    ]


def figures_of(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """Returns a line per suite on the coverage of a run's figures, and on whether their gold is overridden.

    Returns an empty list if the run did not get that far.
    """
    found = []
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION):
        event = entry.dagster_event
        if event is None or (say := _SAID.get(asset_of(event))) is None:
            continue
        told = {name: value.value for name, value in event.step_materialization_data.materialization.metadata.items()}
        if text := say(told):
            found.append(f"{suite_of(event)}: {text}")
    return found


_SAID: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    COVERAGE.name: lambda told: "; ".join(
        filter(
            None,
            [
                CaseCounts.from_row(told).count(),
                Coverage.from_row(told).text(),
                *CaseCounts.from_row(told).gold_texts(),
            ],
        )
    ),
    GOLD_EDITIONS.name: lambda told: overridden_text(edition_rows_told(told)),
}
"""Asset name → function that describes its metadata."""


def _told_runs(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[str]:
    """Returns the other runs of the same backfill or evaluation date that were already reported."""
    together = next((name for name in (BACKFILL_ID_TAG, EVAL_DATE) if name in run.tags), None)
    if together is None:
        return []
    others = instance.get_runs(dg.RunsFilter(tags={together: run.tags[together]}))
    return [other.run_id for other in others if other.tags.get(NOTIFIED) == other.run_id]


def message(run: dg.DagsterRun, notices: Sequence[Notice], ui: str = "", figures: Sequence[str] = ()) -> str:
    """Returns the text of a notification.

    Args:
        run: the run.
        notices: what went wrong.
        ui: address of the UI, for a link.
        figures: coverage and gold of the run's figures.
    """
    paths = [path for notice in notices for path in notice.paths]
    lines = [f"eval-pipeline: {_subject(run, notices)}"]
    lines += [f"• {_shortened(notice.sentence)}" for notice in notices[:MOST_SENTENCES]]
    lines += [f"… and {len(notices) - MOST_SENTENCES} more"] * (len(notices) > MOST_SENTENCES)
    lines += figures[:MOST_SENTENCES]
    lines += [f"side by side: {linked(path)}" for path in paths[:MOST_SENTENCES] if view_url()]
    lines += [HOW_TO_SEE] * (bool(paths) and not view_url())
    lines.append(f"{ui.rstrip('/')}/runs/{run.run_id}" if ui else f"run {run.run_id}")
    return "\n".join(lines)


def _subject(run: dg.DagsterRun, notices: Sequence[Notice]) -> str:
    """Returns what a notification is about: not the run of one model version, if it found out about all of a suite."""
    day = run.tags.get(EVAL_DATE, "")
    if notices and all(notice.of_suite for notice in notices) and run.status != dg.DagsterRunStatus.FAILURE:
        suites = ", ".join(dict.fromkeys(notice.sentence.partition(":")[0] for notice in notices))
        return " ".join(filter(None, (suites, day, "has failed checks")))
    # The name of an asset's run is Dagster's own, and says nothing.
    job = "" if run.job_name.startswith("__") else run.job_name
    name = run.tags.get(PARTITION_NAME_TAG, "")
    ended = "failed" if run.status == dg.DagsterRunStatus.FAILURE else "has failed checks"
    return " ".join(filter(None, (job or ("run of" if name else "a run"), name, day, ended)))


def post(url: str, text: str) -> None:
    """Posts a text to a webhook, with retries where they may help.

    Raises:
        EvalError: it was refused or could not be delivered. The message says why, but not the address, which is a
            secret.
    """
    import httpx2

    body, headers = body_of(text, os.environ.get(NOTIFY_FORM) or FORMS[0])
    wrong = ""
    for pause in (0.0, *PAUSES_SECONDS):
        time.sleep(pause)
        try:
            answer = httpx2.post(url, content=body, headers=headers, timeout=TIMEOUT_SECONDS)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
            raise EvalError(f"the address in {NOTIFY_URL} is not one to which messages can be posted") from None
        except httpx2.TransportError as error:
            wrong = f"could not be delivered ({type(error).__name__})"
            continue
        if answer.is_success:
            return
        wrong = f"was refused with {answer.status_code}"
        if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS and not answer.is_server_error:
            break
    logger.error(text)
    raise EvalError(f"the notification to the webhook in {NOTIFY_URL} {wrong}")


def body_of(text: str, form: str) -> tuple[bytes, dict[str, str]]:
    """Returns the body to post and its headers.

    Raises:
        EvalError: the form is unknown.
    """
    if form == "slack":
        return json.dumps({"text": escaped(text)}).encode(), {"Content-Type": "application/json"}
    if form == "plain":
        return text.encode(errors="replace"), {"Content-Type": "text/plain; charset=utf-8"}
    raise EvalError(f"{NOTIFY_FORM} is '{form}'; it has to be one of {', '.join(FORMS)}")


def escaped(text: str) -> str:
    """Escapes text for Slack, so that model-written text cannot create links or notify the whole channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _shortened(error: str) -> str:
    """Returns a text in one line; of a long one the end, which says what to do, and as much as has room before."""
    line = " ".join(error.split())
    if len(line) <= LONGEST_SENTENCE:
        return line
    advice = line.rpartition("; ")[2]
    kept = advice if len(advice) < LONGEST_SENTENCE // 2 and advice != line else ""
    begin = line[: LONGEST_SENTENCE - len(kept) - 3]
    begin = begin.rpartition(" ")[0] or begin
    return f"{begin} … {kept}".strip()
