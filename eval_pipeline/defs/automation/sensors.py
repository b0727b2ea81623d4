"""Keeping Dagster's partitions in step with the model versions on file."""

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.defs.assets.partitions import DIMENSION, model_version
from eval_pipeline.workspace.workspace import Workspace


def unregistered(instance: dg.DagsterInstance, workspace: Workspace) -> list[str]:
    """Model versions on file that are no partitions yet."""
    known = set(instance.get_dynamic_partitions(DIMENSION))
    return [name for name in workspace.model_versions if name not in known]


def retired(instance: dg.DagsterInstance, workspace: Workspace) -> list[str]:
    """Partitions whose model version is not on file any more."""
    return [name for name in instance.get_dynamic_partitions(DIMENSION) if workspace.is_retired(name)]


@dg.sensor(minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING)
def register_model_versions(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Registers new entries of `model_versions.yaml` as partitions; those that were deleted there are none any more."""
    workspace = Workspace(find_home())
    new, gone = unregistered(context.instance, workspace), retired(context.instance, workspace)
    if not new and not gone:
        return dg.SkipReason("every model version is registered")
    requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
    requests += [model_version.build_add_request(new)] if new else []
    requests += [model_version.build_delete_request(gone)] if gone else []
    return dg.SensorResult(dynamic_partitions_requests=requests)
