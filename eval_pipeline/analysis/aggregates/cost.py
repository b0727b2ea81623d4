"""The aggregate `cost_per_correct_answer`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eval_pipeline.analysis.aggregates.base import Floats, Row, Turns, sums, unweighted
from eval_pipeline.statistics.cost import RatioEstimate, cost_per_success

NO_TOKENS = "tokens unknown"
NO_PRICE = "no price for this model"
NO_CORRECT_TURN = "no correct turn"


def cost_rows(turns: Turns) -> list[Row]:
    """Returns one row: the total cost of the evaluation, and its ratio to the number of right answers.

    What was spent on turns that cannot be scored is in the totals only.
    """
    scored, decidable = ~np.isnan(turns.floats("correct")), turns.decidable
    correct, success = np.nan_to_num(turns.floats("correct")), successful_turns(turns)
    tokens, usd = turns.floats("tokens"), turns.floats("usd")
    row: Row = {
        "tokens_total": _whole(_total(tokens)),
        "usd_total": _total(usd),
        "successful_conversations": int(success.sum()),
        "conversations": len(np.unique(turns.conversations)),
        "correct_turns": int(correct.sum()),
        "turns": len(turns),
    }
    for unit, spent, missing in (("tokens", tokens, NO_TOKENS), ("usd", usd, NO_PRICE)):
        of_conversations, of_turns = (sums(np.where(kept, spent, 0), turns.clusters) for kept in (decidable, scored))
        conversation = cost_per_success(of_conversations, sums(success, turns.clusters), missing)
        turn = cost_per_success(of_turns, sums(correct, turns.clusters), missing, NO_CORRECT_TURN)
        row |= _interval(f"{unit}_per_success", conversation) | _interval(f"{unit}_per_correct_turn", turn)
        row["reason" if unit == "tokens" else "usd_reason"] = _reasons(conversation, turn)
    if turns.draw is not None:  # what was spent and counted is known, but no ratio of the whole suite
        row |= dict.fromkeys((name for name in row if "_per_" in name), None)
        return unweighted([row])
    return [row]


def successful_turns(turns: Turns) -> Floats:
    """Returns 1 for the first turn of every fully correct conversation, else 0, so that sums count conversations.

    Conversations cut short by the budget, or with a turn that cannot be scored, do not count as correct.
    """
    _, first, places = np.unique(turns.conversations, return_index=True, return_inverse=True)
    wrong = np.bincount(places, weights=1 - np.nan_to_num(turns.floats("correct"))) if len(turns) else np.zeros(0)
    marks = np.zeros(len(turns))
    marks[first[wrong == 0]] = 1
    return marks * turns.whole


def _interval(name: str, found: RatioEstimate) -> Row:
    return {name: found.ratio, f"{name}_low": found.low, f"{name}_high": found.high}


def _reasons(*estimates: RatioEstimate) -> str | None:
    """Joins the reasons for missing figures, each once; returns None if none is missing."""
    return "; ".join(dict.fromkeys(found.reason for found in estimates if found.reason)) or None


def _total(values: Floats) -> float | None:
    return None if np.isnan(values).any() else float(values.sum())


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the costs among the rows' numbers."""
    names = ("tokens_total", "usd_total", "tokens_per_success", "usd_per_success", "reason")
    return {name: rows[0][name] for name in names}
