"""Runs stages: everything that has to be done around every stage, no matter who runs it."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.chain.freshness import is_current, made_from, prepared
from eval_pipeline.chain.stage import Chain, Delivery, Facts, Stage
from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs, open_outputs
from eval_pipeline.workspace.runs import RUNNING, broken_off, in_turn, now, partition_lock, record_run
from eval_pipeline.workspace.shards.cluster import Cluster, open_cluster
from eval_pipeline.workspace.workspace import StageResult

if TYPE_CHECKING:
    from eval_pipeline.state.leases import Lease


def run_stage(stage: Stage, inputs: Inputs) -> StageResult:
    """Runs a stage if the record does not hold its result yet: checks, locks, reads, writes, reports.

    Raises:
        EvalError: the stage could not be run; the message is one sentence.
    """
    own = inputs.anew(partition=None) if stage.whole_suite else inputs.anew()
    if own.run.watch is not None and own.partition is not None:
        own.run.watch.step(own.place, own.run.run_id, stage.name)
    if stage.deliver is not None:
        delivered = stage.deliver(own, Delivery(gate(own.workspace), partial(_again, own)))
        own.workspace.fingerprints.save()
        return delivered
    prepared(stage, own)  # report errors before waiting for a lock
    with _in_turn(stage, own) as lease:
        own = prepared(stage, own.anew(lease=lease))
        made = made_from(stage, own)
        if stage.asks and stage.asks.begin(own, made):
            own = prepared(stage, own.anew(lease=lease))
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
    """Runs stages one after the other and returns their results by name."""
    return {stage.name: run_stage(stage, inputs) for stage in chain}


def _make(stage: Stage, inputs: Inputs, made: dict[str, str]) -> Facts:
    assert stage.run is not None
    header = inputs.header(stage.writes[0])
    if header is not None and dict(header.made_from) != made:  # equal inputs would give the same figures
        stage.replacing(inputs)
    opened, small = open_cluster() if stage.shards else None, inputs.is_small
    with _noted(stage, inputs), opened or nullcontext() as cluster, open_outputs(inputs, stage.writes, made) as outputs:
        if cluster is None:
            facts = stage.run(inputs, outputs) or {}
        else:
            facts = _in_shards(stage, inputs, outputs, made, cluster)
        if cluster is not None or not small:
            _refuse_changed(stage, inputs, made)
        if inputs.lease is not None:
            inputs.lease.check()  # before the files are in the record: another run may have taken over
    if cluster is not None:
        from eval_pipeline.chain.shards import drop_parts

        drop_parts(stage, inputs)
    if not small:
        inputs.workspace.give_back()  # what it freed would stay beside what the next stage takes
    return facts


def _in_shards(stage: Stage, inputs: Inputs, outputs: Outputs, made: dict[str, str], cluster: Cluster) -> Facts:
    from eval_pipeline.chain.shards import run_in_shards  # here, as few stages run on a cluster

    try:
        return run_in_shards(stage, inputs, outputs, made, cluster)
    except EvalError:
        _refuse_changed(stage, inputs, made)  # else a worker would be said to have other files than this run
        raise


def _refuse_changed(stage: Stage, inputs: Inputs, made: dict[str, str]) -> None:
    """Raises EvalError if another run has replaced what the stage read in parts: they may not fit together."""
    now = inputs.hashes(table for table in stage.reads if table.name in made)
    if changed := [name for name, content in now.items() if content != made[name]]:
        raise EvalError(
            f"{inputs.label(stage.name)}: another run has replaced {', '.join(changed)} in the record meanwhile; "
            "start this run again: it goes on from there, and no answer is asked for twice"
        )


def _again(inputs: Inputs, name: str, partition: Partition) -> StageResult:
    """Runs a stage of another evaluation of the suite."""
    return run_stage(stage_of(inputs.track, name), inputs.anew(partition=partition))


@contextmanager
def _noted(stage: Stage, inputs: Inputs) -> Iterator[None]:
    """Records in `runs` what a stage asked, and how the run ended if the block raises."""
    if stage.asks is None:
        yield
        return
    place = (inputs.workspace, inputs.place, inputs.run.run_id, inputs.counts)
    try:
        yield
    except BaseException as error:
        with suppress(EvalError):  # the error that ended the run is the one to report
            record_run(*place, status=broken_off(error), finished_at=now())
        raise
    record_run(*place, status=RUNNING, finished_at=None)


@contextmanager
def _in_turn(stage: Stage, inputs: Inputs) -> Iterator["Lease | None"]:
    """Makes sure that only one run at a time asks for an evaluation, and only one compares a suite's evaluations.

    Otherwise a run that looked at an older state of the record could write last. Of a stage in shards, one run would
    remove the parts that the other is about to read; of one that asks a judge, both would pay it. In a bucket, two
    hosts that make the same files would be in each other's way, so that they take turns at every stage; and who has
    lost its lease writes nothing.
    """
    if stage.asks:
        with partition_lock(inputs.workspace, inputs.place, inputs.progress) as lease:
            yield lease
    elif stage.whole_suite or stage.shards or stage.pays or inputs.workspace.place.is_shared:
        folders = inputs.key(stage.writes[0]).folders(stage.writes[0])
        # What a judge has said is the database's, whatever the home.
        name = stage.name if stage.pays else inputs.workspace.place.lock_name(stage.name)
        with in_turn(inputs.workspace, (*folders, name), inputs.label(stage.name), inputs.progress) as lease:
            yield lease
    else:
        yield None
