"""A stage of the chain, as a value; everything that is done around a stage is derived from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Json, Partition
from eval_pipeline.fingerprints.places import Root
from eval_pipeline.store.listing import Refusal
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import StageResult

if TYPE_CHECKING:
    from eval_pipeline.stages.checks.verdicts import CheckVerdict
    from eval_pipeline.workspace.outputs import Outputs

Facts = Mapping[str, Json]


def _nothing(_: Inputs) -> dict[str, str]:
    return {}


def _no_facts(_: Inputs) -> Facts:
    return {}


def _no_code(_: Inputs) -> tuple[Root, ...]:
    return ()


def nothing_to_keep(_: Inputs) -> None:
    """Does nothing; for stages whose replaced tables need not be kept."""


def _never(_: Inputs) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Check:
    """A check of the tables that a stage has just written.

    Attributes:
        blocking: later stages wait until it passes, and nothing is published if it fails.
        warning: a failure is a warning, not an error.
    """

    name: str
    description: str
    verdict: "Callable[[Inputs], CheckVerdict]"
    blocking: bool = False
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Asking:
    """Additional behaviour of stages that ask models.

    Only one of them runs at a time per evaluation, and each run is recorded in `runs`.

    Attributes:
        prepare: fixes the scope and epoch that the stage asks under; called while the lock is held.
        note: adds the run to `runs` if it is missing.
        begin: gets what the stage would be made from; keeps another evaluation that is in its place, or puts back this
            one; called while the lock is held. Returns whether the record holds other files now.
    """

    prepare: Callable[[Inputs], Inputs]
    note: Callable[[Inputs], None]
    begin: Callable[[Inputs, Mapping[str, str]], bool]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a delivering stage needs from the rest of the chain.

    Attributes:
        gate: returns why an evaluation must not be published; None if it may be.
        again: runs a stage, given by name, for another evaluation of the suite.
    """

    gate: Refusal
    again: Callable[[str, Partition], object]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the chain; it becomes one Dagster asset.

    Attributes:
        reads: tables that it reads, with any kind of key.
        writes: tables that it writes, the main one first; empty for stages that only deliver.
        run: makes the tables, and returns facts about this run.
        deliver: for a stage without tables, everything it does.
        code: the definitions that decide its result; what they call is found automatically.
        settings: whatever else decides the result, in addition to tables and code, by name.
        facts: headline numbers read from the record, whether the stage ran or not.
        replacing: called before an existing result is made anew.
        unfinished: whether running again with the same inputs may give more, because a call failed.
        after: names of stages that it follows without reading their tables.
        whole_suite: whether it processes a suite, not a single evaluation.
        shards: whether it may run on one range of cases at a time, each answer by itself, so that a cluster can share
            the work.
        pays: whether it asks a judge, so that a second run that makes it at the same time would pay again.
        asks_again: settings whose change would require asking a model again, which is done only on request.
    """

    name: str
    description: str
    reads: tuple[Table, ...]
    writes: tuple[Table, ...] = ()
    run: "Callable[[Inputs, Outputs], Facts | None] | None" = None
    deliver: Callable[[Inputs, Delivery], StageResult] | None = None
    code: Callable[[Inputs], Sequence[Root]] = _no_code
    settings: Callable[[Inputs], Mapping[str, str]] = _nothing
    facts: Callable[[Inputs], Facts] = _no_facts
    replacing: Callable[[Inputs], None] = nothing_to_keep
    unfinished: Callable[[Inputs], bool] = _never
    checks: tuple[Check, ...] = ()
    asks: Asking | None = None
    after: tuple[str, ...] = ()
    whole_suite: bool = False
    shards: bool = False
    pays: bool = False
    asks_again: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset({"python", "parquet"})


Chain = Sequence[Stage]


def before(chain: Chain, stage: Stage) -> tuple[str, ...]:
    """Returns the names of the stages that must run before a stage.

    These are the stages that write what it reads, and those in `after`.
    """
    reads = {table.name for table in stage.reads}
    return tuple(
        other.name
        for other in chain
        if other is not stage and (other.name in stage.after or reads & {table.name for table in other.writes})
    )
