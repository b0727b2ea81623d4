"""The chain of assets of every suite, from one factory. An asset runs a stage and reports what came out."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import dagster as dg

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.home import find_home
from eval_pipeline.defs.assets.dates import dated_partition
from eval_pipeline.defs.assets.describe import check_result, column_schema, shown
from eval_pipeline.defs.assets.partitions import model_version, run_context, run_scope
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.comparison_steps import COMPARISON_STEPS, SuiteStep
from eval_pipeline.defs.running.instance import tags_now
from eval_pipeline.defs.running.pools import pool_of, slot
from eval_pipeline.defs.steps import Step, StepRun, partitioned_steps
from eval_pipeline.stages import ingest
from eval_pipeline.stages.attempts.spending import ended_as
from eval_pipeline.stages.checks.kept import ends_of_suite
from eval_pipeline.stages.checks.verdicts import Verdict, check_cases_read, check_gold
from eval_pipeline.store import tables
from eval_pipeline.store.record import RecordKey
from eval_pipeline.suites import SuiteSource, find_suites
from eval_pipeline.tracks.registry import load_track
from eval_pipeline.workspace.runs import FAILED, end_run, ending_failed
from eval_pipeline.workspace.workspace import StageResult

OWNERS = ["team:evals"]
NOTHING_TO_CHECK = Verdict(True, "the model version has no predictions for the suite: there is nothing to check")


@dg.definitions
def suite_defs() -> dg.Definitions:
    """Assets of every suite found now; a suite added later needs a reload of the code location."""
    suites = find_suites(find_home().suite_folders)
    return dg.Definitions.merge(dg.Definitions(), *[suite_definitions(source) for source in suites.values()])


def suite_definitions(source: SuiteSource) -> dg.Definitions:
    """The chain of one suite, under its name as key prefix and group."""
    track = load_track(source.header.track) if source.header else None
    steps = [step_asset(source, step) for step in partitioned_steps(track)]
    comparing = [comparison_asset(source, step) for step in COMPARISON_STEPS]
    return dg.Definitions(assets=[raw_dataset(source), cases(source), *steps, *comparing])


def raw_dataset(source: SuiteSource) -> dg.AssetsDefinition:
    """The asset of a suite's files."""

    @dg.asset(
        key=[source.name, "raw_dataset"],
        code_version=ingest.VERSION,
        kinds={"yaml"},
        description="The suite's files as they came, hashed.",
        metadata=column_schema(tables.SUITES),
        group_name=source.name,
        owners=OWNERS,
        tags=_tags(source),
    )
    def asset(
        context: dg.AssetExecutionContext, evaluation: dg.ResourceParam[EvaluationResource]
    ) -> dg.MaterializeResult:
        with readable_errors():
            tags_now(context.instance, context.run)
            result = ingest.ingest_files(evaluation.workspace, source.name)
            return _result(
                result, shown(evaluation.workspace, "raw_dataset", None, RecordKey.of_suite(source.name), result)
            )

    return asset


def cases(source: SuiteSource) -> dg.AssetsDefinition:
    """The asset of a suite's cases, checked by their own gold and by the ends of the scale."""
    key = dg.AssetKey([source.name, "cases"])
    checks = [
        dg.AssetCheckSpec("every_case_read", asset=key, description="No case had to be left out as unreadable."),
        dg.AssetCheckSpec("gold_holds", asset=key, description="Every turn's own gold answer follows from its gold."),
        dg.AssetCheckSpec(
            "oracle_and_null",
            asset=key,
            description="Gold answers score 1.0 and no answer 0.0, through the stages' own functions.",
            blocking=True,
        ),
    ]
    parser = load_track(source.header.track).versions["cases"] if source.header else ""

    @dg.asset(
        key=key,
        deps=[dg.AssetKey([source.name, "raw_dataset"])],
        code_version=f"{ingest.VERSION}/{parser}",
        kinds={"yaml", "parquet"},
        description="The suite's cases and turns, read and validated.",
        metadata=column_schema(tables.CASES),
        check_specs=checks,
        group_name=source.name,
        owners=OWNERS,
        tags=_tags(source),
    )
    def asset(
        context: dg.AssetExecutionContext, evaluation: dg.ResourceParam[EvaluationResource]
    ) -> dg.MaterializeResult:
        with readable_errors():
            tags_now(context.instance, context.run)
            workspace = evaluation.workspace
            result = ingest.ingest_cases(workspace, source.name, evaluation.progress)
            verdicts = [
                check_result("every_case_read", check_cases_read(workspace, source.name)),
                check_result("gold_holds", check_gold(workspace, source.name), warning=True),
                check_result("oracle_and_null", ends_of_suite(workspace, source.name, evaluation.progress)),
            ]
            described = shown(workspace, "cases", tables.CASES, RecordKey.of_suite(source.name), result)
            return _result(result, described, checks=verdicts)

    return asset


