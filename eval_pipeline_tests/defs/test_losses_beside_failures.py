"""What a run leaves that fails, is canceled or is killed: the loss of another model version is told, nothing else."""

import datetime as dt
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.errors import DagsterExecutionInterruptedError

from eval_pipeline.core.errors import EvalError
from eval_pipeline.defs.assets import suite_assets
from eval_pipeline.defs.assets.partitions import DIMENSION, EPOCH, EVAL_DATE, model_version
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.defs.running.looking_after import LookingAfter
from eval_pipeline.operations.runs.publication import Publication
from eval_pipeline.store.published.compared import open_losses, uncompared
from eval_pipeline.workspace.noting.commands import lag
from eval_pipeline_tests.defs.runs import materialise
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, number

COMPARING = {"model_comparisons", "trends", "gold_suspects", "reviews", "comparison_published", "comparison_report"}
LATER = (DAY + dt.timedelta(days=1)).isoformat()
NIGHT = {EVAL_DATE: LATER, EPOCH: LATER}
LOSING, ENDED = "losing", "ended"
OTHERS = (
    ("generations", "fails", False),
    ("turn_metrics", "is killed", False),
    ("published", "fails", False),
    ("published", "is killed", False),
)


class Killed(BaseException):
    """Nobody catches it, as if the process was gone."""


ENDINGS = {
    "fails": EvalError("the disk is full"),
    "is canceled": DagsterExecutionInterruptedError(),
    "is killed": Killed(),
}


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def after(lab: Lab, puppet: type[Puppet], module_folder: Path) -> Iterator[dg.DagsterInstance]:
    """The instance of a home in which one model version has just got worse, in a run that compared nothing."""

    def make(lab: Lab) -> None:
        lab.suite("small", [case(f"page_{n:02}", ("50", 50.0)) for n in range(24)])
        lab.versions(*[{"name": name, "provider": "puppet"} for name in (LOSING, ENDED)])
        assert lab.cli("run", "--no-report", "--eval-date", DAY.isoformat()).code == 0
        Puppet.answer = staticmethod(lambda call: number(9.0 if call.case_id < "page_12" else 50.0))
        with open_instance(lab.home) as found:
            found.add_dynamic_partitions(DIMENSION, [LOSING, ENDED])
            assert run(lab, found, LOSING).success
        Puppet.reset()

    lab.made_once(module_folder / "after", make)
    with open_instance(lab.home) as found:
        yield found


def run(lab: Lab, instance: dg.DagsterInstance, name: str) -> dg.ExecuteInProcessResult:
    """A run of a backfill, in which comparisons are another wave; its process ends with it."""
    stages = [stage.name for stage, _ in suite_assets.placed(suite_assets.chain_of(lab.workspace().track("small")))]
    only = [f"small/{stage}" for stage in stages if stage not in COMPARING]
    real, publications = EvaluationResource.publication_of, list[Publication]()

    def noted(self: EvaluationResource, run_id: str) -> Publication:
        publications.append(real(self, run_id))
        return publications[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(EvaluationResource, "publication_of", noted)
        try:
            return materialise(lab, instance, "small", only=only, launched=NIGHT, partition_key=name)
        finally:
            for publication in publications:
                if (note := publication.command._note) is not None:
                    note._file.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("asset", "ending", "restarted"),
    [
        ("generations", "is killed", False),
        ("turn_metrics", "fails", False),
        ("turn_metrics", "is canceled", False),  # at `generations`, a run of Dagster's own is, in `browser`
        ("published", "is killed", True),
        *(pytest.param(*others, marks=pytest.mark.soak) for others in OTHERS),
    ],
)
def test_a_loss_is_told_whatever_happens_to_another_run(
    lab: Lab, after: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, asset: str, ending: str, restarted: bool
) -> None:
    care = LookingAfter(lab.home)
    with suppress(Killed, DagsterExecutionInterruptedError):
        run_that_ends(lab, after, monkeypatch, asset, ending)
    for _ in range(2):
        care = LookingAfter(lab.home) if restarted else care
        care.look(after)
    lost = [
        (row["model_version"], row["eval_date"].isoformat(), row["compared"]) for row in open_losses(lab.home.store)
    ]
    # Both are asked the same, so that they lose alike; what only could not be published is published by `dev`.
    names = [ENDED, LOSING] if asset == "published" else [LOSING]
    assert lost == [(name, LATER, True) for name in names]
    assert uncompared(lab.home.store) == []
    assert lag(lab.home) == ""
    red = {stage for stage in failed(after) if stage not in {asset}}
    assert red == set(), "what the run never came to is not red"


@pytest.mark.always
def test_a_count_that_was_read_before_plans_went_and_kept_after_is_made_anew(
    lab: Lab, after: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_that_ends(lab, after, monkeypatch, "generations", "fails")
    assert {"generations", "turn_metrics", "published"} <= failed(after), "the run itself does not withdraw its plans"
    kept = {record.asset_entry.asset_key: record.asset_entry.cached_status for record in after.get_asset_records()}
    care = LookingAfter(lab.home)
    care._withdraw(after)
    assert failed(after) == {"generations"}
    for key, count in kept.items():
        if count is not None:
            after.update_asset_cached_status_data(key, count)
    assert "published" in failed(after)
    care._withdraw(after)
    assert failed(after) == {"generations"}


def run_that_ends(
    lab: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, asset: str, ending: str
) -> None:
    """A run of a model version in which making one asset ends badly."""
    real: Any = suite_assets._evaluated

    def broken(context: Any, evaluation: Any, stage: Any, inputs: Any) -> Any:
        if stage.name == asset:
            raise ENDINGS[ending]
        return real(context, evaluation, stage, inputs)

    with monkeypatch.context() as patched:
        patched.setattr(suite_assets, "_evaluated", broken)
        assert not run(lab, instance, ENDED).success


def failed(instance: dg.DagsterInstance) -> set[str]:
    """Assets of which a partition is shown as failed."""
    from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

    found = set()
    for key in instance.all_asset_keys():
        told = get_and_update_asset_status_cache_value(instance, key, model_version, instance)
        if told is not None and told.serialized_failed_partition_subset:
            subset = told.deserialize_failed_partition_subsets(model_version)
            found |= {key.path[-1]} if list(subset.get_partition_keys()) else set()
    return found
