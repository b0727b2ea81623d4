"""The aggregate `judge_agreement`: agreement of judge and evidence where both gave a verdict (docs/sql.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval_pipeline.analysis.aggregates.base import Codes, Floats, Row, Turns
from eval_pipeline.judge.judgement import NO_JUDGE, OVER_BUDGET
from eval_pipeline.statistics.intervals import estimate_rate
from eval_pipeline.statistics.raters.agreement import cohens_kappa
from eval_pipeline.store.tables import JUDGEMENTS

_JUDGED = ((1.0, "same"), (0.5, "partly"), (0.0, "different"))
_READ = ("turn_id", "sample", "value", "reason", "error", "asked", "cached", "input_tokens", "output_tokens", "usd")
_NOT_ASKED = (NO_JUDGE, OVER_BUDGET)
_EVIDENCE = ((1.0, "same"), (0.0, "different"))


def agreement_rows(turns: Turns) -> list[Row]:
    """Returns one row: the confusion matrix of the judge's three verdicts and the evidence's two, and Cohen's kappa.

    Only pairs that a judge was asked about are compared; identical texts needed no judge. For kappa and rates, `partly`
    counts as not the same.
    """
    judgements = _judgements(turns)
    judged = np.array([_opinion(row) for row in judgements], dtype=np.float64)
    evidence = _evidence(turns)
    both = ~np.isnan(evidence) & ~np.isnan(judged)
    mine, theirs, clusters = judged[both] == 1.0, evidence[both] == 1.0, turns.clusters[both]
    kappa = cohens_kappa(mine, theirs, clusters)
    row: Row = {"n": int(both.sum()), "clusters": kappa.clusters}
    for value, word in _JUDGED:
        for verdict, meaning in _EVIDENCE:
            count = ((judged[both] == value) & (evidence[both] == verdict)).sum()
            row[f"judge_{word}_evidence_{meaning}"] = int(count)
    row |= _rate("agreement", mine == theirs, clusters)
    row |= _rate("true_positive_rate", mine[theirs], clusters[theirs])
    row |= _rate("true_negative_rate", ~mine[~theirs], clusters[~theirs])
    row |= _rate("base_rate", theirs, clusters)
    row |= {"kappa": kappa.kappa, "kappa_se": kappa.se, "kappa_low": kappa.low, "kappa_high": kappa.high}
    return [row | _calls(judgements, ~np.isnan(evidence)) | {"reason": kappa.reason}]


def _rate(name: str, values: NDArray[np.bool_], clusters: Codes) -> Row:
    found = estimate_rate(values.astype(np.float64), clusters)
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def _judgements(turns: Turns) -> list[Mapping[str, Any] | None]:
    """Returns the recorded judgement of each turn; None if there was nothing to compare."""
    rows = turns.read(JUDGEMENTS, _READ).to_pylist()
    by_turn = {(row["turn_id"], row["sample"]): row for row in rows}
    places = zip(turns.wide["turn_id"].to_pylist(), turns.wide["sample"].to_pylist(), strict=True)
    return [by_turn.get(place) for place in places]


def _opinion(row: Mapping[str, Any] | None) -> float:
    """Returns the judge's value; NaN if the judge was not asked or failed."""
    if row is None or not row["asked"] or row["error"] is not None or row["value"] is None:
        return np.nan
    return float(row["value"])


def _evidence(turns: Turns) -> Floats:
    """Returns 1 for the same, 0 for different, and NaN for undecided or where equivalence was not checked."""
    climbed = np.array([rung is not None for rung in turns.wide["equivalence_rung"].to_pylist()], dtype=bool)
    return np.where(climbed, turns.floats("sql_equivalence"), np.nan)


def _calls(judgements: Sequence[Mapping[str, Any] | None], decided: NDArray[np.bool_]) -> Row:
    asked = np.array([row is not None and row["asked"] for row in judgements], dtype=bool)
    spared = np.array(
        [row is not None and row["value"] is None and row["reason"] not in _NOT_ASKED for row in judgements]
    )
    found = [row for row in judgements if row is not None]
    called = [row for row in found if row["asked"] and not row["cached"]]
    priced = all(row["usd"] is not None for row in called)
    return {
        "judged": int(asked.sum()),
        "judge_calls": len(called),
        "judge_tokens": sum((row["input_tokens"] or 0) + (row["output_tokens"] or 0) for row in called),
        "judge_usd": sum(row["usd"] for row in called) if priced else None,
        "judge_failures": sum(row["error"] is not None for row in found),
        "calls_saved": int((decided & spared.astype(bool) & ~asked).sum()),
        "calls_avoidable": int((decided & asked).sum()),
    }


def headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the agreement with the judge among the rows' numbers."""
    names = (
        "n",
        "agreement",
        "true_positive_rate",
        "true_negative_rate",
        "base_rate",
        "kappa",
        "judge_calls",
        "judge_tokens",
        "judge_usd",
        "calls_saved",
        "reason",
    )
    return {name: rows[0][name] for name in names}
