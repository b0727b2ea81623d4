"""`model_comparisons`: every two model versions of a suite on their common turns (docs/statistics.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from eval_pipeline.analysis.comparisons.evaluations import (
    GOLD,
    Evaluated,
    Paired,
    ScoredEvaluation,
    TurnReader,
    paired,
    with_other_gold,
)
from eval_pipeline.core.ids import json_text
from eval_pipeline.statistics import Corrected, PairedDifference, estimate_mean, holm, paired_difference, pareto_front

Row = dict[str, Any]
COSTS = ("tokens", "usd", "latency_ms")
SIGNIFICANT = 0.05
CODE = ("harness", "scorer", "gold", "judge")
"""Of what an evaluation was made with, what has to be alike for two of them to be compared."""
REFUSED = "not compared: they were not scored by the same "


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two evaluations of a suite on their common turns; differences are the second's minus the first's.

    Attributes:
        tested: the paired difference of accuracies.
        broken, fixed: ids of the turns that only the first, and that only the second got right.
        costs: means and paired differences, as columns of the table.
        reason: why there is no test.
    """

    first: Evaluated
    second: Evaluated
    tested: PairedDifference
    broken: Sequence[str]
    fixed: Sequence[str]
    costs: Mapping[str, float | None]
    reason: str | None

    @property
    def p_value(self) -> float | None:
        """Of there being no difference; None where that cannot be told."""
        return None if self.reason else self.tested.p_value


def comparison_rows(pairs: Sequence[tuple[Evaluated, Evaluated]], reader: TurnReader) -> list[Row]:
    """A row a pair, corrected for all of them together."""
    scores = {id(found): reader.read(found) for pair in pairs for found in pair}
    compared = [_compare(a, b, scores[id(a)], scores[id(b)], reader) for a, b in pairs]
    corrected = holm([found.p_value for found in compared])
    tests = sum(found is not None for found in corrected)
    # One front over all evaluations that appear, each once.
    fronts = _fronts({id(found): (found, scores[id(found)]) for pair in pairs for found in pair})
    return [
        _row(found, correction, tests) | _front_columns("a", fronts[id(a)]) | _front_columns("b", fronts[id(b)])
        for (a, b), found, correction in zip(pairs, compared, corrected, strict=True)
    ]


def every_pair(evaluations: Sequence[Evaluated]) -> list[tuple[Evaluated, Evaluated]]:
    """All pairs, each once, in the order given."""
    return list(combinations(evaluations, 2))


def verdict_of(tested: PairedDifference, corrected: Corrected, lost: str, won: str) -> str:
    """Which way the two differ, if they do: the p-value and the interval, both corrected, have to say so."""
    low, high = tested.interval(corrected.alpha)
    assert low is not None and high is not None
    if corrected.p_value >= SIGNIFICANT or low <= 0.0 <= high:
        return "not_significant"
    return lost if high < 0.0 else won


def _compare(
    first: Evaluated, second: Evaluated, a: ScoredEvaluation, b: ScoredEvaluation, reader: TurnReader
) -> Comparison:
    both = paired(a, b)
    tested = paired_difference(both.first["correct"], both.second["correct"], both.clusters)
    broken, fixed = changed_turns(both, reader)
    reason = why_refused(first, second, a.places.size + b.places.size, with_other_gold(a, b)) or tested.reason
    return Comparison(first, second, tested, broken, fixed, _cost_columns(both), reason)


def why_refused(first: Evaluated, second: Evaluated, turns: int, other_gold: int = 0) -> str | None:
    """Why two evaluations must not be compared, with the command that makes them comparable; None where they may.

    `turns` is what that command would score, of both together, `other_gold` on how many the gold is another one.
    """
    differing = [name for name in first.changes(second) if name in CODE]
    if other_gold and GOLD not in differing:
        differing.append(GOLD)
    if not differing:
        return None
    places = dict.fromkeys((first.partition, second.partition))
    what = "edition of the gold" if differing == [GOLD] else "code"
    if GOLD in differing and len(differing) > 1:
        what = "code and edition of the gold"
    names = "".join(f" --model-version {name}" for name in dict.fromkeys(place.model_version for place in places))
    days = "".join(f" --eval-date {day}" for day in dict.fromkeys(place.eval_date for place in places))
    command = f"eval-pipeline rescore --suite {first.partition.suite}{names}{days}"
    if first.made_with["suite"] != second.made_with["suite"]:
        return (
            f"{REFUSED}{what} (they differ in {', '.join(differing)}), and one was asked about another state of the "
            f"suite; `{command}` scores it again where only its gold is another one and asks no model, "
            "`eval-pipeline run` evaluates both anew"
        )
    asked = "; the judge's answers are kept" if "judge" in differing else ""
    return (
        f"{REFUSED}{what} (they differ in {', '.join(differing)}); `{command}` scores what is older again: at most "
        f"{turns:,} turns, and asks no model{asked}"
    )


