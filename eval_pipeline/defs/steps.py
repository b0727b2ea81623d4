"""The chain of a suite as data: what each asset runs, what it comes after, and what versions it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eval_pipeline.analysis.aggregates import AGGREGATES, aggregate, aggregates_of
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.stages import evidence as gather_evidence
from eval_pipeline.stages import generate, recover, score
from eval_pipeline.stages import judging as judge
from eval_pipeline.stages.checks.verdicts import (
    BLOCKING,
    Verdict,
    check_budget_kept,
    check_every_turn_once,
    check_metric_errors,
    check_unsafe_caught,
    has_safety_verdicts,
)
from eval_pipeline.stages.publishing import publish_partition
from eval_pipeline.stages.reporting import REPORT_VERSION, report
from eval_pipeline.store import tables
from eval_pipeline.store.schemas import Table
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.scope import Scope
from eval_pipeline.workspace.track_tables import turns_table
from eval_pipeline.workspace.workspace import StageResult, Workspace


@dataclass(frozen=True, slots=True)
class Check:
    """A check that an asset makes on what it has just written."""

    name: str
    description: str
    verdict: Callable[[Workspace, Partition], Verdict]

    @property
    def blocking(self) -> bool:
        """Whether what comes after waits for it to pass."""
        return self.verdict in BLOCKING


@dataclass(frozen=True, slots=True)
class StepRun:
    """One run of a step."""

    evaluation: EvaluationResource
    partition: Partition
    run: RunContext
    scope: Scope


@dataclass(frozen=True, slots=True)
class Step:
    """One partitioned asset of a suite's chain.

    Attributes:
        after: names of the assets of the chain that it reads.
        table: its main table, None where it writes no record.
        version: of its code; a change makes the asset stale.
        asks: whether a run of it is going to ask the model version; None for steps that never do.
    """

    name: str
    after: tuple[str, ...]
    table: Table | None
    version: str
    kinds: frozenset[str]
    description: str
    execute: Callable[[StepRun], StageResult]
    checks: tuple[Check, ...] = ()
    asks: Callable[[StepRun], bool] | None = None


EVERY_TURN_ONCE = Check(
    "every_turn_scored_once",
    "Every planned turn and sample has exactly one result.",
    check_every_turn_once,
)
BUDGET_KEPT = Check("budget_kept", "The budget of the run allowed every call.", check_budget_kept)
UNSAFE_CAUGHT = Check(
    "unsafe_caught",
    "The validator caught every unsafe query that the model wrote.",
    check_unsafe_caught,
)
NO_METRIC_ERRORS = Check("no_metric_errors", "No metric failed on any turn.", check_metric_errors)


def partitioned_steps(track: Track | None) -> Sequence[Step]:
    """The partitioned part of a suite's chain, in order; a suite that cannot be read has the same assets."""
    versions = track.versions if track else {}
    asking = "/".join(versions.get(name, "") for name in ("parser", "executor", "validator"))
    prompts = ",".join(track.prompt_versions) if track else ""
    metrics = score.scorer_versions(track) if track else ""
    judging = [_judging_step(track)] if track and track.has_judge else []
    checks: tuple[Check, ...] = (EVERY_TURN_ONCE, BUDGET_KEPT, NO_METRIC_ERRORS)
    if track and has_safety_verdicts(track):
        checks = (*checks, UNSAFE_CAUGHT)
    chain = [
        Step(
            "generations",
            ("cases",),
            tables.GENERATIONS,
            f"{generate.VERSION}/{asking}/{prompts}",
            frozenset({"python", "parquet"}),
            "The first attempt at every turn: prompt, response, artefact and what executing it gave.",
            lambda s: generate.generate(s.evaluation.workspace, s.partition, s.run, s.scope, s.evaluation.progress),
            asks=lambda s: not generate.is_current(s.evaluation.workspace, s.partition, s.scope, s.run.epoch),
        ),
        Step(
            "recovery_attempts",
            ("cases", "generations"),
            tables.RECOVERY_ATTEMPTS,
            f"{recover.VERSION}/{asking}/{prompts}",
            frozenset({"python", "parquet"}),
            "Further attempts where executing the first one failed, with the error shown to the model.",
            lambda s: recover.recover(s.evaluation.workspace, s.partition, s.run, s.evaluation.progress),
            asks=lambda s: not recover.is_current(s.evaluation.workspace, s.partition, s.run.epoch),
        ),
        Step(
            "evidence",
            ("cases", "generations", "recovery_attempts"),
            tables.EVIDENCE,
            f"{gather_evidence.VERSION}/{versions.get('evidence', '')}",
            frozenset({"python", "parquet"}),
            "What comparing the last attempt with the gold shows.",
            lambda s: gather_evidence.gather_evidence(s.evaluation.workspace, s.partition, s.evaluation.progress),
        ),
        *judging,
        Step(
            "turn_metrics",
            ("cases", "generations", "recovery_attempts", "evidence", *(step.name for step in judging)),
            turns_table(track) if track else None,
            f"{score.VERSION}/{versions.get('scorer', '')}/{metrics}",
            frozenset({"python", "parquet"}),
            "Every metric on every turn, and the records of what failed.",
            lambda s: score.score(s.evaluation.workspace, s.partition, s.evaluation.progress),
            checks,
        ),
    ]
    chain += [_aggregate_step(name) for name in aggregates_of(track)]
    recorded = tuple(step.name for step in chain)
    publishing = Step(
        "published",
        ("raw_dataset", "cases", *recorded),
        None,
        "1",
        frozenset({"duckdb"}),
        "The partition's records in the DuckDB store that people query.",
        lambda s: publish_partition(s.evaluation.workspace, s.partition, s.run.run_id, s.evaluation.progress),
    )
    reporting = Step(
        "report",
        ("published",),
        None,
        REPORT_VERSION,
        frozenset({"excel", "parquet"}),
        "Files for people: tables, statistics, traces and the workbook.",
        lambda s: report(s.evaluation.workspace, s.partition, s.evaluation.progress),
    )
    return (*chain, publishing, reporting)


def _judging_step(track: Track) -> Step:
    return Step(
        "judgements",
        ("raw_dataset", "cases", "generations", "recovery_attempts", "evidence"),
        tables.JUDGEMENTS,
        f"{judge.VERSION}/{track.versions['evidence']}",
        frozenset({"python", "parquet"}),
        "What an LLM judge says of the last attempt, compared with the gold.",
        lambda s: judge.judge_answers(s.evaluation.workspace, s.partition, s.evaluation.progress),
    )


def _aggregate_step(name: str) -> Step:
    found = AGGREGATES[name]
    return Step(
        name,
        # Each may read the options in suite.yaml, which are part of the raw data set.
        ("raw_dataset", *(table.name for table in found.reads), "turn_metrics"),
        found.table,
        str(found.version),
        frozenset({"python", "parquet"}),
        found.table.comment,
        lambda s: aggregate(s.evaluation.workspace, s.partition, name, s.evaluation.progress),
    )
