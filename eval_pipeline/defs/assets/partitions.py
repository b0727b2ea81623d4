"""The one partition dimension, and the tags that fix a run's date, scope and freshness at its launch."""

import os
from collections.abc import Iterable, Mapping
from datetime import date

import dagster as dg

from eval_pipeline.core.days import today
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.scope import FULL, Scope
from eval_pipeline.workspace.workspace import Workspace

DIMENSION = "model_version"
model_version = dg.DynamicPartitionsDefinition(name=DIMENSION)

EVAL_DATE = "eval_pipeline/eval_date"
SCOPE = "eval_pipeline/scope"
EPOCH = "eval_pipeline/epoch"
CANARY = "eval_pipeline/canary"
"""Tag of a run: `false` asks all turns, however few answers of the first ones can be read."""
RESCORES = "eval_pipeline/rescores_compared"
"""Tag of a run that, before it compares, scores again what it compares and other code has scored. Asks nobody."""


NO_CANARY = "EVAL_CANARY"
"""Environment variable: `0` is as the tag with `false`, for every run."""


def run_context(run_id: str, tags: Mapping[str, str]) -> RunContext:
    """What the stages have to know of the run."""
    canary = tags.get(CANARY) or os.environ.get(NO_CANARY) or "true"
    return RunContext(run_id, tags.get(EPOCH, ""), canary=canary.strip().lower() not in {"false", "0", "no", "off"})


def run_scope(tags: Mapping[str, str]) -> Scope:
    """The part of the suites that the run covers."""
    return Scope.from_label(tags.get(SCOPE, FULL))


def date_tag(suite: str, makes_generations: bool) -> str:
    """The tag that fixes the date of a suite in a run launched without one.

    Runs that ask are of one day; without asking, each suite has the date of what it builds on.
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
    """Suite, model version and evaluation date of an asset run.

    The date is the suite's or the run's tag, else the newest one among the upstream files, else the day on which the
    run was launched, else today.

    Raises:
        UsageError: the tag is no date.
    """
    if fixed := tags.get(date_tag(suite, makes_generations=False)) or tags.get(EVAL_DATE):
        try:
            return Partition(suite, key, date.fromisoformat(fixed))
        except ValueError as error:
            raise UsageError(f"the run's tag {EVAL_DATE} is '{fixed}'; expected YYYY-MM-DD") from error
    dates = [
        found.eval_date
        for table in upstream
        for found in workspace.record.partitions(table)
        if (found.suite, found.model_version) == (suite, key) and found.eval_date is not None
    ]
    return Partition(suite, key, max(dates, default=launched or today()))
