"""Creates the assets of every suite. Each asset runs one stage and reports its result."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from eval_pipeline.chain.evaluation import COMPARING, DELIVERING, INGESTING, chain_of
from eval_pipeline.chain.freshness import fingerprint_of, is_current, prepared
from eval_pipeline.chain.lineage import arrows, passed_by
from eval_pipeline.chain.stage import Chain, Stage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_hash
from eval_pipeline.defs.assets.dates import dated_partition, freshness
from eval_pipeline.defs.assets.describe import check_result, check_spec, column_schema, facts, shown
from eval_pipeline.defs.assets.partitions import EVAL_DATE, PART, RESCORES, model_version, run_context, run_scope
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.dagster_inside.running import PRIORITY_TAG
from eval_pipeline.defs.running.instance import tags_now
from eval_pipeline.defs.running.pools import pool_of, slot
from eval_pipeline.operations.runs.nights import ask_part
from eval_pipeline.operations.runs.rescoring import rescore_compared
from eval_pipeline.operations.runs.running import PUBLISHED
from eval_pipeline.operations.runs.steps import Step, checked, close_alone, failure, failures
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.suites.headers import SuiteSource
from eval_pipeline.workspace.asked.planned import planned_scope
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.watching.watch import Watch, asked_for
from eval_pipeline.workspace.workspace import StageResult, Workspace

OWNERS = ["team:evals"]
COMPARISON_PUBLISHED = "comparison_published"

LAST = {PRIORITY_TAG: "-1"}
"""Tag of steps that wait until nothing else of the run is left, so that its evaluations are published together."""

Told = dg.MaterializeResult | dg.AssetCheckResult


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a stage in its chain.

    Attributes:
        after: names of the stages with an arrow to it.
        passing: tables of earlier stages that bypass it on their way to later ones.
    """

    after: tuple[str, ...]
    passing: tuple[Table, ...]


@dg.definitions
def suite_defs() -> dg.Definitions:
    """Returns the assets of every suite found now; after adding a suite, the code location must be reloaded."""
    workspace = Workspace(find_home())
    found = [suite_definitions(source, workspace) for source in workspace.suites.values()]
    workspace.fingerprints.save()
    return dg.Definitions.merge(dg.Definitions(), *found)


def suite_definitions(source: SuiteSource, workspace: Workspace) -> dg.Definitions:
    """Returns the assets of one suite, with its name as key prefix and group."""
    chain = chain_of(source.track() if source.header else None)
    made = [stage_asset(source, stage, place, Inputs(workspace, source.name)) for stage, place in placed(chain)]
    return dg.Definitions(assets=made)


def placed(chain: Chain) -> list[tuple[Stage, Place]]:
    """Returns the stages of a chain with their places in it."""
    shown, passing = arrows(chain), passed_by(chain)
    return [(stage, Place(shown[stage.name], passing[stage.name])) for stage in chain]


