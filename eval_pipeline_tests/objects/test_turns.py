"""Hosts that share a bucket take turns at every stage of an evaluation, since all of them write its files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest

from eval_pipeline.chain import runner
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.bucket_address import BucketAddress
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.store.tables import TURN_RESULTS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.locks import of_home
from eval_pipeline.workspace.workspace import Workspace


@pytest.mark.parametrize("bucket", [None, BucketAddress("bucket", "evals")])
def test_a_stage_of_an_evaluation_is_made_by_one_host_at_a_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bucket: BucketAddress | None
) -> None:
    taken = []

    @contextmanager
    def held(root: Path, parts: Sequence[str], seconds: float) -> Iterator[None]:
        taken.append("/".join(parts))
        yield

    monkeypatch.setattr(runner, "held", held)
    place = Partition("small", "alpha", date(2026, 3, 1))
    inputs = Inputs.of(Workspace(Home(tmp_path, tmp_path / "data", bucket)), place)
    with runner._in_turn(Stage("turn_metrics", "", (), (TURN_RESULTS,)), inputs):
        pass
    expected = "suite=small/model_version=alpha/eval_date=2026-03-01/turn_metrics"
    assert taken == ([] if bucket is None else [of_home(expected, inputs.workspace.home)])
