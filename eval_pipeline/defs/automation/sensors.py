"""Keeping Dagster's partitions in step with the model versions on file."""

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.defs.assets.partitions import DIMENSION, model_version
from eval_pipeline.workspace.workspace import Workspace


def unregistered(instance: dg.DagsterInstance, workspace: Workspace) -> list[str]:
    """Model versions on file that are no partitions yet."""
    known = set(instance.get_dynamic_partitions(DIMENSION))
    return [name for name in workspace.model_versions if name not in known]


@dg.sensor(minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING)
def register_model_versions(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Registers new entries of `model_versions.yaml` as partitions."""
    new = unregistered(context.instance, Workspace(find_home()))
    if not new:
        return dg.SkipReason("every model version is registered")
    return dg.SensorResult(dynamic_partitions_requests=[model_version.build_add_request(new)])
