"""Compares columns of numbers: which numbers of one are numbers of the other, and under what relaxation.

All arrays here are of 64-bit floats, without repeats and ascending.
"""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from eval_pipeline.table_comparison.relaxations import NONE, Relaxation, Set

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

NOISE = 1e-6
"""Relative difference of two floats that count as the same; of an int or a decimal and a float, `LAST_DIGITS`."""
LAST_DIGITS = 1e-12
ABSOLUTE = 1e-12
"""Noise that remains when equal floats are subtracted."""
TOLERANCE = 1e-4
"""Relative difference that `Relaxation.TOLERANCE` overlooks."""
MOST_DECIMALS = 12
"""A column whose numbers have more decimals is not rounded."""

_LARGEST_EXACT = 2.0**53
_FACTORS = (100.0, 0.01)
_SOME = 64
_THREE_DIGITS = 99.5


class Match:
    """Numbers of two columns that count as the same.

    Attributes:
        generated: for each generated number a code. expected: for each expected one; the same code, the same number.
        decimals: to how many decimals one side is rounded; None if neither is.
        needs: what is overlooked.
    """

    __slots__ = ("decimals", "expected", "generated", "needs")

    def __init__(self, generated: Any, expected: Any, decimals: int | None = None, needs: Set = NONE) -> None:
        self.generated, self.expected, self.decimals, self.needs = generated, expected, decimals, needs

    @property
    def complete(self) -> bool:
        """Whether each number has one in the other column that is the same."""
        import numpy as np

        there = np.zeros((2, max(int(self.generated.max()), int(self.expected.max())) + 1), np.bool_)
        there[0, self.generated] = there[1, self.expected] = True
        return bool((there[0] == there[1]).all())


def matches(
    generated: "Floats", expected: "Floats", decimals: tuple[int | None, int | None], *, exact: bool
) -> Iterator[Match]:
    """Yields the complete matches of the numbers of two columns, the mildest first.

    Args:
        generated: numbers of one.
        expected: numbers of the other.
        decimals: how many decimals they have at most, see `most_decimals`.
        exact: whether one column has integers or decimals only: only the last digits of a float may then differ.
    """
    if not len(generated) or not len(expected):
        return
    for factor in (1.0, *_FACTORS):
        if _may_be_complete(generated * factor, expected, _widest(decimals, factor)):
            for match in _matches(generated, expected, decimals, exact, factor):
                if match.complete:
                    if factor != 1:
                        match.needs |= {Relaxation.PERCENT}
                    yield match


def _matches(
    generated: "Floats", expected: "Floats", decimals: tuple[int | None, int | None], exact: bool, factor: float
) -> Iterator[Match]:
    """Yields matches, complete or not; `factor` is expected by generated."""
    scaled = generated * factor
    yield nearest(scaled, expected, exact=exact)
    if not exact and factor == 1:
        yield from grouped(generated, expected)
    # The finer side is brought to the scale of the rounded one, whose decimals are counted as they stand.
    yield from _rounded(generated, expected / factor, decimals[0])
    for found in _rounded(expected, scaled, decimals[1]):
        yield Match(found.expected, found.generated, found.decimals, found.needs)
    for found in (_snapped(scaled, expected, _within_tolerance), *_grouped(scaled, expected, _within_tolerance, 0)):
        found.needs = frozenset({Relaxation.TOLERANCE})
        yield found


def nearest(generated: "Floats", expected: "Floats", *, exact: bool) -> Match:
    """Returns the match in which a generated number is the nearest expected one, if that is the same."""
    return _snapped(generated, expected, _last_digits if exact else _noise)


def _widest(decimals: tuple[int | None, int | None], factor: float) -> tuple[float, float]:
    """Returns how far two numbers may be apart at most to be the same: the absolute and the relative part."""
    halves = [
        0.5 * 10.0**-places * scale for places, scale in zip(decimals, (factor, 1.0), strict=True) if places is not None
    ]
    return 1.1 * max(halves, default=0.0) + ABSOLUTE, 1.1 * TOLERANCE


