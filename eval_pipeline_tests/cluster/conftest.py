"""The cluster of tests that need no other processes."""

from contextlib import nullcontext

import pytest

from eval_pipeline.chain import runner
from eval_pipeline.chain.shards import TURNS_A_SHARD
from eval_pipeline_tests.cluster.in_this_process import InThisProcess


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> InThisProcess:
    found = InThisProcess()
    monkeypatch.setattr(runner, "open_cluster", lambda: nullcontext(found))
    monkeypatch.setenv(TURNS_A_SHARD, "1")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return found
