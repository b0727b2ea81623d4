"""The judge of a suite, what it may spend in a run, and the answers that its budget did not allow it to judge."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Json, Partition
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.tables import JUDGEMENTS, RUNS
from eval_pipeline.tracks.capabilities import Judged
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import record_run, run_rows
from eval_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    from eval_pipeline.asking.budgets import Budget

_SPENT = ("judge_tokens_spent", "judge_usd_spent", "judge_calls_refused")


def judge_version(workspace: Workspace, suite: str) -> ModelVersion:
    """Returns the judge of a suite: the model version that its options name, or by default a Claude model.

    Raises:
        UsageError: there is no such model version.
    """
    track = workspace.track(suite)
    option = track.judge_option if isinstance(track, Judged) else Judged.judge_option
    name: Json = dict(workspace.suite(suite).require().options)
    for part in option.split("."):
        name = name.get(part) if isinstance(name, Mapping) else None
    if name is None:
        from eval_pipeline.judge import DEFAULT_JUDGE

        return DEFAULT_JUDGE
    try:
        return workspace.model_version(str(name))
    except UsageError as error:
        raise UsageError(f"suite '{suite}', options.{option}: {error}") from error


def judge_budget(inputs: Inputs, judge: ModelVersion) -> "Budget":
    """Returns the judge's budget in a run, reduced by what the run has spent on this judge in all suites.

    As for models, a run is that of one model version.
    """
    from eval_pipeline.asking.answers import utc_today
    from eval_pipeline.asking.budgets import Amount, Budget
    from eval_pipeline.asking.permits import Permits

    run_id = inputs.run.run_id
    tokens, usd, refused = 0, None, 0
    if judge.max_cost_usd is not None or judge.max_tokens_total is not None:
        within = RecordKey(None, inputs.place.model_version, inputs.place.eval_date)
        for key in inputs.record.partitions(RUNS, within):
            place = Partition(str(key.suite), inputs.place.model_version, inputs.place.eval_date)
            rows = [row for row in run_rows(inputs.workspace, place, ["run_id", *_SPENT]) if row["run_id"] == run_id]
            if rows and judge_version(inputs.workspace, place.suite).name == judge.name:
                tokens += sum(row["judge_tokens_spent"] or 0 for row in rows)
                known = [row["judge_usd_spent"] for row in rows if row["judge_usd_spent"] is not None]
                usd = sum(known, usd or 0.0) if known else usd
                refused += sum(row["judge_calls_refused"] or 0 for row in rows)
    permits = None if inputs.lease is None else Permits(inputs.lease)
    return Budget(judge, Amount(tokens, usd), reached=refused > 0, permits=permits, today=utc_today)


def record_judge_spending(inputs: Inputs, budget: "Budget", refused: int) -> None:
    """Adds what the judge has spent to the run's row in `runs`; rescoring has no such row, and nothing is recorded."""
    workspace, place, run_id = inputs.workspace, inputs.place, inputs.run.run_id
    row = next((row for row in run_rows(workspace, place, ["run_id", *_SPENT]) if row["run_id"] == run_id), None)
    if row is None or not (budget.tokens or budget.usd or refused):
        return
    usd = row["judge_usd_spent"] if budget.usd is None else (row["judge_usd_spent"] or 0.0) + budget.usd
    record_run(
        workspace,
        place,
        run_id,
        judge_tokens_spent=(row["judge_tokens_spent"] or 0) + budget.tokens,
        judge_usd_spent=usd,
        judge_calls_refused=(row["judge_calls_refused"] or 0) + refused,
    )


def not_judged(inputs: Inputs) -> int:
    """Returns the number of answers that were not judged because the judge's budget was reached."""
    if not isinstance(inputs.track, Judged) or inputs.header(JUDGEMENTS) is None:
        return 0
    from eval_pipeline.judge import OVER_BUDGET

    return int(pc.sum(pc.equal(inputs.read(JUDGEMENTS, ["reason"])["reason"], OVER_BUDGET)).as_py() or 0)
