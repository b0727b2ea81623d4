"""The budget of a run across its steps, and the turns that it did not allow."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.stages.judge_spending import not_judged
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS, RUNS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import COMPLETE, INCOMPLETE, run_rows

if TYPE_CHECKING:
    from eval_pipeline.asking.budgets import Budget

REFUSED = "refused"
"""Key in a record file's header: number of calls refused by the budget that would have added rows to the file."""


def budget_of(inputs: Inputs) -> "Budget":
    """Returns the budget of a model version's run, reduced by what its earlier steps have spent on all suites.

    It is computed from `runs`, so that steps in different processes share it.
    """
    from eval_pipeline.asking.budgets import Amount, Budget
    from eval_pipeline.asking.permits import Permits

    version, partition = inputs.version, inputs.place
    tokens, usd, refused = 0, None, 0
    if version.max_cost_usd is not None or version.max_tokens_total is not None:
        for key in inputs.record.partitions(RUNS, RecordKey(None, partition.model_version, partition.eval_date)):
            place = Partition(str(key.suite), partition.model_version, partition.eval_date)
            for row in run_rows(inputs.workspace, place, ["run_id", "tokens_spent", "usd_spent", "calls_refused"]):
                if row["run_id"] == inputs.run.run_id:
                    tokens += row["tokens_spent"] or 0
                    usd = usd if row["usd_spent"] is None else (usd or 0.0) + row["usd_spent"]
                    refused += row["calls_refused"] or 0
    before, closed = Amount(tokens, usd), not inputs.run.asks
    permits = None if inputs.lease is None else Permits(inputs.lease)
    return Budget(
        version, before, reached=refused > 0, closed=closed, permits=permits, today=lambda: datetime.now(UTC).date()
    )


def turns_not_asked(inputs: Inputs) -> set[tuple[str, int]]:
    """Returns (turn id, sample) of the first attempts that the budget refused."""
    rows = inputs.read(GENERATIONS, ["turn_id", "sample", "call_error"])
    refused = rows.filter(pc.equal(rows["call_error"], CallErrorKind.BUDGET.value))
    return {(row["turn_id"], row["sample"]) for row in refused.to_pylist()}


def recoveries_refused(inputs: Inputs) -> int:
    """Returns the number of turns whose recovery the budget cut short."""
    header = inputs.header(RECOVERY_ATTEMPTS)
    return int(header.made_from.get(REFUSED, "0")) if header else 0


def ended_as(inputs: Inputs) -> str:
    """Returns the status of a run that ended normally: `incomplete` if a budget refused a call to model or judge."""
    refused = recoveries_refused(inputs) or turns_not_asked(inputs) or not_judged(inputs)
    return INCOMPLETE if refused else COMPLETE
