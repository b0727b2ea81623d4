"""Keeps Dagster's partitions in step with the model version files."""

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.defs.assets.partitions import DIMENSION, model_version
from eval_pipeline.defs.dagster_inside.running import PARTITION_NAME_TAG
from eval_pipeline.state.place import state_place
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.workspace import Workspace


def unregistered(instance: dg.DagsterInstance, workspace: Workspace) -> list[str]:
    """Returns model versions that should become partitions: those that are active or were evaluated before.

    An active one is a partition with each prompt of the suites, too, so that these can be chosen in the UI. Others do
    not become partitions, because every asset would show them as missing forever.
    """
    known = set(instance.get_dynamic_partitions(DIMENSION))
    new = [version for version in workspace.model_versions.values() if version.name not in known]
    evaluated = set() if all(map(workspace.is_offered, new)) else _evaluated(workspace)
    return [version.name for version in new if workspace.is_offered(version) or version.name in evaluated]


def never_run(instance: dg.DagsterInstance, workspace: Workspace) -> list[str]:
    """Returns partitions of inactive model versions that have neither an evaluation nor a run."""
    known = set(instance.get_dynamic_partitions(DIMENSION))
    listed = workspace.model_versions.items()
    idle = [name for name, version in listed if name in known and not workspace.is_offered(version)]
    evaluated = _evaluated(workspace) if idle else set()
    return [
        name
        for name in idle
        if name not in evaluated and not instance.get_runs_count(dg.RunsFilter(tags={PARTITION_NAME_TAG: name}))
    ]


def _evaluated(workspace: Workspace) -> set[str]:
    return {found.model_version for found in workspace.record.partitions(GENERATIONS) if found.model_version}


def retired(instance: dg.DagsterInstance, workspace: Workspace) -> list[str]:
    """Returns partitions whose model version is in no file any more; of those that other homes may have, none."""
    gone = [name for name in instance.get_dynamic_partitions(DIMENSION) if workspace.is_retired(name)]
    return sorted(_evaluated(workspace) & {*gone}) if state_place().is_shared else gone


def registering(name: str) -> dg.SensorDefinition:
    """Returns the sensor that keeps partitions in step with the files."""
    decorate = dg.sensor(name=name, minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING)
    return decorate(_register)


def _register(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Registers active entries of `model_versions.yaml`, and inactive ones that were run, as partitions.

    Deleted entries are removed from the partitions.
    """
    workspace = Workspace(find_home())
    new, gone = unregistered(context.instance, workspace), retired(context.instance, workspace)
    if not new and not gone:
        return dg.SkipReason("every model version is registered")
    requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
    requests += [model_version.build_add_request(new)] if new else []
    requests += [model_version.build_delete_request(gone)] if gone else []
    return dg.SensorResult(dynamic_partitions_requests=requests)


register_model_versions = registering("register_model_versions")
