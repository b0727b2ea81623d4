"""Checks whether the budgets of model and judge allowed every call of an evaluation."""

import pyarrow.compute as pc

from eval_pipeline.asking.budgets import Amount
from eval_pipeline.core.model import Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.shown import counted, dollars
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.stages.spending import (
    budget_of,
    judge_budget,
    judge_version,
    limit_reached,
    not_judged,
    recoveries_refused,
    turns_not_asked,
)
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext, run_rows


def check_budget_kept(inputs: Inputs) -> CheckVerdict:
    """Checks that the budgets of model and judge allowed every call of the evaluation."""
    turns, recoveries, unjudged = len(turns_not_asked(inputs)), recoveries_refused(inputs), not_judged(inputs)
    facts: dict[str, Json] = {"turns_not_asked": turns, "recoveries_cut_short": recoveries}
    if unjudged:
        facts["answers_not_judged"] = unjudged
    if not turns and not recoveries and not unjudged:
        return CheckVerdict(True, "the budget allowed every call", facts)
    left = [f"{counted(turns, 'turn was', 'turns were')} not asked"] * bool(turns)
    left += [f"{counted(recoveries, 'recovery was', 'recoveries were')} cut short"] * bool(recoveries)
    unheard = [f"{counted(unjudged, 'answer was', 'answers were')} not judged"] * bool(unjudged)
    if reached := limit_reached(inputs):
        return CheckVerdict(False, f"{reached}: {' and '.join(left + unheard)}; the next run asks for the rest", facts)
    rows = run_rows(inputs.workspace, inputs.place, ["started_at", "run_id"])
    last = max(rows, key=lambda row: row["started_at"], default={"run_id": ""})
    of_run = inputs.anew(run=RunContext(last["run_id"]))
    told = []
    if left:
        spent = budget_of(of_run).before
        facts |= {"tokens_spent": spent.tokens, "usd_spent": spent.usd}
        told.append(_sentence("of the run", inputs.version, spent, " and ".join(left)) + _unknown_usage(inputs))
    if unheard:
        judge = judge_version(inputs.workspace, inputs.suite)
        spent = judge_budget(of_run, judge).before
        facts |= {"judge_tokens_spent": spent.tokens, "judge_usd_spent": spent.usd}
        told.append(_sentence(f"of the judge '{judge.name}'", judge, spent, unheard[0]))
    return CheckVerdict(False, "; ".join(told), facts)


def _unknown_usage(inputs: Inputs) -> str:
    """Returns what answers without token counts did to the budget: each counts with all that it could have cost."""
    rows = inputs.read(GENERATIONS, ["response", "input_tokens", "output_tokens"])
    answered = rows.filter(pc.is_valid(rows["response"]))
    unknown = int(pc.sum(pc.is_null(pc.add(answered["input_tokens"], answered["output_tokens"]))).as_py() or 0)
    if not unknown:
        return ""
    return (
        f"; {unknown} of {answered.num_rows} answers came without token counts, so each counts with all that it could "
        "have cost: have the endpoint report usage, or leave the limit out"
    )


def _sentence(whose: str, version: ModelVersion, spent: Amount, left: str) -> str:
    """Returns what was spent of which limits, what is left undone, and what to do about it."""
    limits = []
    if version.max_cost_usd is not None:
        limits.append(f"{dollars(spent.usd or 0)} of {dollars(version.max_cost_usd)} (max_cost_usd)")
    if version.max_tokens_total is not None:
        limits.append(f"{spent.tokens:,} of {version.max_tokens_total:,} tokens (max_tokens_total)")
    sums = " and ".join(limits) or "which was smaller then"
    if limits and not spent.tokens and not spent.usd:
        # A call reserves the most that it could cost, which is several times its actual cost.
        return f"the budget {whose} is too small for one call, {sums}: {left}; raise it"
    return f"the budget {whose} is reached, {sums}: {left}; the next run asks for the rest"
