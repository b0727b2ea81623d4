"""What came of a Dagster run, read from its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from dagster._core.execution.job_execution_result import JobExecutionResult

from eval_pipeline.chain.evaluation import COMPARING, INGESTING
from eval_pipeline.defs.automation.failures import asset_of, error_of, suite_of
from eval_pipeline.operations.keeping import REPORTS


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of one suite for one model version; `model_version` is empty if the suite's files or cases are wrong.

    Attributes:
        errors: a sentence for each failed step, and for each failed check that is not a warning.
        incomplete: whether steps were left out, so that there is nothing to show.
    """

    suite: str
    model_version: str
    errors: tuple[str, ...]
    incomplete: bool


def finished(
    result: JobExecutionResult,
    suites: Sequence[str],
    model_version: str,
    examples: Mapping[tuple[str, str, str], str],
) -> list[Finished]:
    """Returns the result of each suite of a run; `examples` has excerpts of answers on which stages failed."""
    errors: dict[str, list[str]] = {suite: [] for suite in suites}
    incomplete: set[str] = set()
    unreadable: set[str] = set()
    for event in result.all_events:
        if not event.step_key:
            continue
        suite, asset = suite_of(event), asset_of(event)
        # Failed checks about other model versions are not this run's errors; its own are checked at the end.
        compared = asset in COMPARING and event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION
        if not compared and (sentence := error_of(event)):
            shown = examples.get((suite, asset, model_version), "") if event.is_step_failure else ""
            errors[suite].append(f"{sentence} (e.g. {shown})" if shown else sentence)
        skipped = event.event_type == dg.DagsterEventType.STEP_SKIPPED and asset not in REPORTS
        ended = event.is_step_failure or skipped
        if ended and asset not in COMPARING:
            incomplete.add(suite)
            if asset in INGESTING:
                unreadable.add(suite)
    return [
        Finished(suite, "" if suite in unreadable else model_version, tuple(found), suite in incomplete)
        for suite, found in errors.items()
    ]


def interrupted(result: JobExecutionResult) -> bool:
    """Whether a signal ended the run; Dagster reports it as a failure of the interrupted step."""
    errors = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    return any(error is not None and error.cls_name == "DagsterExecutionInterruptedError" for error in errors)


def uncompared(job: dg.JobDefinition, result: JobExecutionResult) -> set[str]:
    """Returns the suites whose comparison the run skipped because a step of the evaluation had failed.

    Which steps are skipped depends on what failed: `trends` needs coverage, `gold_suspects` does not. The other model
    versions are compared anyway, because the UI would otherwise show steps as failed that were never tried. Suites in
    which a comparison step itself failed are left out, as it would fail again.
    """
    begun, failed = set(), set()
    for event in result.all_events:
        if event.event_type == dg.DagsterEventType.STEP_START:
            begun.add((suite_of(event), asset_of(event)))
        elif event.is_step_failure and asset_of(event) in COMPARING:
            failed.add(suite_of(event))
    planned = {(key.path[0], key.path[-1]) for key in job.asset_layer.selected_asset_keys}
    # A comparison report waits for the publishing, so that it may be left for later.
    return {suite for suite, asset in planned - begun if asset in COMPARING and asset not in REPORTS} - failed
