"""Dagster's events of a run, as it writes them itself, with the times that they are given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster_shared.error import SerializableErrorInfo

from eval_pipeline.defs.dagster_inside.running import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    NULL_EVENT_POINTER,
    AssetCheckEvaluation,
    AssetCheckEvaluationPlanned,
    AssetCheckEvaluationTargetMaterializationData,
    AssetMaterializationPlannedData,
    DefaultPartitionsSubset,
    ErrorSource,
    JobFailureData,
    NodeHandle,
    RunFailureReason,
    StepFailureData,
    StepHandle,
    StepMaterializationData,
    StepSuccessData,
    UserFailureData,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
    normalize_metadata,
)

Kind = dg.DagsterEventType
_DEBUG = 10


@dataclass(frozen=True, slots=True)
class Source:
    """What an input of an asset was when it was made: its data version, and the event that said so, if any."""

    version: str
    event: int | None


@dataclass(frozen=True, slots=True)
class ToldRun:
    """The run whose events are made: each method returns one, at a Unix time in seconds, for whoever stores it.

    Attributes:
        run_id, job_name: Dagster's names of the run and of its job.
    """

    run_id: str
    job_name: str

    def began(self, at: float) -> dg.EventLogEntry:
        """Returns the event that the run begins."""
        return self._event(Kind.RUN_START, at, f'Started execution of run for "{self.job_name}".')

    def ended(self, status: str, at: float, failed: Sequence[dg.EventLogEntry]) -> dg.EventLogEntry:
        """Returns the event that the run ends with a status of a note; `failed` are those of the steps that failed."""
        run = f'run for "{self.job_name}"'
        if status == "success":
            return self._event(Kind.RUN_SUCCESS, at, f"Finished execution of {run}.")
        if status == "canceled":
            return self._event(Kind.RUN_CANCELED, at, f"Execution of {run} canceled.")
        steps, first = [entry.step_key for entry in failed], failed[0].dagster_event if failed else None
        why = f"Steps failed: {steps}." if failed else "Its process is gone; the next command goes on where it was."
        reason = RunFailureReason.STEP_FAILURE if failed else RunFailureReason.UNKNOWN
        data = JobFailureData(None, reason, first)
        return self._event(Kind.RUN_FAILURE, at, f"Execution of {run} failed. {why}", data=data)

    def planned(self, key: dg.AssetKey, partition: str | None, at: float) -> dg.EventLogEntry:
        """Returns the event that the run intends to make an asset, which is shown as failed if it then does not."""
        text = f"{self.job_name} intends to materialize asset {key.to_string()}"
        data = AssetMaterializationPlannedData(key, partition, None)
        return self._event(Kind.ASSET_MATERIALIZATION_PLANNED, at, text, step_of(key), data)

    def check_planned(self, key: dg.AssetKey, name: str, partition: str | None, at: float) -> dg.EventLogEntry:
        """Returns the event that the run intends to check an asset."""
        text = f"{self.job_name} intends to execute asset check {name} on asset {key.to_string()}"
        data = AssetCheckEvaluationPlanned(
            asset_key=key,
            check_name=name,
            partitions_subset=DefaultPartitionsSubset({partition}) if partition else None,
        )
        return self._event(Kind.ASSET_CHECK_EVALUATION_PLANNED, at, text, step_of(key), data)

    def step_began(self, step: str, at: float) -> dg.EventLogEntry:
        """Returns the event that a step begins."""
        return self._event(Kind.STEP_START, at, f'Started execution of step "{step}".', step)

    def step_ended(self, step: str, began: float, at: float) -> dg.EventLogEntry:
        """Returns the event that a step, which began at that time, ends well."""
        took = 1000 * max(0.0, at - began)
        text = f'Finished execution of step "{step}" in {took:.0f}ms.'
        data = StepSuccessData(took)  # type: ignore[no-untyped-call]
        return self._event(Kind.STEP_SUCCESS, at, text, step, data)

    def step_failed(self, step: str, sentence: str, at: float) -> dg.EventLogEntry:
        """Returns the event that a step fails, for the reason in a sentence."""
        told = UserFailureData("intentional-failure", sentence, {})  # type: ignore[no-untyped-call]
        error = SerializableErrorInfo(sentence, [], None)
        data = StepFailureData(error, told, ErrorSource.USER_CODE_ERROR)  # type: ignore[no-untyped-call]
        return self._event(Kind.STEP_FAILURE, at, f'Execution of step "{step}" failed.', step, data)

    def step_skipped(self, step: str, at: float) -> dg.EventLogEntry:
        """Returns the event that a step is left out, as one that it needs has failed."""
        return self._event(Kind.STEP_SKIPPED, at, f"Skipping step {step} due to failed dependencies.", step)

    def materialised(
        self, key: dg.AssetKey, partition: str | None, result: dg.MaterializeResult, tags: Mapping[str, str], at: float
    ) -> dg.EventLogEntry:
        """Returns the event that an asset is made, with what its function returned; `tags` as from `version_tags`."""
        made = dg.AssetMaterialization(key, metadata=result.metadata, partition=partition, tags=tags)
        text = f"Materialized value {' '.join(key.path)}."
        return self._event(Kind.ASSET_MATERIALIZATION, at, text, step_of(key), StepMaterializationData(made, []))

    def checked(
        self,
        key: dg.AssetKey,
        partition: str | None,
        result: dg.AssetCheckResult,
        blocking: bool,
        made: dg.EventLogRecord,
        at: float,
    ) -> dg.EventLogEntry:
        """Returns the event that a check has a result; `made` is the event that the checked asset was made."""
        name, told = str(result.check_name), "passed" if result.passed else "did not pass"
        target = AssetCheckEvaluationTargetMaterializationData(
            storage_id=made.storage_id, run_id=made.run_id, timestamp=made.timestamp
        )
        data = AssetCheckEvaluation(
            key,
            name,
            result.passed,
            normalize_metadata(result.metadata or {}),
            target,
            result.severity,
            result.description,
            blocking=blocking,
            partition=partition,
        )
        text = f"Asset check '{name}' on '{key.to_user_string()}' {told}. Description: '{result.description}'"
        return self._event(Kind.ASSET_CHECK_EVALUATION, at, text, step_of(key), data)

    def _event(self, kind: Kind, at: float, text: str, step: str | None = None, data: Any = None) -> dg.EventLogEntry:
        node = NodeHandle(step, None) if step else None
        event = dg.DagsterEvent(
            kind.value,
            self.job_name,
            step_handle=StepHandle(node, step) if node else None,
            node_handle=node,
            step_kind_value="COMPUTE" if step else None,
            event_specific_data=data,
            message=text,
            step_key=step,
        )
        return dg.EventLogEntry(  # type: ignore[no-untyped-call]
            error_info=None,
            level=_DEBUG,
            user_message=text,
            run_id=self.run_id,
            timestamp=at,
            step_key=step,
            job_name=self.job_name,
            dagster_event=event,
        )


def step_of(key: dg.AssetKey) -> str:
    """Returns the step that makes an asset, as Dagster names it."""
    return "__".join(key.path)


def version_tags(code: str, data: str, sources: Mapping[dg.AssetKey, Source]) -> dict[str, str]:
    """Returns the tags of a materialisation by which Dagster sees later what is out of date."""
    tags = {CODE_VERSION_TAG: code, DATA_VERSION_TAG: data, DATA_VERSION_IS_USER_PROVIDED_TAG: "true"}
    for key, source in sources.items():
        tags[get_input_data_version_tag(key)] = source.version
        tags[get_input_event_pointer_tag(key)] = str(source.event) if source.event else NULL_EVENT_POINTER
    return tags
