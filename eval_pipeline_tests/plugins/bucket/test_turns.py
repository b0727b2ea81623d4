"""Hosts that share a bucket take turns at every stage of an evaluation, since all of them write its files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.chain import runner
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline.store.tables import JUDGEMENTS, TURN_RESULTS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Workspace


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the locks that are taken."""
    found = list[str]()

    @contextmanager
    def in_turn(workspace: Workspace, parts: Sequence[str], *_: Any) -> Iterator[None]:
        found.append("/".join(parts))
        yield

    monkeypatch.setattr(runner, "in_turn", in_turn)
    return found


def inputs_of(home: Home) -> Inputs:
    return Inputs.of(Workspace(home), Partition("small", "alpha", date(2026, 3, 1)))


@pytest.mark.parametrize("bucket", [None, BucketAddress("bucket", "evals")])
def test_a_stage_of_an_evaluation_is_made_by_one_host_at_a_time(
    taken: list[str], tmp_path: Path, bucket: BucketAddress | None
) -> None:
    inputs = inputs_of(Home(tmp_path, tmp_path / "data", bucket))
    with runner._in_turn(Stage("turn_metrics", "", (), (TURN_RESULTS,)), inputs):
        pass
    expected = "suite=small/model_version=alpha/eval_date=2026-03-01/turn_metrics"
    assert taken == ([] if bucket is None else [inputs.workspace.place.lock_name(expected)])


@pytest.mark.parametrize("bucket", [None, BucketAddress("bucket", "evals"), BucketAddress("other", "evals")])
def test_a_judge_is_asked_by_one_run_at_a_time_whatever_their_homes(
    taken: list[str], tmp_path: Path, bucket: BucketAddress | None
) -> None:
    """What it has said is in the database that they share."""
    with runner._in_turn(
        Stage("judgements", "", (), (JUDGEMENTS,), pays=True), inputs_of(Home(tmp_path, tmp_path, bucket))
    ):
        pass
    assert taken == ["suite=small/model_version=alpha/eval_date=2026-03-01/judgements"]