def stage_asset(source: SuiteSource, stage: Stage, place: Place, inputs: Inputs) -> dg.AssetsDefinition:
    """Returns the asset of one stage; partitions with nothing to evaluate are skipped."""
    key = dg.AssetKey([source.name, stage.name])
    partitions = None if stage.whole_suite else model_version

    @dg.asset(
        key=key,
        deps=[dg.AssetKey([source.name, name]) for name in place.after],
        partitions_def=partitions,
        code_version=code_version(stage, inputs) if source.header else None,
        kinds=set(stage.kinds),
        description=stage.description,
        metadata=column_schema(stage.writes[0]) if stage.writes else None,
        check_specs=[check_spec(key, check, partitions) for check in stage.checks],
        group_name=source.name,
        owners=OWNERS,
        tags={"track": source.header.track} if source.header else {},
        output_required=stage.whole_suite and stage.deliver is None,
        op_tags=LAST if stage.deliver else None,
        freshness_policy=freshness() if stage.name == PUBLISHED else None,
    )
    def asset(context: dg.AssetExecutionContext, evaluation: dg.ResourceParam[EvaluationResource]) -> Iterator[Told]:
        version = "" if stage.whole_suite else context.partition_key
        with readable_errors(), _kept_for_terminal(evaluation, stage, source.name, version):
            tags = tags_now(context.instance, context.run)
            run = run_context(context.run.run_id, tags)
            own = Inputs(evaluation.workspace, source.name, run=run, progress=evaluation.progress)
            told: list[Told]
            if stage.whole_suite:
                with _watched(context, evaluation) as watch:
                    watch.together(stage.name, source.name)
                    own = own.anew(run=replace(run, watch=watch))
                    if RESCORES in tags and stage.name == COMPARING[0]:
                        for scored in rescore_compared(own.workspace, source.name, own.progress):
                            if scored.problem:
                                context.log.warning(f"{scored.partition} is not scored again: {scored.problem}")
                    told = [materialised(stage, place, own, checked(stage, own))]
                    if stage.name == COMPARISON_PUBLISHED:
                        publication = evaluation.publication_of(context.run.run_id)
                        publication.compared(source.name)
                        publication.command.settle()
            elif why := own.workspace.why_not(context.partition_key, source.name):
                context.log.info(f"'{context.partition_key}' is not evaluated on '{source.name}': it {why}")
                # Unlike the asset itself, every check must be reported to Dagster.
                nothing = CheckVerdict(True, f"there is nothing to check: the model version {why}")
                told = [check_result(check.name, nothing) for check in stage.checks]
            else:
                _note_due(context, evaluation, source.name, tags.get(EVAL_DATE, ""))
                partition = dated_partition(context, source.name, tags, own.workspace)
                asked = asked_for([partition], run_scope(tags), run.epoch, canary=run.canary, cost_limit=run.cost_limit)
                with _watched(context, evaluation, asked) as watch:
                    watch.step(partition, run.run_id, stage.name)
                    watched = replace(run, watch=watch)
                    found = own.anew(partition=partition, scope=run_scope(tags), run=watched)
                    step = _evaluated(context, evaluation, stage, _of_night(context, stage, found, tags.get(PART)))
                evaluation.wrong(source.name, version, failures(step), incomplete=step.blocked)
                told = [materialised(stage, place, found, step)]
        yield from told

    return asset


def code_version(stage: Stage, inputs: Inputs) -> str | None:
    """Returns the fingerprint of a stage's code.

    None if it cannot be computed, which is reported when the stage runs.
    """
    try:
        return fingerprint_of(stage, inputs).code
    except EvalError:
        return None


@contextmanager
def _watched(
    context: dg.AssetExecutionContext, evaluation: EvaluationResource, asked: Mapping[str, Any] | None = None
) -> Iterator[Watch]:
    """Shows how far the run is, in Dagster's log too; where somebody who watches ends it, it is canceled."""
    selected = context.job_def.asset_layer.selected_asset_keys
    suites = {key.path[0] for key in selected if key.path[-1] not in {*INGESTING, *COMPARING}}
    watch = evaluation.watch(context.run.run_id, len(suites), asked or {})
    watch.tell = context.log.info
    try:
        yield watch
    except EvalError:  # `wrong` is told of it
        raise
    except Exception as error:
        watch.status.problems.append(str(error) or type(error).__name__)
        raise
    except BaseException:
        evaluation.canceled = True
        if watch.wished:  # else Dagster would take it for a failure
            context.instance.report_run_canceling(context.run)
        raise
    finally:
        watch.rest()


def _note_due(context: dg.AssetExecutionContext, evaluation: EvaluationResource, suite: str, day: str) -> None:
    """Notes that the run is going to compare, so that `dev` does if an evaluation fails before.

    Otherwise the UI would show the comparisons as failed, although the other model versions can be compared.
    """
    compares = dg.AssetKey([suite, COMPARISON_PUBLISHED]) in context.job_def.asset_layer.selected_asset_keys
    if evaluation.begins(context.run.run_id, suite) and compares:
        evaluation.publication_of(context.run.run_id).command.note({"uncompared": suite, "eval_date": day})