def is_refused(reason: str | None) -> bool:
    """Whether that is why there is no test: the two must not be compared."""
    return reason is not None and reason.startswith(REFUSED)


def changed_turns(both: Paired, reader: TurnReader) -> tuple[list[str], list[str]]:
    """Ids of the turns that only the first, and that only the second got right."""
    change = both.second["correct"] - both.first["correct"]
    return reader.names(both.places[change < 0]), reader.names(both.places[change > 0])


def _cost_columns(both: Paired) -> dict[str, float | None]:
    columns: dict[str, float | None] = {}
    for name in COSTS:
        a, b = both.first[name], both.second[name]
        means = [float(values.mean()) if values.size and not np.isnan(values).any() else None for values in (a, b)]
        columns |= {f"{name}_a": means[0], f"{name}_b": means[1]}
        # A mean over those turns alone whose cost is known would not be the cost of the turns.
        change = estimate_mean(b - a if None not in means else np.zeros(0), both.clusters if None not in means else [])
        columns |= {f"{name}_difference": change.mean}
        columns |= {f"{name}_difference_low": change.low, f"{name}_difference_high": change.high}
    return columns


def _row(found: Comparison, corrected: Corrected | None, pairs: int) -> Row:
    a, b, tested = found.first.partition, found.second.partition, found.tested
    row: Row = {
        "model_a": a.model_version,
        "model_b": b.model_version,
        "eval_date": max(a.eval_date, b.eval_date),
        "eval_date_a": a.eval_date,
        "eval_date_b": b.eval_date,
        "simulated": found.first.simulated or found.second.simulated,
        "n": tested.n,
        "clusters": tested.clusters,
        "accuracy_a": tested.first,
        "accuracy_b": tested.second,
        "difference": None if is_refused(found.reason) else tested.difference,
        "pairs": pairs,
        "broken": tested.broken,
        "fixed": tested.fixed,
        "changed_conversations": tested.changed,
        "broken_turns": json_text(list(found.broken)),
        "fixed_turns": json_text(list(found.fixed)),
        "correlation": tested.correlation,
    }
    return row | _test_columns(tested, corrected) | dict(found.costs) | {"reason": found.reason}


def _test_columns(tested: PairedDifference, corrected: Corrected | None) -> Row:
    """What the test says; nothing where there is none."""
    if corrected is None:
        names = ("se", "low", "high", "p_value", "p_corrected", "low_corrected", "high_corrected", "verdict")
        return dict.fromkeys((*names, "minimum_detectable_difference")) | {"method": "none"}
    low, high = tested.interval()
    low_corrected, high_corrected = tested.interval(corrected.alpha)
    return {
        "se": tested.se,
        "low": low,
        "high": high,
        "p_value": tested.p_value,
        "method": tested.method,
        "p_corrected": corrected.p_value,
        "low_corrected": low_corrected,
        "high_corrected": high_corrected,
        "verdict": verdict_of(tested, corrected, "a_better", "b_better"),
        "minimum_detectable_difference": tested.detectable,
    }


def _fronts(evaluations: Mapping[int, tuple[Evaluated, ScoredEvaluation]]) -> dict[int, tuple[str | None, bool | None]]:
    """For each evaluation the cost of its Pareto front, and whether it stands on it.

    Models and stand-ins have fronts of their own: an oracle would beat every model.
    """
    fronts: dict[int, tuple[str | None, bool | None]] = {}
    for simulated in (False, True):
        group = {name: scored for name, (found, scored) in evaluations.items() if found.simulated is simulated}
        means = {
            cost: np.array([_mean(scored, cost) for scored in group.values()]) for cost in ("correct", "usd", "tokens")
        }
        cost = next((cost for cost in ("usd", "tokens") if not np.isnan(means[cost]).any()), None)
        on_front = pareto_front(means[cost], means["correct"]).tolist() if cost else [None] * len(group)
        fronts |= {name: (cost, on) for name, on in zip(group, on_front, strict=True)}
    return fronts


def _mean(scored: ScoredEvaluation, name: str) -> float:
    values = scored.values[name]
    return float(values.mean()) if values.size else np.nan


def _front_columns(side: str, front: tuple[str | None, bool | None]) -> Row:
    cost, on_front = front
    return {f"pareto_cost_{side}": cost, f"on_front_{side}": on_front}
