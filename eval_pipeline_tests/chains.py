"""Stages by name, as tests of what is around them run and look at them."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from eval_pipeline.chain import evaluation
from eval_pipeline.chain.evaluation import chain_of, stage_of
from eval_pipeline.chain.freshness import is_current, prepared
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.upkeep.keeping import compare, evaluation_is_current
from eval_pipeline.stages import code
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.tracks.base import Metric, Track
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import StageResult, Workspace

INGESTING = ("raw_dataset", "cases")


def ran(workspace: Workspace, partition: Partition, *names: str, **fields: Any) -> StageResult:
    """What the last of some stages of an evaluation gave; `fields` are those of its inputs."""
    inputs = Inputs.of(workspace, partition, **fields)
    return [run_stage(stage_of(inputs.track, name), inputs) for name in names][-1]


def ran_of_suite(workspace: Workspace, suite: str, *names: str, **fields: Any) -> StageResult:
    """What the last of some stages of a suite gave."""
    inputs = Inputs(workspace, suite, **fields)
    return [run_stage(stage_of(inputs.track, name), inputs) for name in names][-1]


def aggregates(workspace: Workspace, partition: Partition) -> tuple[str, ...]:
    """Names of the stages that make aggregates."""
    names = [stage.name for stage in chain_of(workspace.track(partition.suite))]
    return tuple(names[names.index("turn_metrics") + 1 : names.index("published")])


def stage_is_current(workspace: Workspace, partition: Partition, name: str, scope: Scope | None = None) -> bool:
    """Whether the record holds what a stage would make."""
    inputs = Inputs.of(workspace, partition, scope=scope or Scope())
    stage = stage_of(inputs.track, name)
    return is_current(stage, prepared(stage, inputs))


def is_up_to_date(workspace: Workspace, partition: Partition, scope: Scope | None = None, epoch: str = "") -> bool:
    """Whether the record holds everything of an evaluation."""
    run = RunContext(epoch=epoch)
    return evaluation_is_current(Inputs.of(workspace, partition, scope=scope or Scope(), run=run))


def checked(check: Callable[[Inputs], CheckVerdict], workspace: Workspace, place: Partition | str) -> CheckVerdict:
    """What a check says of an evaluation, or of a suite."""
    return check(Inputs(workspace, place) if isinstance(place, str) else Inputs.of(workspace, place))


def compared(workspace: Workspace, suite: str) -> bool:
    """Makes the comparisons of a suite where they are not current; whether they were."""
    return compare(Inputs(workspace, suite))


def with_metrics(monkeypatch: pytest.MonkeyPatch, track: Track, metrics: Iterable[Metric]) -> None:
    """Gives a track other metrics while the test lasts; the chain, which is made once a track, has its tables anew."""
    monkeypatch.setattr(track, "metrics", tuple(metrics))
    monkeypatch.setattr(evaluation, "_chain", evaluation._chain.__wrapped__)


def with_other_code(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Has functions of `stages.code` see other code while the test lasts, as after a change of the source."""
    for name in names:
        real = getattr(code, name)
        monkeypatch.setattr(code, name, lambda *given, real=real: (*real(*given), "=other code"))
    monkeypatch.setattr(evaluation, "_chain", evaluation._chain.__wrapped__)
