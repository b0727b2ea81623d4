"""Callers of scripted providers."""

from typing import Any

from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline_tests.fakes.scripted import ScriptedProvider

QUICK = RetryPolicy(max_retries=3, first_pause_s=0.001, jitter=0.0)


def make_caller(provider: ScriptedProvider, journal: Journal, epoch: str = "", **settings: Any) -> Caller:
    own = {name: settings.pop(name) for name in ("concurrency", "deadline_s") if name in settings}
    version = ModelVersion(name="v", provider="scripted", model="m", **own)
    return Caller(provider, journal, version, epoch, **{"retries": QUICK, **settings})
