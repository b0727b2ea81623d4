"""Checks the gold that an evaluation was scored by."""

from eval_pipeline.core.model import Json
from eval_pipeline.stages.checks.verdicts import SHOWN, CheckVerdict
from eval_pipeline.stages.scoring.gold import drifted_cases, unscored_turns
from eval_pipeline.workspace.inputs import Inputs


def check_gold_usable(inputs: Inputs) -> CheckVerdict:
    """Checks that every turn could be scored, by gold that gives what it gave when the suite was read."""
    unscored, moved = unscored_turns(inputs), drifted_cases(inputs)
    facts: dict[str, Json] = {"unscored": len(unscored), "drifted": len(moved)}
    examples = dict.fromkeys((*(f"{case}: {why}" for case, why in unscored), *(f"{case}: drifted" for case in moved)))
    facts["examples"] = list(examples)[:SHOWN]
    if not examples:
        return CheckVerdict(
            True, "the gold of every turn could be used, and gave what it gave when the suite was read", facts
        )
    parts = [f"the gold of {len(unscored)} turns does not hold, so they cannot be scored"] * (len(unscored) > 1)
    parts += ["the gold of 1 turn does not hold, so it cannot be scored"] * (len(unscored) == 1)
    of = f"{len(moved)} turn{'s' * (len(moved) > 1)}"
    parts += [f"the gold of {of} gave another result than when the suite was read"] * bool(moved)
    return CheckVerdict(False, "; ".join(parts), facts)
