"""Stages without tables: what the runner does around them."""

from pathlib import Path

import pytest

from eval_pipeline.chain.runner import run_stage
from eval_pipeline.chain.stage import Delivery, Stage
from eval_pipeline.core.home import Home
from eval_pipeline.fingerprints.fingerprints import Fingerprints
from eval_pipeline.fingerprints.parsed import reading
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import CARRIERS, StageResult
from eval_pipeline_tests.support import Lab


def test_the_next_process_knows_the_code_that_delivers(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, root = tmp_path / "fingerprints", "eval_pipeline.core.ids:json_hash"
    monkeypatch.setattr(Home, "fingerprints", cache)

    def deliver(own: Inputs, _: Delivery) -> StageResult:
        return StageResult(0, own.workspace.fingerprints.of(root).code, False, {})

    found = run_stage(Stage("told", "", (), deliver=deliver), lab.inputs()).content_hash
    monkeypatch.delattr(reading, "read_module")  # nothing is parsed
    assert Fingerprints(cache, stops=CARRIERS).of(root).code == found