def _evaluated(context: dg.AssetExecutionContext, evaluation: EvaluationResource, stage: Stage, inputs: Inputs) -> Step:
    """Runs a stage of an evaluation, and updates the status of the run in `runs`.

    Steps that deliver have the lowest priority, so that all other evaluations of the run are closed, or have failed,
    when the first is published.
    """
    publication = evaluation.publication_of(context.run.run_id)
    if stage.name == PUBLISHED:
        return publication.published(stage, inputs)
    with _waiting_its_turn(context, stage, inputs):
        step = checked(stage, inputs)
    if step.blocked or stage.deliver:
        return step
    if not _publishes(context, inputs.suite):
        close_alone(inputs)
    elif evaluation.completes(inputs.run.run_id, inputs.suite, stage.name, _planned(context, inputs.suite)):
        publication.close(inputs.anew())
    return step


def _planned(context: dg.AssetExecutionContext, suite: str) -> set[str]:
    """Returns the stages of a suite's evaluation that the Dagster run includes, without those that deliver it."""
    planned = {key.path[-1] for key in context.job_def.asset_layer.selected_asset_keys if key.path[0] == suite}
    return planned - {*INGESTING, *COMPARING, *DELIVERING}


def _of_night(context: dg.AssetExecutionContext, stage: Stage, inputs: Inputs, part: str | None) -> Inputs:
    """Returns the inputs with the scope of a night; the first stage that asks has the part asked before."""
    if not part:
        return inputs
    if GENERATIONS not in stage.writes:
        return inputs.anew(scope=Scope.from_label(planned_scope(inputs.workspace, inputs.place)))
    with _waiting_its_turn(context, stage, inputs):
        night = ask_part(inputs, part)
    context.log.info(night.text)
    if night.problem:
        context.log.warning(night.problem)
    return inputs.anew(scope=night.scope)


def _waiting_its_turn(context: dg.AssetExecutionContext, stage: Stage, inputs: Inputs) -> AbstractContextManager[None]:
    """Holds a slot of the provider's pool while the stage asks models; does nothing if it does not ask."""
    pool = pool_of(inputs.version) if stage.asks and inputs.run.asks else None
    if pool is None or is_current(stage, prepared(stage, inputs)):
        return nullcontext()
    return slot(context, inputs, pool)


def _publishes(context: dg.AssetExecutionContext, suite: str) -> bool:
    """Whether the run includes the stage that closes its row in `runs`; otherwise every stage closes it."""
    return dg.AssetKey([suite, PUBLISHED]) in context.job_def.asset_layer.selected_asset_keys


@contextmanager
def readable_errors() -> Iterator[None]:
    """Shows errors that the user can fix as the failure's description, without a traceback."""
    try:
        yield
    except EvalError as error:
        raise dg.Failure(str(error), metadata={"error": type(error).__name__}, allow_retries=False) from None


@contextmanager
def _kept_for_terminal(evaluation: EvaluationResource, stage: Stage, suite: str, model_version: str) -> Iterator[None]:
    try:
        yield
    except EvalError as error:
        evaluation.wrong(suite, model_version, [failure(error)], incomplete=stage.name not in COMPARING)
        raise


def materialised(stage: Stage, place: Place, inputs: Inputs, step: Step, *, held: bool = True) -> dg.MaterializeResult:
    """Returns the materialisation of a stage, with the results of its checks.

    `held` says whether the record still holds what was made, so that tables of it can be shown.
    """
    described = shown(stage, inputs, step.result) if held else facts(step.result)
    eval_date = inputs.partition.eval_date.isoformat() if inputs.partition else ""
    if eval_date:
        described["eval_date"] = eval_date
    version = f"{_version(place, inputs, step.result)[:16]}-{eval_date}".strip("-") or "empty"
    return dg.MaterializeResult(
        metadata=described,
        check_results=[check_result(check.name, verdict, warning=check.warning) for check, verdict in step.found],
        data_version=dg.DataVersion(version),
    )


def _version(place: Place, inputs: Inputs, result: StageResult) -> str:
    """Returns a data version that also changes with bypassing tables, to which later assets have no arrow."""
    headers = ((table.name, inputs.header(table)) for table in place.passing)
    passing = {name: header.content_hash for name, header in headers if header is not None}
    return json_hash([result.content_hash, passing]) if passing else result.content_hash
