"""The table `model_comparisons`: pairs of a suite's model versions on their common turns (docs/statistics.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from eval_pipeline.analysis.comparisons.evaluations import GOLD, CompleteEvaluation
from eval_pipeline.analysis.comparisons.scored import Paired, ScoredEvaluation, TurnReader, paired, with_other_gold
from eval_pipeline.analysis.comparisons.two_figures import (
    TwoFigures,
    conservative_columns,
    largest_p,
    note_of,
    verdict_of_both,
)
from eval_pipeline.core import shown
from eval_pipeline.core.ids import json_text
from eval_pipeline.statistics.cost import pareto_front
from eval_pipeline.statistics.intervals import estimate_mean
from eval_pipeline.statistics.pairs.paired import CorrectedTest, holm, paired_difference
from eval_pipeline.workspace.asked.scope import FULL

T = TypeVar("T")
Row = dict[str, Any]
COSTS = ("tokens", "usd", "latency_ms")
CODE = ("harness", "scorer", "gold", "judge")
"""What two evaluations must have been made with alike to be comparable."""
REFUSED = "not compared: they were not scored by the same "


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two evaluations of a suite on their common turns; differences are second minus first.

    Attributes:
        figures: the paired differences of accuracies.
        broken, fixed: ids of the turns that both answered and only the first (broken) or the second (fixed) got right.
        costs: means and paired differences over the turns that both answered, as columns of the table.
        reason: why there is no test.
    """

    first: CompleteEvaluation
    second: CompleteEvaluation
    figures: TwoFigures
    broken: Sequence[str]
    fixed: Sequence[str]
    costs: Mapping[str, float | None]
    reason: str | None

    @property
    def p_value(self) -> float | None:
        """The p-value that decides the verdict; None if there is no test."""
        return None if self.reason else self.figures.p_decisive

    @property
    def p_conservative(self) -> float | None:
        """The p-value of the conservative figure alone."""
        return None if is_refused(self.reason) else largest_p(self.figures.conservative)


def comparison_rows(
    pairs: Sequence[tuple[CompleteEvaluation, CompleteEvaluation]],
    reader: TurnReader,
    names: Sequence[tuple[str, str]] = (),
) -> list[Row]:
    """Returns one row per pair, corrected for all pairs together.

    Args:
        pairs: the evaluations.
        reader: reads their turns.
        names: what each pair is called in remarks; by default by model versions.
    """
    names = names or [(a.partition.model_version, b.partition.model_version) for a, b in pairs]
    scores = {id(found): reader.read(found) for pair in pairs for found in pair}
    compared = [_compare(a, b, scores[id(a)], scores[id(b)], reader) for a, b in pairs]
    corrected = holm([found.p_value for found in compared])
    conservative = holm([found.p_conservative for found in compared])
    tests = sum(found is not None for found in corrected)
    # One Pareto front over all evaluations that appear, each counted once.
    fronts = _fronts({id(found): (found, scores[id(found)]) for pair in pairs for found in pair})
    return [
        _row(found, correction, tests, named)
        | conservative_columns(found.figures, alone)
        | reader.coverage(a).columns("_a")
        | reader.coverage(b).columns("_b")
        | _front_columns("a", fronts[id(a)])
        | _front_columns("b", fronts[id(b)])
        for (a, b), found, correction, alone, named in zip(pairs, compared, corrected, conservative, names, strict=True)
    ]


def every_pair(evaluations: Sequence[T]) -> list[tuple[T, T]]:
    """Returns all pairs, each once, in the given order."""
    return list(combinations(evaluations, 2))


def _compare(
    first: CompleteEvaluation, second: CompleteEvaluation, a: ScoredEvaluation, b: ScoredEvaluation, reader: TurnReader
) -> Comparison:
    both = paired(a, b)
    answered = both.where((both.first["answered"] * both.second["answered"]) == 1.0)
    figures = two_figures(both, answered)
    broken, fixed = changed_turns(answered, reader)
    reason = why_refused(first, second, a.places.size + b.places.size, with_other_gold(a, b)) or figures.reason
    return Comparison(first, second, figures, broken, fixed, _cost_columns(answered), reason)


def two_figures(both: Paired, answered: Paired) -> TwoFigures:
    """Computes the paired differences on all common turns, and on those that both answered."""
    conservative = paired_difference(both.first["correct"], both.second["correct"], both.clusters)
    if answered.places.size == both.places.size:  # the usual case
        return TwoFigures(conservative, conservative, 0, 0)
    return TwoFigures(
        paired_difference(answered.first["correct"], answered.second["correct"], answered.clusters),
        conservative,
        int((both.first["answered"] == 0.0).sum()),
        int((both.second["answered"] == 0.0).sum()),
    )


def why_refused(first: CompleteEvaluation, second: CompleteEvaluation, turns: int, other_gold: int = 0) -> str | None:
    """Returns why two evaluations must not be compared, with the command that makes them comparable; None if they may.

    Args:
        first: an evaluation.
        second: another one of the same suite.
        turns: number of turns of both that the command would score again.
        other_gold: number of common turns scored by different golds.
    """
    differing = [name for name in first.changes(second) if name in CODE]
    if other_gold and GOLD not in differing:
        differing.append(GOLD)
    if not differing:
        return None
    files = [found.held.file for found in (first, second) if found.held is not None]
    if files:
        return (
            f"{REFUSED}code and gold (they differ in {', '.join(differing)}), and what {files[0]} holds cannot be "
            "scored again; save it anew with this version and these suites"
        )
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
        f"{shown.turns(turns)}, and asks no model{asked}"
    )


