"""Values in results of tools: whether an answer is in one, or follows from it."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, permutations
from math import isclose

from eval_pipeline.answers.chosen_number import WantedNumber, number_of
from eval_pipeline.answers.envelope import answer_section
from eval_pipeline.answers.numbers import decimal_of
from eval_pipeline.answers.printed import printed_number
from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.checking.readings import forms

_NUMBER = re.compile(
    r"(?<![\w.])(?<![A-Za-z]-)-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])", re.IGNORECASE
)
_CODE = re.compile(r"(?<!\w)[A-Za-z]{1,4}-\d+(?!\w)")
"""A key, such as C-0046, which is no figure."""
_DAY = re.compile(r"\b\d{4}-\d\d(?:-\d\d)?(?:[ T]\d\d:\d\d(?::\d\d)?)?\b|\b\d\d\.\d\d\.\d{4}\b")
_MOST_CHARS, _MOST_LEAVES, _MOST_PAIRED = 20_000, 400, 12
_MOST_ROWS, _FEW_ALONE, _FEW_OPERANDS = 200, 3, 4
_ITEM = re.compile(r"[^\s,;'\"\[\](){}|]+")
FACTORS = (10.0, 100.0, 1000.0, 1e6, 12.0, 60.0, 3600.0, 24.0, 7.0, 365.0, -1.0)
"""What values of another unit differ by."""
_PLAIN_FACTORS = (10.0, 100.0, 1000.0, 1e6, -1.0)
"""Those that are no chance for figures of few digits."""
_SIGNIFICANT, _HUGE, _MOST_BY_CHANCE = 4, 1e15, 3


@value
class GivenNumber:
    """A number with the decimals to which it is given."""

    number: float
    decimals: int = 0

    def is_distinct(self) -> bool:
        """Returns whether it has so many digits that it hardly occurs by chance."""
        return self.digits() >= _SIGNIFICANT

    def digits(self) -> int:
        """Returns how many digits it has, without zeros at both ends."""
        if abs(self.number) >= _HUGE:
            return _SIGNIFICANT
        return len(str(int(abs(self.number) * 10**self.decimals + 0.5)).strip("0"))

    def is_in(self, numbers: Sequence[float]) -> bool:
        """Returns whether it is one of some numbers, rounded as it is."""
        return any(self.meets(one) for one in numbers)

    def meets(self, number: float) -> bool:
        """Returns whether a number is this one if it is rounded in the same way; integers are not rounded."""
        off = 0.5000001 * 10**-self.decimals if self.decimals else 1e-9
        return abs(number - self.number) <= off + 1e-12 * min(abs(number), abs(self.number))


Leaf = GivenNumber | str


@value
class FigureRatio:
    """The ratio of figures to the right ones.

    Attributes:
        ratio: given figure / right figure, the same for all.
        count: of how many figures.
        is_turned: whether one is the other turned over.
        difference: given figure - right figure, where there is only one; else 0.
    """

    ratio: float
    count: int = 1
    is_turned: bool = False
    difference: float = 0.0

    def is_telling(self) -> bool:
        """Returns whether it is that of two units, or of several figures."""
        units = (part for one in FACTORS for part in (one, 1 / one))
        return self.is_turned or self.count > 1 or any(isclose(self.ratio, one, rel_tol=0.01) for one in units)

    def is_by(self, one: float, other: float) -> bool:
        """Returns whether it is the ratio of two constants, or of powers of them, one in the place of the other."""
        if one == other or 0.0 in (one, other):
            return False
        powers = [(one**n / other**m, other**m / one**n) for n, m in ((1, 1), (1, 2), (1, 3), (2, 1), (3, 1))]
        return any(isclose(self.ratio, found, rel_tol=0.002) for pair in powers for found in pair)


@lru_cache(maxsize=1024)
def numbers_of(text: str) -> tuple[float, ...]:
    """Returns the numbers of a result, without those of days."""
    bare = _DAY.sub(" ", text[:_MOST_CHARS])
    return tuple(float(one.replace(",", "")) for one in _NUMBER.findall(bare))


@lru_cache(maxsize=1024)
def folded(text: str) -> str:
    """Returns a text in small letters with single blanks."""
    return " ".join(text[:_MOST_CHARS].casefold().split())


def as_written(told: str, texts: Sequence[str]) -> str:
    """Returns what `folded` has made of a part of one of some texts as it is there; itself if it is in none."""
    words = r"\s+".join(map(re.escape, told.split()))
    pattern = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
    return next((found[0] for text in texts if (found := pattern.search(text[:_MOST_CHARS]))), told)


def figure(number: float) -> GivenNumber:
    """Returns a number with the decimals that Python writes for it."""
    _, _, decimals = repr(float(number)).partition(".")
    return GivenNumber(float(number), 0 if decimals in ("0", "") or "e" in decimals else len(decimals))


def leaves(answer: Json, question: str = "") -> list[Leaf]:
    """Returns the figures and texts that an answer consists of, whatever its form."""
    if isinstance(answer, bool) or answer is None:
        return [] if answer is None else ["yes" if answer else "no"]
    if isinstance(answer, int | float):
        return [figure(answer)]
    table = next(forms(answer), None)
    cells = [cell for row in table.rows for cell in row] if table is not None else [answer]
    found = [leaf for cell in cells[:_MOST_LEAVES] if (leaf := _leaf(cell)) is not None]
    if isinstance(answer, str) and len(found) == 1 and isinstance(found[0], str):
        said = _said(answer, question)
        return found if said is None else [said]
    return found


def _leaf(cell: object) -> Leaf | None:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int | float):
        return figure(cell)
    text = str(cell or "").strip()
    printed = printed_number(text) if text else None
    if printed is not None:
        return GivenNumber(printed.value * (100 if printed.percent else 1), printed.decimals)
    return folded(text).strip("\"'*`. ") or None


def _said(text: str, question: str) -> GivenNumber | None:
    """Returns the number that a sentence gives as its answer."""
    if not any(letter.isdigit() for letter in _CODE.sub(" ", text)):
        return None
    section = answer_section(text)
    told = section.text if section.marked else text
    if len(told.split()) < 2:  # a code, such as N4
        return None
    number, _ = number_of(told, WantedNumber(section.marked, section.closed, decimal_of(None), (), [], frozenset()))
    return None if number is None else figure(number)


def holds(text: str, leaf: Leaf) -> bool:
    """Returns whether a result has a value in it."""
    if isinstance(leaf, GivenNumber):
        return leaf.is_in(numbers_of(text))
    return re.search(rf"(?<!\w){re.escape(leaf)}(?!\w)", folded(text)) is not None


def has_all(text: str, wanted: Sequence[Leaf]) -> bool:
    """Returns whether a result has all values: all figures, or where there are none all texts."""
    figures = [one for one in wanted if isinstance(one, GivenNumber)]
    return bool(wanted) and all(holds(text, one) for one in figures or wanted)


def is_hardly_by_chance(text: str, wanted: Sequence[Leaf]) -> bool:
    """Returns whether figures have more digits than a result has numbers to meet them by chance."""
    digits = sum(one.digits() for one in wanted if isinstance(one, GivenNumber))
    count = len(numbers_of(text))
    return digits > 0 and (count == 1 or digits >= _SIGNIFICANT or count <= _MOST_BY_CHANCE * 10 ** (digits - 2))


def rows_of(text: str, *, is_headed: bool) -> list[str]:
    """Returns the first rows of a result without a header, or the tuples of a list on one line."""
    lines = [line for line in text.splitlines()[:_MOST_ROWS] if line.strip()]
    is_headed = is_headed or [bool(re.search(r"\d", one)) for one in lines[:2]] == [False, True]
    return lines[is_headed:] if len(lines) > 1 + is_headed else re.split(r"\)\s*,\s*\(", text[:_MOST_CHARS])


def is_told_alone(text: str, right: Sequence[Leaf]) -> bool:
    """Returns whether one line of several is the right list, or has the right number and no other, as few have."""
    lines = [folded(line) for line in text.splitlines()[:_MOST_ROWS] if line.strip()]
    if len(lines) < 2:
        return False
    if len(right) == 1 and isinstance(right[0], GivenNumber):
        alone = [found[0] for line in lines if len(found := numbers_of(line)) == 1]
        return len(alone) < _FEW_ALONE and right[0].is_in(alone)
    wanted = [one for one in right if isinstance(one, str)]
    lists = (_ITEM.findall(line.rpartition(": ")[2].partition(" [")[2] or line.rpartition(": ")[2]) for line in lines)
    return len(wanted) == len(right) > 1 and any(one == wanted for one in lists)


def pairs_up(rows: Sequence[str], told: Sequence[Leaf]) -> bool:
    """Returns whether each of the first figures that are told is in one of the rows with the text told before it."""
    pairs = [pair for pair in pairwise(told) if isinstance(pair[0], str) and isinstance(pair[1], GivenNumber)]
    found = (any(holds(row, one) and holds(row, other) for row in rows) for one, other in pairs[:_MOST_PAIRED])
    return bool(pairs) and all(found)


def is_turned(given: GivenNumber, right: GivenNumber) -> bool:
    """Returns whether a ratio is turned over, or that to the rest in the place of that to all."""
    odds, product = given.number, given.number * right.number
    shares = [one * odds / (odds + one) for one in (1.0, 100.0) if odds + one]
    is_over = any(isclose(product, one, rel_tol=0.005) for one in (1.0, 100.0, 10_000.0))
    return right.digits() > 1 and given.digits() > 1 and (is_over or any(map(right.meets, shares)))


def slips(given: GivenNumber, numbers: Sequence[float]) -> Iterator[str]:
    """Yields how a figure follows from others by one slip: another unit, rounding, a sign, a ratio turned over."""
    for one in numbers:
        if one == 0:
            continue
        for factor in FACTORS if given.is_distinct() or given.decimals else _PLAIN_FACTORS:
            if _same(given, one * factor) or _same(given, one / factor):
                yield f"it is {one:,g} in another unit" if factor > 0 else f"it is {one:,g} with another sign"
        if (given.is_distinct() or given.decimals) and any(_same(given, top / one) for top in (1.0, 100.0)):
            yield f"it is {one:,g} turned over"
        unit = 1.0000001 * 10.0 ** -figure(given.number).decimals
        is_near = abs(given.number - one) <= unit and not given.meets(one)
        if is_near and not float(one).is_integer():
            yield f"it is {one:,g} rounded otherwise"


def follows(wanted: GivenNumber, numbers: Sequence[float]) -> bool:
    """Returns whether a figure is the sum, difference, product or ratio of two numbers, and has the digits to tell."""
    few = list(dict.fromkeys(numbers))
    if len(few) > _FEW_OPERANDS:
        return False
    made = list[float]()
    for one, other in permutations(few, 2):
        made += [one + other, one - other, one * other, *((one / other, 100 * one / other) if other else ())]
    return len(made) <= 10.0 ** (wanted.digits() - 2) and wanted.is_in(made)


def _same(given: GivenNumber, number: float) -> bool:
    return given.meets(number) if given.decimals else isclose(given.number, number, rel_tol=1e-6)


def pairs_of(given: list[Leaf], right: list[Leaf]) -> list[tuple[GivenNumber, GivenNumber]]:
    """Returns the figures that are wrong, each with the right one, where there are as many."""
    figures = [[one for one in leaf if isinstance(one, GivenNumber)] for leaf in (given, right)]
    if len(figures[0]) != len(figures[1]):
        return []
    pairs = zip(*figures, strict=True)
    return [(one, other) for one, other in pairs if one.number != other.number]


def slip_of(given: list[Leaf], right: list[Leaf], texts: Sequence[str]) -> str:
    """Returns how all wrong figures follow by one slip from the right ones, as results have them; empty if they do not.

    Args:
        given: the answer's values.
        right: the right ones.
        texts: results of calls, for more digits.
    """
    pairs = pairs_of(given, right)
    numbers = [number for text in texts for number in numbers_of(text)]
    told = ""
    for one, other in pairs:
        exact = [number for number in numbers if other.meets(number)]
        told = next(slips(one, [other.number, *exact]), "")
        if not told and any(one.meets(number) for number in exact):
            told = f"it is {other.number:,g} rounded otherwise"
        if not told:
            return ""
    return told


def scale_of(given: list[Leaf], right: list[Leaf]) -> FigureRatio | None:
    """Returns the ratio of the figures to the right ones, if it is the same for all."""
    pairs = pairs_of(given, right)
    if not pairs or len(pairs) != sum(isinstance(one, GivenNumber) for one in right):
        return None
    ratios = [one.number / other.number if other.number else 0.0 for one, other in pairs]
    is_even = max(ratios) - min(ratios) <= 0.02 * abs(max(ratios))
    difference = pairs[0][0].number - pairs[0][1].number if len(pairs) == 1 else 0.0
    return FigureRatio(ratios[0], len(ratios), is_turned(*pairs[0]), difference) if is_even else None
