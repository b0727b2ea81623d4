"""The chain of assets of every suite, from one factory. An asset runs a stage and reports what came out."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import dagster as dg

from eval_pipeline.chain.evaluation import COMPARING, chain_of
from eval_pipeline.chain.freshness import fingerprint_of, is_current, prepared
from eval_pipeline.chain.lineage import arrows, passed_by
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.chain.stage import Check, Stage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_hash
from eval_pipeline.defs.assets.dates import dated_partition
from eval_pipeline.defs.assets.describe import check_result, check_spec, column_schema, shown
from eval_pipeline.defs.assets.nights import freshness
from eval_pipeline.defs.assets.partitions import RESCORES, model_version, run_context, run_scope
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.running.instance import tags_now
from eval_pipeline.defs.running.pools import pool_of, slot
from eval_pipeline.operations.rescoring import rescore_compared
from eval_pipeline.stages.attempts.spending import ended_as
from eval_pipeline.stages.checks.verdicts import Verdict
from eval_pipeline.store.schemas import Table
from eval_pipeline.suites import SuiteSource, find_suites
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import FAILED, end_run, ending_failed
from eval_pipeline.workspace.workspace import StageResult, Workspace

OWNERS = ["team:evals"]
PUBLISHED = "published"
"""The stage with which an evaluation has come to its end."""

Told = dg.MaterializeResult | dg.AssetCheckResult


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stage stands in its chain.

    Attributes:
        after: names of the stages that the picture has an arrow from.
        passing: tables that go past it to later stages.
    """

    after: tuple[str, ...]
    passing: tuple[Table, ...]


@dg.definitions
def suite_defs() -> dg.Definitions:
    """Assets of every suite found now; a suite added later needs a reload of the code location."""
    workspace = Workspace(find_home())
    found = [suite_definitions(source, workspace) for source in find_suites(find_home().suite_folders).values()]
    workspace.fingerprints.save()
    return dg.Definitions.merge(dg.Definitions(), *found)


def suite_definitions(source: SuiteSource, workspace: Workspace) -> dg.Definitions:
    """The chain of one suite, under its name as key prefix and group."""
    chain = chain_of(source.track() if source.header else None)
    shown, passing = arrows(chain), passed_by(chain)
    made = [
        stage_asset(source, stage, Place(shown[stage.name], passing[stage.name]), Inputs(workspace, source.name))
        for stage in chain
    ]
    return dg.Definitions(assets=made)


def stage_asset(source: SuiteSource, stage: Stage, place: Place, inputs: Inputs) -> dg.AssetsDefinition:
    """The asset of one stage; of one with partitions those are skipped that have nothing to evaluate."""
    key = dg.AssetKey([source.name, stage.name])
    partitions = None if stage.whole_suite else model_version

    @dg.asset(
        key=key,
        deps=[dg.AssetKey([source.name, name]) for name in place.after],
        partitions_def=partitions,
        code_version=_code_version(stage, inputs) if source.header else None,
        kinds=set(stage.kinds),
        description=stage.description,
        metadata=column_schema(stage.writes[0]) if stage.writes else None,
        check_specs=[check_spec(key, check, partitions) for check in stage.checks],
        group_name=source.name,
        owners=OWNERS,
        tags={"track": source.header.track} if source.header else {},
        output_required=stage.whole_suite,
        freshness_policy=freshness() if stage.name == PUBLISHED else None,
    )
    def asset(context: dg.AssetExecutionContext, evaluation: dg.ResourceParam[EvaluationResource]) -> Iterator[Told]:
        with readable_errors():
            tags = tags_now(context.instance, context.run)
            own = Inputs(evaluation.workspace, source.name, progress=evaluation.progress)
            told: list[Told]
            if stage.whole_suite:
                if RESCORES in tags and stage.name == COMPARING[0]:
                    for scored in rescore_compared(own.workspace, source.name, own.progress):
                        if scored.problem:
                            context.log.warning(f"{scored.partition} is not scored again: {scored.problem}")
                told = [materialised(stage, place, own, run_stage(stage, own))]
            elif why := own.workspace.why_not(context.partition_key, source.name):
                context.log.info(f"'{context.partition_key}' is not evaluated on '{source.name}': it {why}")
                # Dagster wants each check told of, unlike the asset itself.
                nothing = Verdict(True, f"there is nothing to check: the model version {why}")
                told = [check_result(check.name, nothing) for check in stage.checks]
            else:
                partition = dated_partition(context, source.name, tags, own.workspace)
                run = run_context(context.run.run_id, tags)
                found = own.anew(partition=partition, run=run, scope=run_scope(tags))
                try:
                    told = [_evaluated(context, stage, place, found)]
                except EvalError as error:
                    evaluation.examples[source.name, stage.name, partition.model_version] = error.example
                    raise
        yield from told

    return asset


