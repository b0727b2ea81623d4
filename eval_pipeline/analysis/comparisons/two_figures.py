"""What is said of two models: on the turns that both answered, and with what is missing counted as wrong.

The rule of the verdict (docs/statistics.md, docs/decisions/0044): both figures, by both of their tests, have to agree.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eval_pipeline.statistics import Corrected, PairedDifference

SIGNIFICANT = 0.05
NOT_SIGNIFICANT = "not_significant"
A_BETTER, B_BETTER = "a_better", "b_better"
NONE_ANSWERED = "no turn was answered by both"


@dataclass(frozen=True, slots=True)
class TwoFigures:
    """A paired difference on two sets of turns; where both models answered everything it is one and the same.

    Attributes:
        answered: on the turns that both answered.
        conservative: on all turns scored for both, where one without an answer is wrong.
        unanswered_a, unanswered_b: turns of `conservative` that the first, and that the second did not answer.
    """

    answered: PairedDifference
    conservative: PairedDifference
    unanswered_a: int
    unanswered_b: int

    @property
    def p_decisive(self) -> float | None:
        """The largest of all p-values: below 5% only where every test of both figures is; None where one has none.

        To reject only where all tests do keeps the chance of a false alarm of each of them (Berger 1982, the
        intersection-union test).
        """
        found = [largest_p(self.answered), largest_p(self.conservative)]
        return max(p for p in found if p is not None) if None not in found else None

    @property
    def reason(self) -> str | None:
        """Why there is no verdict; None where there is one."""
        if not self.answered.n and self.conservative.n:
            return NONE_ANSWERED
        return self.answered.reason or self.conservative.reason


def largest_p(found: PairedDifference) -> float | None:
    """The larger one of the p-values by t (or McNemar) and by sign flips; None where there is no test."""
    if found.p_value is None or found.p_exact is None:
        return None
    return max(found.p_value, found.p_exact)


def verdict_of(tested: PairedDifference, corrected: Corrected, lost: str, won: str) -> str:
    """Which way the two differ, if they do: the p-value and the interval, both corrected, have to say so."""
    low, high = tested.interval(corrected.alpha)
    assert low is not None and high is not None
    if corrected.p_value >= SIGNIFICANT or low <= 0.0 <= high:
        return NOT_SIGNIFICANT
    return lost if high < 0.0 else won


def verdict_of_both(found: TwoFigures, corrected: Corrected) -> str:
    """`a_better` or `b_better` where both figures say so, else `not_significant`; `corrected` is of `p_decisive`."""
    words = {verdict_of(one, corrected, A_BETTER, B_BETTER) for one in (found.answered, found.conservative)}
    return words.pop() if len(words) == 1 else NOT_SIGNIFICANT


def note_of(found: TwoFigures, corrected: Corrected | None, a: str, b: str) -> str | None:
    """What a reader has to know beside the verdict, in a sentence or two; None where there is nothing.

    Args:
        found: of the pair.
        corrected: of `p_decisive`; None where there is no test.
        a: name of the first model version.
        b: name of the second one.
    """
    told = [*_unanswered(found, a, b)]
    if corrected is not None:
        told += [*_tests_disagree(found, corrected.alpha), *_figures_disagree(found, corrected.alpha)]
    return "; ".join(told) or None


def _unanswered(found: TwoFigures, a: str, b: str) -> Iterator[str]:
    for name, count in ((a, found.unanswered_a), (b, found.unanswered_b)):
        if count:
            yield f"{name} did not answer {count:,} of {found.conservative.n:,} turns"


def _tests_disagree(found: TwoFigures, alpha: float) -> Iterator[str]:
    """Where the two tests of a figure are on different sides of the level."""
    figures = [(found.answered, "on turns that both answered "), (found.conservative, "with missing as wrong ")]
    for one, where in figures if found.answered is not found.conservative else [(found.answered, "")]:
        if one.p_value is not None and one.p_exact is not None and (one.p_value < alpha) != (one.p_exact < alpha):
            yield f"{where}the tests disagree: p {one.p_value:.2g} by t, {one.p_exact:.2g} by sign flips"


def _figures_disagree(found: TwoFigures, alpha: float) -> Iterator[str]:
    """Where one figure is significant and the other is not, or they point in opposite ways."""
    ways = [_way(one, alpha) for one in (found.answered, found.conservative)]
    if ways[0] == ways[1]:
        return
    shown = [
        f"{one.difference:+.4f}, p {largest_p(one):.2g}, {where}"
        for one, where in (
            (found.answered, "on turns that both answered"),
            (found.conservative, "with missing as wrong"),
        )
    ]
    yield f"the figures disagree: {' and '.join(shown)}"


def _way(one: PairedDifference, alpha: float) -> int:
    """-1 or 1 where a figure is significant at the level, else 0."""
    p = largest_p(one)
    low, high = one.interval(alpha)
    if p is None or low is None or high is None or p >= alpha or low <= 0.0 <= high:
        return 0
    return 1 if low > 0.0 else -1


def conservative_columns(found: TwoFigures, corrected: Corrected | None) -> dict[str, Any]:
    """Columns on the figure with missing answers as wrong; `corrected` is of its own largest p-value."""
    one = found.conservative
    low, high = one.interval() if corrected else (None, None)
    return {
        "unanswered_a": found.unanswered_a,
        "unanswered_b": found.unanswered_b,
        "conservative_n": one.n,
        "conservative_accuracy_a": one.first,
        "conservative_accuracy_b": one.second,
        "conservative_difference": one.difference if corrected else None,
        "conservative_low": low,
        "conservative_high": high,
        "conservative_p_value": one.p_value if corrected else None,
        "conservative_p_exact": one.p_exact if corrected else None,
        "conservative_method": one.method if corrected else "none",
        "conservative_broken": one.broken,
        "conservative_fixed": one.fixed,
        "conservative_verdict": verdict_of(one, corrected, A_BETTER, B_BETTER) if corrected else None,
    }