def is_refused(reason: str | None) -> bool:
    """Whether the reason is that the two must not be compared."""
    return reason is not None and reason.startswith(REFUSED)


def changed_turns(both: Paired, reader: TurnReader) -> tuple[list[str], list[str]]:
    """Returns the ids of the turns that only the first got right, and of those that only the second did."""
    change = both.second["correct"] - both.first["correct"]
    return reader.names(both.places[change < 0]), reader.names(both.places[change > 0])


def _cost_columns(both: Paired) -> dict[str, float | None]:
    columns: dict[str, float | None] = {}
    for name in COSTS:
        a, b = both.first[name], both.second[name]
        means = [float(values.mean()) if values.size and not np.isnan(values).any() else None for values in (a, b)]
        columns |= {f"{name}_a": means[0], f"{name}_b": means[1]}
        # A mean over only the turns with known cost would not be the cost of all turns.
        change = estimate_mean(b - a if None not in means else np.zeros(0), both.clusters if None not in means else [])
        columns |= {f"{name}_difference": change.mean}
        columns |= {f"{name}_difference_low": change.low, f"{name}_difference_high": change.high}
    return columns


def _row(found: Comparison, corrected: CorrectedTest | None, pairs: int, names: tuple[str, str]) -> Row:
    a, b, tested = found.first.partition, found.second.partition, found.figures.answered
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
    told = [] if is_refused(found.reason) else [_other_part(found, *names), note_of(found.figures, corrected, *names)]
    tests = _test_columns(found.figures, corrected)
    return row | tests | dict(found.costs) | {"note": "; ".join(filter(None, told)) or None, "reason": found.reason}


def _other_part(found: Comparison, a: str, b: str) -> str | None:
    """Returns that the two were asked different parts of the suite; None if they were not."""
    if found.first.scope == found.second.scope:
        return None
    turns = shown.counted(found.figures.answered.n, "common turn is", "common turns are")
    part, other = (a, b) if found.second.scope == FULL else (b, a)
    return f"{part} was asked another part of the suite than {other}: only {turns} compared"


def _test_columns(figures: TwoFigures, corrected: CorrectedTest | None) -> Row:
    """Returns the columns of the tests; all None if there is no test."""
    tested = figures.answered
    if corrected is None:
        names = ("se", "low", "high", "p_value", "p_exact", "p_decisive", "p_corrected", "low_corrected")
        return dict.fromkeys((*names, "high_corrected", "verdict", "minimum_detectable_difference")) | {
            "method": "none"
        }
    low, high = tested.interval()
    low_corrected, high_corrected = tested.interval(corrected.alpha)
    return {
        "se": tested.se,
        "low": low,
        "high": high,
        "p_value": tested.p_value,
        "p_exact": tested.p_exact,
        "p_decisive": figures.p_decisive,
        "method": tested.method,
        "p_corrected": corrected.p_value,
        "low_corrected": low_corrected,
        "high_corrected": high_corrected,
        "verdict": verdict_of_both(figures, corrected),
        "minimum_detectable_difference": tested.detectable,
    }


def _fronts(
    evaluations: Mapping[int, tuple[CompleteEvaluation, ScoredEvaluation]],
) -> dict[int, tuple[str | None, bool | None]]:
    """Returns for each evaluation the cost used for its Pareto front, and whether it is on the front.

    Models and stand-ins have separate fronts, since an oracle would dominate every model. An evaluation of another part
    of the suite than the others is on none: its turns may be the easy or the short ones. Neither is one with no other
    beside it.
    """
    fronts: dict[int, tuple[str | None, bool | None]] = dict.fromkeys(evaluations, (None, None))
    scopes = [found.scope for found, _ in evaluations.values()]
    common = FULL if FULL in scopes else next(iter(scopes), FULL)
    for simulated in (False, True):
        group = {
            name: scored
            for name, (found, scored) in evaluations.items()
            if found.simulated is simulated and found.scope == common
        }
        means = {
            cost: np.array([_mean(scored, cost) for scored in group.values()]) for cost in ("correct", "usd", "tokens")
        }
        cost = next((cost for cost in ("usd", "tokens") if not np.isnan(means[cost]).any()), None)
        on_front = (
            pareto_front(means[cost], means["correct"]).tolist() if cost and len(group) > 1 else [None] * len(group)
        )
        fronts |= {name: (cost, on) for name, on in zip(group, on_front, strict=True)}
    return fronts


def _mean(scored: ScoredEvaluation, name: str) -> float:
    values = scored.values[name]
    return float(values.mean()) if values.size else np.nan


def _front_columns(side: str, front: tuple[str | None, bool | None]) -> Row:
    cost, on_front = front
    return {f"pareto_cost_{side}": cost, f"on_front_{side}": on_front}
