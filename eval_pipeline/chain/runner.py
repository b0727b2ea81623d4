"""The one runner: what is done around every stage, whoever runs it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from math import inf

from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.chain.freshness import is_current, made_from, prepared
from eval_pipeline.chain.stage import Chain, Delivery, Facts, Stage
from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.store.durable import locked
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import open_outputs
from eval_pipeline.workspace.runs import FAILED, RUNNING, now, partition_lock, record_run
from eval_pipeline.workspace.workspace import StageResult


def run_stage(stage: Stage, inputs: Inputs) -> StageResult:
    """Makes what a stage makes where the record does not hold it: looks, locks, reads, writes, tells.

    Raises:
        EvalError: in one sentence, what kept it from being made.
    """
    own = inputs.anew(partition=None) if stage.whole_suite else inputs.anew()
    if stage.deliver is not None:
        return stage.deliver(own, Delivery(gate(own.workspace), partial(_again, own)))
    prepared(stage, own)  # what is wrong is told before anything is waited for
    with _in_turn(stage, own):
        own = prepared(stage, own)
        made = made_from(stage, own)
        reused = is_current(stage, own, made)
        if stage.asks:
            stage.asks.note(own)
        said: Facts = {} if reused else _make(stage, own, made)
    header = own.header(stage.writes[0])
    assert header is not None
    own.workspace.fingerprints.save()
    return StageResult(header.rows, own.combined_hash(stage.writes), reused, {**stage.facts(own), **said})


def run_chain(chain: Chain, inputs: Inputs) -> dict[str, StageResult]:
    """Runs stages one after the other: what came of each, by name."""
    return {stage.name: run_stage(stage, inputs) for stage in chain}


def _make(stage: Stage, inputs: Inputs, made: dict[str, str]) -> Facts:
    assert stage.run is not None
    header = inputs.header(stage.writes[0])
    if header is not None and dict(header.made_from) != made:  # what was made of the same things is no other figure
        stage.replacing(inputs)
    with _noted(stage, inputs), open_outputs(inputs, stage.writes, made) as outputs:
        return stage.run(inputs, outputs) or {}


def _again(inputs: Inputs, name: str, partition: Partition) -> StageResult:
    """A stage of another evaluation of the suite."""
    return run_stage(stage_of(inputs.track, name), inputs.anew(partition=partition))


@contextmanager
def _noted(stage: Stage, inputs: Inputs) -> Iterator[None]:
    """Notes in `runs` what a stage asked, and that the run failed where it ends with an exception."""
    if stage.asks is None:
        yield
        return
    place = (inputs.workspace, inputs.place, inputs.run.run_id, inputs.counts)
    try:
        yield
    except BaseException:
        with suppress(EvalError):  # what ended the run is what has to be told
            record_run(*place, status=FAILED, finished_at=now())
        raise
    record_run(*place, status=RUNNING, finished_at=None)


@contextmanager
def _in_turn(stage: Stage, inputs: Inputs) -> Iterator[None]:
    """Lets one run at a time ask for an evaluation, and one compare a suite's evaluations.

    Else one that looked at the record earlier could have the last word.
    """
    if stage.asks:
        with partition_lock(inputs.workspace, inputs.place, inputs.progress):
            yield
    elif stage.whole_suite:
        folders = inputs.key(stage.writes[0]).folders(stage.writes[0])
        with locked(inputs.workspace.home.root.joinpath("locks", *folders, f"{stage.name}.lock"), inf):
            yield
    else:
        yield
