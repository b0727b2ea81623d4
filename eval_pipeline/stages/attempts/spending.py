"""The budget of a run: what its steps have spent of it, and which turns it did not allow."""

from datetime import UTC, datetime

import pyarrow.compute as pc

from eval_pipeline.asking.budgets import Amount, Budget
from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS, RUNS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import COMPLETE, INCOMPLETE, run_rows

REFUSED = "refused"
"""In the header of a record file: how many calls the budget did not allow that would have made rows of it."""


def budget_of(inputs: Inputs) -> Budget:
    """The budget of a run of one model version as its earlier steps, of all suites, have left it.

    It is read from `runs`, so that steps share it whatever processes they are in.
    """
    version, partition = inputs.version, inputs.place
    tokens, usd, refused = 0, None, 0
    if version.max_cost_usd is not None or version.max_tokens_total is not None:
        for key in inputs.record.partitions(RUNS):
            if (key.model_version, key.eval_date) != (partition.model_version, partition.eval_date):
                continue
            place = Partition(str(key.suite), partition.model_version, partition.eval_date)
            for row in run_rows(inputs.workspace, place, ["run_id", "tokens_spent", "usd_spent", "calls_refused"]):
                if row["run_id"] == inputs.run.run_id:
                    tokens += row["tokens_spent"] or 0
                    usd = usd if row["usd_spent"] is None else (usd or 0.0) + row["usd_spent"]
                    refused += row["calls_refused"] or 0
    before, closed = Amount(tokens, usd), not inputs.run.asks
    return Budget(version, before, reached=refused > 0, closed=closed, today=lambda: datetime.now(UTC).date())


def turns_not_asked(inputs: Inputs) -> set[tuple[str, int]]:
    """Turn and sample of the generations that the budget did not allow."""
    rows = inputs.read(GENERATIONS, ["turn_id", "sample", "call_error"])
    refused = rows.filter(pc.equal(rows["call_error"], CallErrorKind.BUDGET.value))
    return {(row["turn_id"], row["sample"]) for row in refused.to_pylist()}


def recoveries_refused(inputs: Inputs) -> int:
    """Turns whose recovery the budget cut short."""
    header = inputs.header(RECOVERY_ATTEMPTS)
    return int(header.made_from.get(REFUSED, "0")) if header else 0


def ended_as(inputs: Inputs) -> str:
    """The status of a run that ended well: `incomplete` where the budget kept anything from being asked."""
    return INCOMPLETE if recoveries_refused(inputs) or turns_not_asked(inputs) else COMPLETE
