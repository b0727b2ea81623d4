"""Tags, definitions, plans and events of Dagster that are not public."""

from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluation,
    AssetCheckEvaluationPlanned,
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    NULL_EVENT_POINTER,
    extract_data_version_from_entry,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)
from dagster._core.definitions.dependency import NodeHandle
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.definitions.metadata import normalize_metadata
from dagster._core.definitions.partitions.subset import DefaultPartitionsSubset
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.events import (
    AssetMaterializationPlannedData,
    JobFailureData,
    RunFailureReason,
    StepMaterializationData,
)
from dagster._core.execution.api import create_execution_plan, execute_run
from dagster._core.execution.job_execution_result import JobExecutionResult
from dagster._core.execution.plan.handle import StepHandle
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.execution.plan.objects import ErrorSource, StepFailureData, StepSuccessData, UserFailureData
from dagster._core.instance import InstanceRef
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.snap import ExecutionPlanSnapshot, snapshot_from_execution_plan
from dagster._core.storage.tags import (
    BACKFILL_ID_TAG,
    CODE_LOCATION_TAG,
    PARTITION_NAME_TAG,
    PRIORITY_TAG,
    ROOT_RUN_ID_TAG,
    RUN_KEY_TAG,
    SCHEDULE_NAME_TAG,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._utils.schedules import is_valid_cron_schedule, schedule_execution_time_iterator

__all__ = [
    "BACKFILL_ID_TAG",
    "CODE_LOCATION_TAG",
    "CODE_VERSION_TAG",
    "DATA_VERSION_IS_USER_PROVIDED_TAG",
    "DATA_VERSION_TAG",
    "DEFAULT_DATA_VERSION",
    "NULL_EVENT_POINTER",
    "PARTITION_NAME_TAG",
    "PRIORITY_TAG",
    "ROOT_RUN_ID_TAG",
    "RUN_KEY_TAG",
    "SCHEDULE_NAME_TAG",
    "SINGLETON_REPOSITORY_NAME",
    "AssetCheckEvaluation",
    "AssetCheckEvaluationPlanned",
    "AssetCheckEvaluationTargetMaterializationData",
    "AssetMaterializationPlannedData",
    "DefaultPartitionsSubset",
    "ErrorSource",
    "ExecutionPlanSnapshot",
    "InMemoryJob",
    "InstanceConcurrencyContext",
    "InstanceRef",
    "JobExecutionResult",
    "JobFailureData",
    "LoadableTargetOrigin",
    "ManagedGrpcPythonEnvCodeLocationOrigin",
    "NodeHandle",
    "RemoteJobOrigin",
    "RemoteRepositoryOrigin",
    "RunFailureReason",
    "StepFailureData",
    "StepHandle",
    "StepMaterializationData",
    "StepSuccessData",
    "UserFailureData",
    "create_execution_plan",
    "execute_run",
    "extract_data_version_from_entry",
    "get_input_data_version_tag",
    "get_input_event_pointer_tag",
    "is_valid_cron_schedule",
    "normalize_metadata",
    "schedule_execution_time_iterator",
    "snapshot_from_execution_plan",
]
