"""The aggregate `statistics`.

It holds the mean of every metric with its uncertainty, overall and by split (docs/statistics.md).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval_pipeline.analysis.aggregates.base import Floats, NoTurns, Row, Turns, texts_coded, unweighted
from eval_pipeline.analysis.aggregates.cost import successful_turns
from eval_pipeline.analysis.draws.rows import drawn_row, look_rows, traffic_rows
from eval_pipeline.statistics.cost import latency_quantiles
from eval_pipeline.statistics.intervals import Estimate, estimate_mean, estimate_rate
from eval_pipeline.statistics.samples.repeated import pass_at_k, pass_hat_k
from eval_pipeline.tracks.capabilities import Tabulates

ALL = "all"
SHARED_RATES = ("correct", "first_attempt_correct")
SHARED_MEANS = ("score", "tokens", "usd", "latency_ms", "attempts")
UNIT = (0.0, 1.0)
NOT_NEGATIVE = (0.0, np.inf)
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that every turn has.

    Attributes:
        is_rate: whether the values are 0 and 1.
        failed: turns on which the metric itself failed; their value is 0.
        bounds: smallest and largest possible mean.
    """

    name: str
    values: Floats
    is_rate: bool
    failed: Mask | None = None
    bounds: tuple[float, float] = (-np.inf, np.inf)

    def estimate(self, mask: Mask, clusters: NDArray[np.int32]) -> Estimate:
        """Estimates the mean over the turns in the mask."""
        values = self.values[mask]
        return estimate_rate(values, clusters) if self.is_rate else estimate_mean(values, clusters, self.bounds)


def statistics_rows(turns: Turns) -> list[Row]:
    """Returns a row per metric and split, then rows on conversations, the track's own, latency, repeated sampling.

    If the turns were drawn, only the share of right answers is known for the whole suite.
    """
    if turns.draw is not None:
        found = drawn_row(turns.draw.looks[-1])
        others = [row for row in _rows(NoTurns(turns.inputs)) if row["split"] == ALL]
        return [found if row["metric"] == found["metric"] else row for row in unweighted(others)]
    return _rows(turns)


def _rows(turns: Turns) -> list[Row]:
    clusters = turns.clusters.astype(np.int32)  # those of each split are held: half the memory
    splits = [(split, value, mask, clusters[mask]) for split, value, mask in _splits(turns)]
    # One measure after the other, so that not all need be in memory.
    by_measure = [
        [_row(measure, split, value, clusters, mask) for split, value, mask, clusters in splits]
        for measure in _measures(turns)
    ]
    rows = [row for of_split in zip(*by_measure, strict=True) for row in of_split]
    further = (_conversation_rows, _track_rows, _latency_rows, _repeated_rows, traffic_rows)
    return rows + [row for rows_of in further for row in rows_of(turns)]


def _measures(turns: Turns) -> Iterator[Measure]:
    primary = turns.failed(turns.track.primary_metric)
    yield from (Measure(name, turns.floats(name), True, primary) for name in SHARED_RATES)
    for name in SHARED_MEANS:
        yield Measure(name, turns.floats(name), False, bounds=UNIT if name == "score" else NOT_NEGATIVE)
    for metric in turns.track.metrics:
        if metric.kind != "label":
            values, bounds = turns.floats(metric.name), UNIT if metric.kind == "score" else NOT_NEGATIVE
            yield Measure(metric.name, values, metric.kind == "boolean", turns.failed(metric.name), bounds)


def _splits(turns: Turns) -> Iterator[tuple[str, str, Mask]]:
    """Yields every group of turns that gets its own figures: split, value and mask."""
    yield ALL, ALL, np.ones(len(turns), dtype=bool)
    tags, texts = texts_coded(turns.results["tags"])
    held = [set(json.loads(text)) for text in texts]
    for tag in sorted(set().union(*held)):
        yield "tag", tag, np.isin(tags, [code for code, own in enumerate(held) if tag in own])
    for feature in turns.track.feature_columns:
        if feature.type == "BOOLEAN":
            values = turns.floats(feature.name)
            yield from ((feature.name, text, values == number) for text, number in (("true", 1), ("false", 0)))
    columns = {
        "turn_number": "turn_index",
        **{a: turns.track.complexity_columns[a] for a in turns.track.complexity_axes},
    }
    for split, column in columns.items():
        values = turns.floats(column)
        for level in sorted(set(values[~np.isnan(values)].tolist())):
            yield split, str(int(level)), values == level
    classes, names = texts_coded(turns.results["error_class"])
    for error_class in sorted(set(names) - {""}):
        yield "error_class", error_class, classes == names.index(error_class)


