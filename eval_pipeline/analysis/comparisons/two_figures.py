"""The two figures of a comparison: on turns that both answered, and with missing answers counted as wrong.

A verdict requires that both figures agree, by both of their tests (docs/statistics.md, docs/decisions/0044).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.statistics.pairs.paired import CorrectedTest, PairedDifference

SIGNIFICANT = 0.05
NOT_SIGNIFICANT = "not_significant"
A_BETTER, B_BETTER = "a_better", "b_better"
NONE_ANSWERED = "no turn was answered by both"


@dataclass(frozen=True, slots=True)
class TwoFigures:
    """The paired difference on two sets of turns; both are the same if both models answered everything.

    Attributes:
        answered: on the turns that both answered.
        conservative: on all turns scored for both, with unanswered ones counted as wrong.
        unanswered_a, unanswered_b: number of turns of `conservative` that the first, or the second, did not answer.
    """

    answered: PairedDifference
    conservative: PairedDifference
    unanswered_a: int
    unanswered_b: int

    @property
    def p_decisive(self) -> float | None:
        """The largest p-value of all tests of both figures; None if a test is missing.

        Rejecting only if all tests reject preserves the false-alarm rate of each (Berger 1982, the intersection-union
        test).
        """
        found = [largest_p(self.answered), largest_p(self.conservative)]
        return max(p for p in found if p is not None) if None not in found else None

    @property
    def reason(self) -> str | None:
        """Why there is no verdict; None if there is one."""
        if not self.answered.n and self.conservative.n:
            return NONE_ANSWERED
        return self.answered.reason or self.conservative.reason


def largest_p(found: PairedDifference) -> float | None:
    """Returns the larger p-value of the t (or McNemar) test and the sign-flip test; None without a test."""
    if found.p_value is None or found.p_exact is None:
        return None
    return max(found.p_value, found.p_exact)


def verdict_of(tested: PairedDifference, corrected: CorrectedTest, lost: str, won: str) -> str:
    """Returns the direction of a difference that is significant by both corrected p-value and interval."""
    low, high = tested.interval(corrected.alpha)
    assert low is not None and high is not None
    if corrected.p_value >= SIGNIFICANT or low <= 0.0 <= high:
        return NOT_SIGNIFICANT
    return lost if high < 0.0 else won


def verdict_of_both(found: TwoFigures, corrected: CorrectedTest) -> str:
    """Returns `a_better` or `b_better` if both figures agree, else `not_significant`.

    `corrected` is for `p_decisive`.
    """
    words = {verdict_of(one, corrected, A_BETTER, B_BETTER) for one in (found.answered, found.conservative)}
    return words.pop() if len(words) == 1 else NOT_SIGNIFICANT


def note_of(found: TwoFigures, corrected: CorrectedTest | None, a: str, b: str) -> str | None:
    """Returns what a reader should know in addition to the verdict, in a sentence or two; None if nothing.

    Args:
        found: the figures of the pair.
        corrected: correction of `p_decisive`; None without a test.
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
            yield f"{name} did not answer {count:,} of {shown.turns(found.conservative.n)}"


def _tests_disagree(found: TwoFigures, alpha: float) -> Iterator[str]:
    """Yields a note if the two tests of a figure disagree on significance."""
    figures = [(found.answered, "on turns that both answered "), (found.conservative, "with missing as wrong ")]
    for one, where in figures if found.answered is not found.conservative else [(found.answered, "")]:
        if one.p_value is not None and one.p_exact is not None and (one.p_value < alpha) != (one.p_exact < alpha):
            t, exact = shown.p_value(one.p_value), shown.p_value(one.p_exact)
            yield f"{where}the tests disagree: p {t} by t, {exact} by sign flips"


def _figures_disagree(found: TwoFigures, alpha: float) -> Iterator[str]:
    """Yields a note if only one figure is significant, or if they point in opposite directions."""
    ways = [_way(one, alpha) for one in (found.answered, found.conservative)]
    if ways[0] == ways[1]:
        return
    told = [
        f"{shown.points(one.difference, *one.interval())} points, p {shown.p_value(largest_p(one))}, {where}"
        for one, where in (
            (found.answered, "on turns that both answered"),
            (found.conservative, "with missing as wrong"),
        )
    ]
    yield f"the figures disagree: {' and '.join(told)}"


def _way(one: PairedDifference, alpha: float) -> int:
    """Returns the direction of a figure: -1 or 1 if it is significant at the level, else 0."""
    p = largest_p(one)
    low, high = one.interval(alpha)
    if p is None or low is None or high is None or p >= alpha or low <= 0.0 <= high:
        return 0
    return 1 if low > 0.0 else -1


def conservative_columns(found: TwoFigures, corrected: CorrectedTest | None) -> dict[str, Any]:
    """Returns the columns of the conservative figure; `corrected` is for its own largest p-value."""
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