def _code_version(stage: Stage, inputs: Inputs) -> str | None:
    """What stands for the code of a stage; None where that cannot be told, which running the stage says."""
    try:
        return fingerprint_of(stage, inputs).code
    except EvalError:
        return None


def _evaluated(context: dg.AssetExecutionContext, stage: Stage, place: Place, inputs: Inputs) -> dg.MaterializeResult:
    """Runs a stage of an evaluation, and notes in `runs` how the run stands after it."""
    workspace, partition, run_id = inputs.workspace, inputs.place, inputs.run.run_id
    with ending_failed(workspace, partition, run_id), _waiting_its_turn(context, stage, inputs):
        result = run_stage(stage, inputs)
        found = [(check, check.verdict(inputs)) for check in stage.checks]
    if any(check.blocking and not verdict.passed for check, verdict in found):
        end_run(workspace, partition, run_id, FAILED)
    elif not _publishes(context, inputs.suite):
        end_run(workspace, partition, run_id, ended_as(inputs))
    return materialised(stage, place, inputs, result, found)


def _waiting_its_turn(context: dg.AssetExecutionContext, stage: Stage, inputs: Inputs) -> AbstractContextManager[None]:
    """Holds a slot of the provider's pool while the stage asks models; nothing where it asks nobody."""
    pool = pool_of(inputs.version) if stage.asks and inputs.run.asks else None
    if pool is None or is_current(stage, prepared(stage, inputs)):
        return nullcontext()
    return slot(context, inputs, pool)


def _publishes(context: dg.AssetExecutionContext, suite: str) -> bool:
    """Whether the run goes on to the stage that closes its row in `runs`; each one of those that do not, does so."""
    return dg.AssetKey([suite, PUBLISHED]) in context.job_def.asset_layer.selected_asset_keys


@contextmanager
def readable_errors() -> Iterator[None]:
    """Shows what the user can mend as the failure's description, without a trace through the pipeline."""
    try:
        yield
    except EvalError as error:
        raise dg.Failure(str(error), metadata={"error": type(error).__name__}, allow_retries=False) from None


def materialised(
    stage: Stage, place: Place, inputs: Inputs, result: StageResult, found: list[tuple[Check, Verdict]] | None = None
) -> dg.MaterializeResult:
    """What Dagster is told of a stage that ran; its checks are made here where they were not before."""
    described = shown(stage, inputs, result)
    eval_date = inputs.partition.eval_date.isoformat() if inputs.partition else ""
    if eval_date:
        described["eval_date"] = eval_date
    verdicts = found if found is not None else [(check, check.verdict(inputs)) for check in stage.checks]
    version = f"{_version(place, inputs, result)[:16]}-{eval_date}".strip("-") or "empty"
    return dg.MaterializeResult(
        metadata=described,
        check_results=[check_result(check.name, verdict, warning=check.warning) for check, verdict in verdicts],
        data_version=dg.DataVersion(version),
    )


def _version(place: Place, inputs: Inputs, result: StageResult) -> str:
    """Changes with what the stage made, and with what goes past it: those below have no arrow of their own to that."""
    headers = ((table.name, inputs.header(table)) for table in place.passing)
    passing = {name: header.content_hash for name, header in headers if header is not None}
    return json_hash([result.content_hash, passing]) if passing else result.content_hash
