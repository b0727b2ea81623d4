"""Registers model versions in the record."""

from eval_pipeline.core.ids import canonical_json, json_hash
from eval_pipeline.core.model import Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.provenance import PROVENANCE
from eval_pipeline.providers.base import Provider
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import MODEL_VERSIONS
from eval_pipeline.workspace.workspace import RETIRED, Workspace


def register_model_version(workspace: Workspace, version: ModelVersion, provider: Provider) -> None:
    """Records a model version with the settings that it has now; `runs` tell those of each evaluation."""
    key, record = RecordKey.of_model_version(version.name), workspace.record
    settings = recorded_settings(version) if provider.recorded else version.model_dump(mode="json", exclude=_ELSEWHERE)
    made_from = {"settings": json_hash(settings)}
    if record.is_current(MODEL_VERSIONS, key, made_from):
        return
    with record.writer(MODEL_VERSIONS, key, made_from) as writer:
        writer.write(
            {
                "provider": [version.provider],
                "model": [version.model],
                "description": [version.description],
                "simulated": [provider.simulated],
                "recorded": [provider.recorded],
                "identity_hash": [version.identity_hash()],
                "settings": [canonical_json(settings)],
                RETIRED: [False],
            }
        )


_ELSEWHERE = {"predictions", "nightly"}
_OF_ASKING = {"prompt", "sampling", "max_tokens", "history", "concurrency", "deadline_s", "max_cost_usd"}
_OF_ASKING |= {"max_tokens_total", "max_recovery_attempts", "batch", "options"}


def recorded_settings(version: ModelVersion) -> dict[str, Json]:
    """Returns the settings recorded for recorded answers: their provenance instead of settings used for asking."""
    settings = version.model_dump(mode="json", exclude=_ELSEWHERE | _OF_ASKING)
    told = {suite: found.provenance.model_dump(mode="json") for suite, found in version.predictions.items()}
    return settings | {PROVENANCE: told}
