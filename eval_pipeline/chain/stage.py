"""A stage of the chain as a value: everything that is done around a stage follows from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core.model import Json, Partition
from eval_pipeline.fingerprints import Root
from eval_pipeline.stages.checks.verdicts import Verdict
from eval_pipeline.store.listing import Refusal
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.workspace import StageResult

Facts = Mapping[str, Json]


def _nothing(_: Inputs) -> dict[str, str]:
    return {}


def _no_facts(_: Inputs) -> Facts:
    return {}


def _no_code(_: Inputs) -> tuple[Root, ...]:
    return ()


def nothing_to_keep(_: Inputs) -> None:
    """For stages of whose former tables nothing is kept."""


def _never(_: Inputs) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Check:
    """A check that is made on what a stage has just written.

    Attributes:
        blocking: what comes after waits for it to pass, and nothing is published without.
        warning: failing it is a remark, not an error.
    """

    name: str
    description: str
    verdict: Callable[[Inputs], Verdict]
    blocking: bool = False
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Asking:
    """What is particular about stages that ask models: one at a time for an evaluation, and each is told of in `runs`.

    Attributes:
        prepare: fixes what the stage asks under (scope, epoch), under the lock.
        note: puts the run into `runs`, where it is not there.
    """

    prepare: Callable[[Inputs], Inputs]
    note: Callable[[Inputs], None]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a stage that hands on is told of the rest of the chain.

    Attributes:
        gate: why an evaluation must not be published; None where it may.
        again: runs a stage of another evaluation of the suite, by the stage's name.
    """

    gate: Refusal
    again: Callable[[str, Partition], object]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the chain, and one asset of Dagster's.

    Attributes:
        reads: tables that it reads, of any key.
        writes: tables that it writes, the main one first; none for a stage that hands on what is there.
        run: makes the tables; what it gives are facts of this very run.
        deliver: of a stage without tables, all it does.
        code: the definitions that decide what it makes; what they reach is found by itself.
        settings: what decides it beside tables and code, by name.
        facts: headline numbers from the record, whether it ran or not.
        replacing: done before what is there is made anew.
        unfinished: whether making the same again may give more, since a call failed.
        after: names of stages that it follows without reading their tables.
        whole_suite: it looks at a suite, not at one evaluation.
        asks_again: settings whose change would have to be asked about again, which nobody does by himself.
    """

    name: str
    description: str
    reads: tuple[Table, ...]
    writes: tuple[Table, ...] = ()
    run: Callable[[Inputs, Outputs], Facts | None] | None = None
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
    asks_again: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset({"python", "parquet"})


Chain = Sequence[Stage]


def before(chain: Chain, stage: Stage) -> tuple[str, ...]:
    """Names of the stages that a stage comes after: those that write what it reads, and those it names."""
    reads = {table.name for table in stage.reads}
    return tuple(
        other.name
        for other in chain
        if other is not stage and (other.name in stage.after or reads & {table.name for table in other.writes})
    )
