"""Estimates the accuracy on the traffic that a suite's cases were drawn from, with known probabilities."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eval_pipeline.core.covering.population import SIZE, STRATUM, TRAFFIC
from eval_pipeline.core.ids import parse_json
from eval_pipeline.store.tables import CASES, GENERATIONS

if TYPE_CHECKING:
    from eval_pipeline.analysis.aggregates.aggregate import Row
    from eval_pipeline.analysis.aggregates.base import Floats, Turns

METHOD = "stratified"
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
    return [_row(turns, drawn, name, values) for name, values in told]


def _row(turns: "Turns", drawn: dict[str, tuple[str, int]], metric: str, values: "Floats") -> "Row":
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
        "method": "none" if no else METHOD,
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