def _may_be_complete(generated: "Floats", expected: "Floats", widest: tuple[float, float]) -> bool:
    """Returns whether each number has one in the other column that is near, or equal if all are whole."""
    import numpy as np

    def near(some: "Floats", others: "Floats") -> bool:
        after = np.searchsorted(others, some).clip(0, len(others) - 1)
        with np.errstate(invalid="ignore"):
            apart = np.minimum(np.abs(some - others[after]), np.abs(some - others[after - 1]))
            return bool(((apart <= widest[0] + widest[1] * np.abs(some)) | (some == others[after])).all())

    sides = (generated, expected), (expected, generated)
    if not all(near(some[:: len(some) // _SOME + 1], others) for some, others in sides):
        return False  # most columns differ in the first few
    if _whole(generated) and _whole(expected):
        return bool(np.array_equal(generated, expected))
    return all(near(some, others) for some, others in sides)


def _whole(numbers: "Floats") -> bool:
    """Returns whether all are whole and small enough to be told apart."""
    import numpy as np

    return bool(((np.round(numbers) == numbers) & (np.abs(numbers) < _LARGEST_EXACT)).all())


def may_match(generated: "Floats", expected: "Floats") -> bool:
    """Returns whether columns whose numbers are so spread (`Column.spread`) may have the same numbers as often."""
    import numpy as np

    if not len(generated) or not len(expected) or generated[0] != expected[0]:
        return False
    for factor in (1.0, *_FACTORS):
        with np.errstate(invalid="ignore"):
            apart = np.abs(generated[1:] * factor - expected[1:])
            allowed = 0.51 * max(1.0, factor) + 1.1 * TOLERANCE * np.abs(expected[1:]) + ABSOLUTE
            if ((apart <= allowed) | (generated[1:] == expected[1:])).all():
                return True
    return False


def grouped(generated: "Floats", expected: "Floats") -> Iterator[Match]:
    """Yields matches in which floats of one rank, or all that are close to each other, have one code.

    Where expected numbers are as close to each other as to generated ones, the nearest may belong to another row.
    """
    yield from _grouped(generated, expected, _noise, 2)


def _grouped(generated: "Floats", expected: "Floats", close: Any, decimals: int) -> Iterator[Match]:
    """Yields the match by rank, and that of groups of which each has one number at most with so few decimals."""
    import numpy as np

    if not len(generated) or not len(expected):
        return
    if len(generated) == len(expected) and close(generated, expected).all():
        ranks = np.arange(len(expected))
        yield Match(ranks, ranks)
    both = np.sort(np.concatenate((generated, expected)), kind="stable")  # which merges what is sorted already
    both = both[np.concatenate(([True], both[1:] != both[:-1]))]
    starts = np.flatnonzero(np.concatenate(([True], ~close(both[:-1], both[1:]))))
    ends = np.concatenate((starts[1:], [len(both)])) - 1
    exact = np.add.reduceat((np.round(both, decimals) == both).astype(np.int64), starts)
    whole = (ends > starts) & (exact <= 1) & close(both[starts], both[ends])
    if not whole.any():
        return
    group = np.repeat(np.arange(len(starts)), ends - starts + 1)
    codes = np.where(whole[group], starts[group], np.arange(len(both)))
    yield Match(codes[np.searchsorted(both, generated)], codes[np.searchsorted(both, expected)])


def _snapped(generated: "Floats", expected: "Floats", close: Any) -> Match:
    """Returns codes in which each generated number has the code of the nearest expected one that is close."""
    import numpy as np

    # Expected numbers between which there is nothing but noise are one.
    gaps = np.abs(np.diff(expected))
    apart = np.isinf(gaps) | (gaps > LAST_DIGITS * np.abs(expected[1:]))
    apart &= (np.abs(expected[1:]) > ABSOLUTE) | (np.abs(expected[:-1]) > ABSOLUTE)
    codes = np.concatenate(([0], np.cumsum(apart)))
    after = np.searchsorted(expected, generated).clip(0, len(expected) - 1)
    before = (after - 1).clip(0)
    with np.errstate(invalid="ignore"):
        far = np.where(close(generated, expected[after]), np.abs(generated - expected[after]), np.inf)
        near = np.where(close(generated, expected[before]), np.abs(generated - expected[before]), np.inf)
    found = np.where(near <= far, codes[before], codes[after])
    lost = np.isinf(near) & np.isinf(far)
    same = generated == expected[after]  # infinities
    found = np.where(same, codes[after], np.where(lost, len(expected) + np.arange(len(generated)), found))
    return Match(found, codes)


def _rounded(coarse: "Floats", fine: "Floats", decimals: int | None) -> Iterator[Match]:
    """Yields codes in which each number of `fine` has the code of what it is rounded to in `coarse`, of these decimals.

    Halves are rounded up, to even, or as the binary numbers are, the same way in the whole column. At least half of the
    numbers other than zero are still so afterwards: else what they said is lost. Cutting digits off is not rounding.
    """
    import numpy as np

    if decimals is None:
        return
    half = 0.5 * 10.0**-decimals
    after = np.searchsorted(coarse, fine).clip(0, len(coarse) - 1)
    before = (after - 1).clip(0)
    finite = np.where(np.isfinite(fine), fine, np.nan)  # what is not is near no number
    slack = half * 1e-9 + np.abs(finite) * LAST_DIGITS
    with np.errstate(invalid="ignore"):
        apart = np.abs(fine - coarse[before]), np.abs(fine - coarse[after])
        held = apart[0] <= half + slack, (apart[1] <= half + slack) | (coarse[after] == fine)
        either = held[0] & held[1] & (before != after) & (coarse[after] != fine)
        even = np.round(coarse[before] * 10.0**decimals) % 2 == 0
        away = np.abs(coarse[before]) > np.abs(coarse[after])
    if not (held[0] | held[1]).all():
        return
    said = np.abs(fine) > ABSOLUTE
    for lower in (away, even, apart[0] < apart[1]) if either.any() else (away,):
        found = np.where(held[0] & (~held[1] | (either & lower)), before, after)
        if 2 * np.count_nonzero(said & (coarse[found] == 0)) > np.count_nonzero(said):
            continue
        kept = _decimals_kept(finite - coarse[found], decimals) if _tells(coarse[found][said], decimals) else decimals
        yield Match(np.arange(len(coarse)), found, kept, frozenset({Relaxation.ROUNDING}))


def _tells(rounded: "Floats", decimals: int) -> bool:
    """Returns whether numbers show decimals, and three significant digits each: 1 is no 1.00, and 0.5 no 0.50."""
    import numpy as np

    return decimals > 0 and float(np.abs(rounded).min(initial=np.inf)) * 10.0**decimals > _THREE_DIGITS


def _decimals_kept(apart: "Floats", decimals: int) -> int:
    """Returns to how many decimals numbers are rounded, with zeros at their end: 425.6 for 425.6028 to two.

    Args:
        apart: how much rounding changed each; NaN where it is no number.
        decimals: how many they show.
    """
    import numpy as np

    most = float(np.abs(apart).max(initial=0.0, where=~np.isnan(apart))) * (1 - 1e-9)
    while decimals < MOST_DECIMALS and most <= 0.5 * 10.0 ** -(decimals + 1):
        decimals += 1
    return decimals


def far(
    generated: "Floats",
    expected: "Floats",
    decimals: tuple[int | None, int | None],
    *,
    exact: bool,
    overlooked: Collection[Relaxation],
) -> Any:
    """Returns which pairs of numbers, in any order, are not the same; `decimals` and `exact` are as in `matches`."""
    import numpy as np

    found = []
    for factor in (1.0, *_FACTORS) if Relaxation.PERCENT in overlooked else (1.0,):
        scaled = generated * factor
        close = (_last_digits if exact else _noise)(scaled, expected)
        if Relaxation.ROUNDING in overlooked:
            for places, scale in zip(decimals, (factor, 1.0), strict=True):
                if places is not None:
                    half = 0.5 * 10.0**-places * scale * (1 + 1e-9)
                    with np.errstate(invalid="ignore"):
                        close |= np.abs(scaled - expected) <= half + np.abs(expected) * LAST_DIGITS
        if Relaxation.TOLERANCE in overlooked:
            close |= _within_tolerance(scaled, expected)
        found.append(~close)
    return min(found, key=np.count_nonzero)


def most_decimals(numbers: "Floats") -> int | None:
    """Returns how many decimals numbers have at most; None if too many."""
    import numpy as np

    finite = numbers[np.isfinite(numbers)]
    left = finite[np.abs(finite) < _LARGEST_EXACT]
    some = left[:_SOME]
    if (np.round(some, MOST_DECIMALS) != some).any():
        return None
    for decimals in range(MOST_DECIMALS + 1):
        left = left[np.round(left, decimals) != left]
        if not len(left):
            return decimals
    return None


def _noise(one: "Floats", other: "Floats") -> Any:
    """Returns which pairs of floats are the same: those with at most two decimals exactly, others within `NOISE`."""
    import numpy as np

    small = np.maximum(np.abs(one), np.abs(other)) < _LARGEST_EXACT
    within = _within(one, other, np.where(small, NOISE, LAST_DIGITS))
    return (one == other) | (within & ~(_short(one, other, 2) & small))


def _last_digits(one: "Floats", other: "Floats") -> Any:
    """Returns which pairs are the same if one of both is exact: a whole float is, too."""
    return (one == other) | (_within(one, other, LAST_DIGITS) & ~_short(one, other, 0))


def _within_tolerance(one: "Floats", other: "Floats") -> Any:
    """Returns which pairs are within `TOLERANCE`; whole numbers are counts, years or identifiers and have none."""
    return (one == other) | (_within(one, other, TOLERANCE) & ~_short(one, other, 0))


def _within(one: "Floats", other: "Floats", relative: Any) -> Any:
    import numpy as np

    with np.errstate(invalid="ignore"):
        apart, size = np.abs(one - other), np.maximum(np.abs(one), np.abs(other))
        return np.isfinite(size) & ((apart <= relative * size) | (apart <= ABSOLUTE))


def _short(one: "Floats", other: "Floats", decimals: int) -> Any:
    """Returns which pairs have no more decimals than that."""
    import numpy as np

    with np.errstate(over="ignore"):
        return (np.round(one, decimals) == one) & (np.round(other, decimals) == other)
