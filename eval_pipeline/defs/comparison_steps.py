"""The end of a suite's chain as data: the assets that look at all its model versions."""

from collections.abc import Callable
from dataclasses import dataclass

from eval_pipeline.analysis import comparisons
from eval_pipeline.stages.checks.verdicts import Verdict
from eval_pipeline.stages.reporting import REPORT_VERSION, report_comparison
from eval_pipeline.store import tables
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace


@dataclass(frozen=True, slots=True)
class SuiteCheck:
    """A check that such an asset makes on what it has just written; none is waited for.

    Attributes:
        warning: whether failing it is a remark, not an error.
    """

    name: str
    description: str
    verdict: Callable[[Workspace, str], Verdict]
    warning: bool = False


@dataclass(frozen=True, slots=True)
class SuiteStep:
    """One asset without partitions at the end of a suite's chain.

    Attributes:
        after: names of the assets of the chain that it reads, of all model versions.
        table: its table, None where it writes no record.
        version: of its code; a change makes the asset stale.
    """

    name: str
    after: tuple[str, ...]
    table: Table | None
    version: str
    kinds: frozenset[str]
    description: str
    execute: Callable[[Workspace, str, Progress], StageResult]
    checks: tuple[SuiteCheck, ...] = ()


COMPARISON_STEPS = (
    SuiteStep(
        "model_comparisons",
        ("statistics",),
        tables.MODEL_COMPARISONS,
        comparisons.VERSION,
        frozenset({"python", "parquet"}),
        tables.MODEL_COMPARISONS.comment,
        comparisons.compare_models,
    ),
    SuiteStep(
        "trends",
        ("statistics", "cost_per_correct_answer"),
        tables.TRENDS,
        comparisons.VERSION,
        frozenset({"python", "parquet"}),
        tables.TRENDS.comment,
        comparisons.make_trends,
        (
            SuiteCheck(
                "no_significant_loss",
                "No model version is significantly worse than on the date before.",
                comparisons.check_no_loss,
            ),
            SuiteCheck(
                "no_drift",
                "No model version is significantly worse than on its first date since a break.",
                comparisons.check_no_drift,
                warning=True,
            ),
        ),
    ),
    SuiteStep(
        "comparison_published",
        ("model_comparisons", "trends"),
        None,
        "1",
        frozenset({"duckdb"}),
        "Comparisons and trends of the suite in the DuckDB store that people query.",
        comparisons.publish_comparisons,
    ),
    SuiteStep(
        "comparison_report",
        ("comparison_published",),
        None,
        REPORT_VERSION,
        frozenset({"excel", "parquet"}),
        "Files for people: all model versions of the suite side by side, as a page, a workbook and charts.",
        report_comparison,
    ),
)
"""In order; they are not partitioned, so that any model version's run makes them anew."""
COMPARISONS = tuple(step.name for step in COMPARISON_STEPS)
