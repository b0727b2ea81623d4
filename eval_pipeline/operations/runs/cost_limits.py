"""What a command tells of its limit on costs: before, what it may spend, and after, what it has spent."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from eval_pipeline.core import shown
from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.planning import RunPlan, plan
from eval_pipeline.operations.upkeep.keeping import evaluation_is_current
from eval_pipeline.providers.registry import traits_of
from eval_pipeline.stages.spending import judge_version
from eval_pipeline.state.place import state_place
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Workspace


def told_before(
    workspace: Workspace, partitions: Iterable[Partition], scope: Scope, epoch: str, limit: CostLimit
) -> str:
    """Returns what a run may spend of its limit, before any model is asked; it is empty if all is up to date.

    Raises:
        UsageError: the price of a model that has to be asked is unknown, so that the limit could not be kept.
    """
    plans = list[RunPlan]()
    for place in partitions:
        with suppress(InputError):  # the run reports what is wrong with the suite, and goes on with the others
            if not evaluation_is_current(Inputs.of(workspace, place, run=RunContext(epoch=epoch), scope=scope)):
                plans.append(plan(workspace, place, scope, epoch))
    for found in plans:
        if not found.is_expected and (names := _unpriced(workspace, found)):
            told = f"the limit of {shown.dollars(limit.usd)} of the {limit.kind} could not be kept"
            raise UsageError(f"no price of '{names[0]}' is known, so that {told}; set `price` in its entry")
    return limit_text(workspace, plans, limit) if plans else ""


def limit_text(workspace: Workspace, plans: Iterable[RunPlan], limit: CostLimit) -> str:
    """Returns what plans may spend of a limit, as a sentence without its full stop."""
    most, unknown = 0.0, list[str]()
    for found in plans:
        most += sum(bound.usd or 0.0 for bound in (found.generations, found.recovery, found.judge) if bound)
        unknown += _unpriced(workspace, found)
    told = (
        f"may spend up to {shown.dollars(limit.usd if unknown else min(most, limit.usd))} of {shown.dollars(limit.usd)}"
    )
    if unknown:
        return f"{told}; what {' and '.join(map(repr, dict.fromkeys(unknown)))} may cost is not known"
    if most > limit.usd:
        return f"{told}: all calls together could cost {shown.dollars(most)}, and what does not fit is not asked"
    return told


def spent_text(home: Path, limit: CostLimit) -> str:
    """Returns what was spent under a limit, and how many calls it refused. Raises StoreError."""
    spent = state_place().spent_under(home, limit.account)
    told, refused = f"{shown.dollars(spent.usd)} of {shown.dollars(limit.usd)}", sum(spent.refused.values())
    return told if not refused else f"{told}; {shown.counted(refused, 'call', 'calls')} not made because of this limit"


def _unpriced(workspace: Workspace, found: RunPlan) -> list[str]:
    """Returns the model and the judge of a plan, if they are to be asked and nobody knows for what price."""
    unknown = []
    if any(bound.calls and bound.usd is None for bound in (found.generations, found.recovery)):
        unknown.append(workspace.model_version(found.model_version))
    if found.judge is not None and found.judge.calls and found.judge.usd is None:
        unknown.append(judge_version(workspace, found.suite))
    return [version.name for version in unknown if traits_of(version.provider).charged]
