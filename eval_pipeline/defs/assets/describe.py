"""How results are shown in the Dagster UI: column schemas, metadata, check results."""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_shared.utils.warnings import PreviewWarning

from eval_pipeline.chain.evaluation import COMPARING
from eval_pipeline.chain.stage import Check, Stage
from eval_pipeline.core.shown import rounded
from eval_pipeline.defs.assets.previews import charts, overridden, preview, spent
from eval_pipeline.reports.places.links import evaluation_path, linked, suite_path, view_url
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import StageResult

_HANDED_ON = frozenset({"published", "report"})
"""Stages of an evaluation after which the workbench shows it."""


def column_schema(table: Table) -> dict[str, dg.TableSchema]:
    """Returns the columns of a table with their comments, as definition metadata."""
    columns = [dg.TableColumn(c.name, c.type.lower(), description=c.comment) for c in table.columns]
    return {"dagster/column_schema": dg.TableSchema(columns)}


def metadata(told: Mapping[str, Any]) -> dict[str, Any]:
    """Converts facts of a stage to metadata; null values are left out, since Dagster plots numbers only."""
    return {name: _value(value) for name, value in told.items() if value is not None}


def facts(result: StageResult) -> dict[str, Any]:
    """Returns the metadata that a result has by itself."""
    return {"dagster/row_count": result.rows, "reused": result.reused, **metadata(result.facts)}


def shown(stage: Stage, inputs: Inputs, result: StageResult) -> dict[str, Any]:
    """Returns the metadata of a materialisation: facts, tokens and cost, a table, and charts of the report."""
    found = facts(result)
    found |= metadata(spent(inputs, stage.name))
    found |= {"gold": text} if (text := overridden(inputs, stage.name)) else {}
    folder = result.facts.get("folder")
    texts = {
        "table": preview(inputs, stage.name, stage.writes[0] if stage.writes else None),
        "charts": charts(folder) if isinstance(folder, Path) else "",
    }
    if url := workbench(stage, inputs):
        found["workbench"] = dg.MetadataValue.url(url)
    return found | {name: dg.MetadataValue.md(text) for name, text in texts.items() if text}


def workbench(stage: Stage, inputs: Inputs) -> str | None:
    """Returns the workbench link of a stage's result; None if the workbench's address is not configured."""
    if not view_url():
        return None
    if stage.name in COMPARING:
        return linked(suite_path(inputs.suite))
    if stage.name in _HANDED_ON and inputs.partition is not None:
        return linked(evaluation_path(inputs.partition))
    return None


def check_spec(key: dg.AssetKey, check: Check, partitions: dg.PartitionsDefinition[str] | None) -> dg.AssetCheckSpec:
    """Returns a check's specification; on a partitioned asset, each partition has its own result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PreviewWarning)  # the way to declare it may change, but not the stored results
        return dg.AssetCheckSpec(
            check.name,
            asset=key,
            description=check.description,
            blocking=check.blocking,
            partitions_def=partitions,
        )


def check_result(name: str, verdict: CheckVerdict, *, warning: bool = False) -> dg.AssetCheckResult:
    """Converts a verdict to an asset check's result."""
    severity = dg.AssetCheckSeverity.WARN if warning or verdict.warning else dg.AssetCheckSeverity.ERROR
    return dg.AssetCheckResult(
        passed=verdict.passed,
        check_name=name,
        severity=severity,
        description=verdict.text,
        metadata=metadata(verdict.facts),
    )


def _value(value: Any) -> Any:
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):  # shown as it is, and plotted
        return rounded(value)
    if isinstance(value, Path):
        return dg.MetadataValue.path(str(value))
    return dg.MetadataValue.json(json.loads(json.dumps(value, default=str)))