def step_asset(source: SuiteSource, step: Step) -> dg.AssetsDefinition:
    """The asset of one partitioned step; it is skipped where the model version has no predictions for the suite."""
    key = dg.AssetKey([source.name, step.name])

    @dg.asset(
        key=key,
        deps=[dg.AssetKey([source.name, name]) for name in step.after],
        partitions_def=model_version,
        code_version=step.version,
        kinds=set(step.kinds),
        description=step.description,
        metadata=column_schema(step.table) if step.table else None,
        check_specs=[
            dg.AssetCheckSpec(check.name, asset=key, description=check.description, blocking=check.blocking)
            for check in step.checks
        ],
        group_name=source.name,
        owners=OWNERS,
        tags=_tags(source),
        output_required=False,
    )
    def asset(
        context: dg.AssetExecutionContext, evaluation: dg.ResourceParam[EvaluationResource]
    ) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        with readable_errors():
            tags, workspace = tags_now(context.instance, context.run), evaluation.workspace
            if not workspace.model_version(context.partition_key).answers(source.name):
                context.log.info(f"'{context.partition_key}' has no predictions for '{source.name}': skipped")
                # Dagster wants each check told of, unlike the asset itself.
                yield from (check_result(check.name, NOTHING_TO_CHECK) for check in step.checks)
                return
            partition = dated_partition(context, source.name, tags, workspace)
            run = StepRun(evaluation, partition, run_context(context.run.run_id, tags), run_scope(tags))
            with ending_failed(workspace, partition, run.run.run_id), _waiting_its_turn(context, step, run):
                result = step.execute(run)
                found = [(check, check.verdict(workspace, partition)) for check in step.checks]
            if any(check.blocking and not verdict.passed for check, verdict in found):
                end_run(workspace, partition, run.run.run_id, FAILED)
            elif not _publishes(context, source.name):
                end_run(workspace, partition, run.run.run_id, ended_as(workspace, partition))
            verdicts = [check_result(check.name, verdict) for check, verdict in found]
            described = shown(workspace, step.name, step.table, RecordKey.of(partition), result)
        yield _result(result, described, partition.eval_date.isoformat(), verdicts)

    return asset


def comparison_asset(source: SuiteSource, step: SuiteStep) -> dg.AssetsDefinition:
    """The asset of one step that looks at all model versions of the suite."""
    key = dg.AssetKey([source.name, step.name])

    @dg.asset(
        key=key,
        deps=[dg.AssetKey([source.name, name]) for name in step.after],
        code_version=step.version,
        kinds=set(step.kinds),
        description=step.description,
        metadata=column_schema(step.table) if step.table else None,
        check_specs=[dg.AssetCheckSpec(c.name, asset=key, description=c.description) for c in step.checks],
        group_name=source.name,
        owners=OWNERS,
        tags=_tags(source),
    )
    def asset(
        context: dg.AssetExecutionContext, evaluation: dg.ResourceParam[EvaluationResource]
    ) -> dg.MaterializeResult:
        with readable_errors():
            tags_now(context.instance, context.run)
            workspace = evaluation.workspace
            result = step.execute(workspace, source.name, evaluation.progress)
            verdicts = [
                check_result(check.name, check.verdict(workspace, source.name), warning=check.warning)
                for check in step.checks
            ]
            described = shown(workspace, step.name, step.table, RecordKey.of_suite(source.name), result)
            return _result(result, described, checks=verdicts)

    return asset


def _waiting_its_turn(context: dg.AssetExecutionContext, step: Step, run: StepRun) -> AbstractContextManager[None]:
    """Holds a slot of the provider's pool while the step asks models; nothing where it asks nobody."""
    version = run.evaluation.workspace.model_version(run.partition.model_version)
    pool = pool_of(version) if step.asks is not None and step.asks(run) else None
    return slot(context, run.evaluation, pool) if pool else nullcontext()


def _publishes(context: dg.AssetExecutionContext, suite: str) -> bool:
    """Whether the run goes on to the step that closes its row in `runs`; each step of one that does not, does so."""
    return dg.AssetKey([suite, "published"]) in context.job_def.asset_layer.selected_asset_keys


@contextmanager
def readable_errors() -> Iterator[None]:
    """Shows what the user can mend as the failure's description, without a trace through the pipeline."""
    try:
        yield
    except EvalError as error:
        raise dg.Failure(str(error), metadata={"error": type(error).__name__}, allow_retries=False) from None


def _tags(source: SuiteSource) -> dict[str, str]:
    return {"track": source.header.track} if source.header else {}


def _result(
    result: StageResult,
    described: dict[str, Any],
    eval_date: str = "",
    checks: list[dg.AssetCheckResult] | None = None,
) -> dg.MaterializeResult:
    if eval_date:
        described["eval_date"] = eval_date
    version = f"{result.content_hash[:16]}-{eval_date}".strip("-") or "empty"
    return dg.MaterializeResult(metadata=described, check_results=checks, data_version=dg.DataVersion(version))
