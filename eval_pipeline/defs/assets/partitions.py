"""The partition dimension (model versions), and the tags that fix a run's date, scope and freshness at its launch."""

import os
from collections.abc import Iterable, Mapping
from datetime import date

import dagster as dg

from eval_pipeline.core.covering.cost_limit import cost_limit
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.days import today
from eval_pipeline.defs.dagster_inside.running import BACKFILL_ID_TAG, ROOT_RUN_ID_TAG, SCHEDULE_NAME_TAG
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.asked.scope import FULL, Scope
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Workspace

DIMENSION = "model_version"
model_version = dg.DynamicPartitionsDefinition(name=DIMENSION)

EVAL_DATE = "eval_pipeline/eval_date"
SCOPE = "eval_pipeline/scope"
EPOCH = "eval_pipeline/epoch"
PART = "eval_pipeline/part"
"""Run tag: largest part of the cases that a night asks, e.g. `30%` (`ModelVersion.nightly`)."""
CANARY = "eval_pipeline/canary"
"""Run tag: with `false`, all turns are asked, however few of the first answers are readable."""
RESCORES = "eval_pipeline/rescores_compared"
"""Run tag: before comparing, the run rescores evaluations whose code has changed, without asking models."""
NO_CANARY = "EVAL_CANARY"
"""Environment variable: `0` has the effect of the tag with `false`, for every run."""


def run_context(run_id: str, tags: Mapping[str, str]) -> RunContext:
    """Returns what the stages need to know about the run."""
    account = _account(run_id, tags)
    canary = tags.get(CANARY) or os.environ.get(NO_CANARY) or "true"
    return RunContext(
        run_id,
        tags.get(EPOCH, ""),
        canary=canary.strip().lower() not in {"false", "0", "no", "off"},
        cost_limit=cost_limit(account),
    )


def night_account(day: str) -> str:
    """Returns the account under which all runs of a night spend, given its date in ISO form."""
    return f"night {day}"


def _account(run_id: str, tags: Mapping[str, str]) -> str:
    """Returns the account under which a run spends: that of its night or backfill, or else one of its own."""
    if SCHEDULE_NAME_TAG in tags and EVAL_DATE in tags:
        return night_account(tags[EVAL_DATE])
    backfill = tags.get(BACKFILL_ID_TAG)
    return f"backfill {backfill}" if backfill else f"run {tags.get(ROOT_RUN_ID_TAG, run_id)}"


def run_scope(tags: Mapping[str, str]) -> Scope:
    """Returns the part of the suites that the run covers."""
    return Scope.from_label(tags.get(SCOPE, FULL))


def date_tag(suite: str, makes_generations: bool) -> str:
    """Returns the tag that fixes the date of a suite in a run launched without one.

    Runs that ask models use one date for all suites; otherwise each suite has the date of the results it builds on.
    """
    return EVAL_DATE if makes_generations else f"{EVAL_DATE}/{suite}"


def run_partition(
    suite: str,
    key: str,
    tags: Mapping[str, str],
    workspace: Workspace,
    upstream: Iterable[Table] = (),
    launched: date | None = None,
) -> Partition:
    """Returns suite, model version and evaluation date of an asset run.

    The date is taken from the suite's or the run's tag, else the newest one among the upstream files, else the day of
    the run's launch, else today.

    Raises:
        UsageError: the tag is not a date.
    """
    if fixed := tags.get(date_tag(suite, makes_generations=False)) or tags.get(EVAL_DATE):
        try:
            return Partition(suite, key, date.fromisoformat(fixed))
        except ValueError as error:
            raise UsageError(f"the run's tag {EVAL_DATE} is '{fixed}'; expected YYYY-MM-DD") from error
    dates = [
        found.eval_date
        for table in upstream
        for found in workspace.record.partitions(table, RecordKey(suite, key))
        if found.eval_date is not None
    ]
    return Partition(suite, key, max(dates, default=launched or today()))
