"""Extracts what went wrong in a run from Dagster's events, one sentence each."""

import dagster as dg

from eval_pipeline.analysis.comparisons.verdicts import SERVED_AS_BEFORE, SIDE_BY_SIDE


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
