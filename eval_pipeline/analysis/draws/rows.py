"""Makes the rows about drawn evaluations: looks in `sampled_estimates` and `statistics`, estimates of the traffic."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eval_pipeline.core.covering.population import SIZE, STRATUM, TRAFFIC
from eval_pipeline.core.ids import parse_json
from eval_pipeline.store.tables import CASES, GENERATIONS

if TYPE_CHECKING:
    from eval_pipeline.analysis.aggregates.base import Floats, Turns
    from eval_pipeline.analysis.draws.looks import Draw, Look, SuiteEstimate

Row = dict[str, Any]
METHOD = "adaptive"


def look_rows(draw: "Draw") -> list[Row]:
    """Returns the rows of `sampled_estimates`."""
    rows: list[Row] = []
    for look in draw.looks:
        last = look is draw.looks[-1]
        rows.append(_row(draw, look, "correct", look.correct, last=last))
        if look.difference is not None:
            rows.append(_row(draw, look, "difference", look.difference, last=last))
    return rows


def drawn_row(look: "Look") -> Row:
    """Returns the row of `statistics` for the share of right turns of the whole suite."""
    return {
        "metric": "correct",
        "split": "all",
        "split_value": "all",
        "n": look.turns,
        "clusters": look.cases,
        "mean": look.correct.value,
        "se": None,
        "low": look.correct.low,
        "high": look.correct.high,
        "method": METHOD,
        "failures": 0,
        "mean_without_failures": None,
        "reason": None,
    }


def _row(draw: "Draw", look: "Look", metric: str, figure: "SuiteEstimate", *, last: bool) -> Row:
    design = draw.design
    shift = look.correct.value - look.difference.value if look.difference and metric == "difference" else 0.0
    low, high = look.naive_low, look.naive_high
    return {
        "look": look.number,
        "looks": look.looks,
        "metric": metric,
        "until": design.until.label(),
        "baseline": None if design.baseline is None else design.evaluations[design.baseline],
        "turns": look.turns,
        "cases": look.cases,
        "suite_turns": design.turns,
        "evaluations": len(design.evaluations),
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "effective": look.effective,
        "naive": look.naive - shift,
        "naive_low": None if low is None else low - shift,
        "naive_high": None if high is None else high - shift,
        "usd": look.usd,
        "verdict": look.verdict,
        "stopped": draw.stopped if last else None,
    }


TRAFFIC_METHOD = "stratified"
NOT_ALL = "not every case that was drawn from the traffic was asked"
_VERDICT = "source_correct"


def traffic_rows(turns: "Turns") -> list["Row"]:
    """Returns a row for the share of right turns, and one for the log's own verdict if there is any.

    Suites whose cases were not drawn have none.
    """
    # stratum and its size of each case that was drawn
    rows = turns.read(CASES, ["case_id", "features"])
    features = zip(rows["case_id"].to_pylist(), rows["features"].to_pylist(), strict=True)
    read = ((case, parse_json(text)) for case, text in features if STRATUM in text)
    drawn = {case: (str(found[STRATUM]), int(found[SIZE])) for case, found in read}
    if not drawn:
        return []
    correct = turns.floats("correct")
    told = [("correct", correct)]
    verdicts = _verdicts(turns)
    if np.isfinite(verdicts).any():
        told.append((_VERDICT, verdicts))
    return [_traffic_row(turns, drawn, name, values) for name, values in told]


def _traffic_row(turns: "Turns", drawn: dict[str, tuple[str, int]], metric: str, values: "Floats") -> "Row":
    from eval_pipeline.statistics.samples.sampling import Strata, drawn_share

    cases = list(drawn)
    place = {case: number for number, case in enumerate(cases)}
    ones, sizes, asked = np.zeros(len(cases)), np.zeros(len(cases)), np.zeros(len(cases), dtype=bool)
    where = np.array([place.get(case, -1) for case in turns.results["case_id"].to_pylist()], dtype=np.int64)
    asked[where[where >= 0]] = True
    known = (where >= 0) & np.isfinite(values)
    np.add.at(ones, where[known], values[known])
    np.add.at(sizes, where[known], 1.0)
    strata = sorted(set(drawn.values()))
    codes = np.array([strata.index(drawn[case]) for case in cases], dtype=np.int64)
    population = np.array([size for _, size in strata], dtype=np.int64)
    found = drawn_share(ones, sizes, Strata(codes, np.maximum(population, np.bincount(codes))))
    reason = found.reason if asked.all() else NOT_ALL
    no = reason is not None
    return {
        "metric": metric,
        "split": TRAFFIC,
        "split_value": "all",
        "n": int(known.sum()),
        "clusters": found.n,
        "mean": None if not asked.all() else found.value,
        "se": None if no else found.se,
        "low": None if no else found.low,
        "high": None if no else found.high,
        "method": "none" if no else TRAFFIC_METHOD,
        "failures": 0,
        "mean_without_failures": None if not asked.all() else found.value,
        "reason": reason,
    }


def _verdicts(turns: "Turns") -> "Floats":
    """Returns the verdict of the log that an answer came from, 1 or 0; NaN without one."""
    from eval_pipeline.providers.standins.recorded import SOURCE

    found = turns.read(GENERATIONS, ["turn_id", "sample", "metadata"])
    told: dict[tuple[str, int], float] = {}
    for turn, sample, text in zip(*(found[name].to_pylist() for name in found.column_names), strict=True):
        source = (json.loads(text) if text else {}).get(SOURCE) or {}
        if source.get("correct") is not None:
            told[turn, sample] = float(source["correct"])
    places: Sequence[tuple[str, int]] = [
        *zip(turns.results["turn_id"].to_pylist(), turns.results["sample"].to_pylist(), strict=True)
    ]
    return np.array([told.get(place, np.nan) for place in places], dtype=np.float64)