def _row(measure: Measure, split: str, value: str, clusters: NDArray[np.int32], mask: Mask) -> Row:
    failed = measure.failed[mask] if measure.failed is not None else None
    row = estimate_row(measure.name, split, value, measure.estimate(mask, clusters))
    if failed is not None and failed.any():
        kept = measure.values[mask][~failed]
        row |= {"failures": int(failed.sum())}
        row |= {"mean_without_failures": float(np.nanmean(kept)) if np.isfinite(kept).any() else None}
    return row


def estimate_row(metric: str, split: str, value: str, estimate: Estimate) -> Row:
    """Returns a row of the table for an estimate without metric failures."""
    return {
        "metric": metric,
        "split": split,
        "split_value": value,
        "n": estimate.n,
        "clusters": estimate.clusters,
        "mean": estimate.mean,
        "se": estimate.se,
        "low": estimate.low,
        "high": estimate.high,
        "method": estimate.method,
        "failures": 0,
        "mean_without_failures": estimate.mean,
        "reason": estimate.reason,
    }


def _conversation_rows(turns: Turns) -> list[Row]:
    """Returns the share of fully correct conversations.

    It leaves out those cut short by the budget, and those with a turn that cannot be scored.
    """
    _, first = np.unique(turns.conversations, return_index=True)
    first = first[(turns.whole & turns.decidable)[first]]
    success = successful_turns(turns)[first]
    return [estimate_row("conversation_success", ALL, ALL, estimate_rate(success, turns.clusters[first]))]


def _track_rows(turns: Turns) -> list[Row]:
    """Returns the track's own figures over conversations."""
    if not isinstance(turns.track, Tabulates):
        return []
    figures = turns.track.conversation_figures(
        {"turn_results": turns.results, turns.wide_name: turns.wide, **turns.further}
    )
    if not figures:
        return []
    cases, samples = turns.results["case_id"].to_pylist(), turns.results["sample"].to_pylist()
    cluster = dict(zip(zip(cases, samples, strict=True), turns.clusters.tolist(), strict=True))
    rows = []
    for figure in figures:
        values = np.array(list(figure.values.values()), dtype=np.float64)
        clusters = np.array([cluster[place] for place in figure.values], dtype=np.int64)
        found = estimate_mean(values, clusters, UNIT)
        rows.append(estimate_row(figure.metric, figure.split, figure.split_value, found))
    return rows


def _latency_rows(turns: Turns) -> list[Row]:
    """Returns quantiles of the time per turn (all attempts together) in milliseconds."""
    values = turns.floats("latency_ms")
    known = values[~np.isnan(values)]
    found = latency_quantiles(known)
    reason = "quantiles have no interval here" if len(known) else "no latency known"
    clusters = len(np.unique(turns.clusters))
    return [
        estimate_row(name, ALL, ALL, Estimate(len(known), clusters, value, None, None, None, "none", reason))
        for name, value in (("latency_ms_p50", found.p50), ("latency_ms_p95", found.p95))
    ]


def _repeated_rows(turns: Turns) -> list[Row]:
    """Returns pass@k and pass^k over the samples of each turn, if there are several."""
    samples = turns.results["sample"].to_numpy()
    if not len(samples) or samples.max() == 0:
        return []
    scored = np.flatnonzero(~np.isnan(turns.floats("correct")))
    if not scored.size:
        return []
    ids, correct = np.array(turns.results["turn_id"].to_pylist(), dtype=object)[scored], turns.floats("correct")[scored]
    _, first, places = np.unique(ids, return_index=True, return_inverse=True)
    n, right = np.bincount(places), np.bincount(places, weights=correct).astype(np.int64)
    rows: list[Row] = []
    for k in range(1, int(n.min()) + 1):
        for name, chance in ((f"pass@{k}", pass_at_k(n, right, k)), (f"pass^{k}", pass_hat_k(n, right, k))):
            rows.append(estimate_row(name, ALL, ALL, estimate_mean(chance, turns.clusters[scored[first]], UNIT)))
    return rows


def headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the accuracy among the rows' numbers."""
    overall = {row["metric"]: row for row in rows if row["split"] == ALL}
    correct = overall["correct"]
    shown = {"accuracy": correct["mean"], "accuracy_low": correct["low"], "accuracy_high": correct["high"]}
    names = ("first_attempt_correct", "conversation_success", "latency_ms_p50", "latency_ms_p95")
    return shown | {"turns": correct["n"]} | {name: overall[name]["mean"] for name in names}


def _look_rows(turns: Turns) -> list[Row]:
    return [] if turns.draw is None else look_rows(turns.draw)
