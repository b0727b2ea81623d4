"""Parses numbers written in prose: "$412.5 million", "approximately 24.6 percent"."""

import re
from collections.abc import Iterable
from math import log10

from eval_pipeline.answers.envelope import answer_section
from eval_pipeline.answers.markup import without_latex
from eval_pipeline.answers.numbers import SCALES, numbers_in
from eval_pipeline.answers.printed import Number, as_printed, printed_number, without_brackets
from eval_pipeline.core.values import value

_MAX_CHARS = 200
_STUCK = {"x", "pp", "bp", "bps"}
_HUNDREDTHS = {"percentage points", "percentage point", "pp"}
_BASIS_POINTS = {"basis points", "basis point", "bps", "bp"}
_ABOUT = re.compile(r"(?:approximately|approx\.?|about|around|roughly|circa|ca\.|some|=|~|≈|≃)\s*", re.IGNORECASE)
_YES_NO = re.compile(r"(yes|no)\b\s*[,.;:!]", re.IGNORECASE)
# Words that mean more than a unit: another number, a direction, a condition.
_NO_UNIT = re.compile(
    r"\b(?:or|and|to|from|than|less|more|over|under|up|down|not|no|if|of|in|by|for|at|below|above|increase\w*|decrease\w*"
    r"|decline\w*|drop\w*|fell|rose|gain\w*|loss\w*|lower|higher|negative|minus|between|versus|vs)\b",
    re.IGNORECASE,
)
_STATED = re.compile(r"\bin\s+(?:us\s*)?(?:\$\s*|dollars\s+)?(thousands|millions|billions)\b", re.IGNORECASE)
_WORDED = re.compile(r"\d\s*(thousand|million|billion)\b", re.IGNORECASE)


@value
class Quantity:
    """A number with the magnitude given by a word.

    Attributes:
        number: the number as written.
        magnitude: 1e6 for "million"; 1 without such a word.
    """

    number: Number
    magnitude: float = 1.0


def read_answer(text: str) -> Quantity | str:
    """Parses the answer in a short text: a quantity, or the text itself if it contains no digit.

    Raises:
        ValueError: with one sentence, if it contains a number but is ambiguous.
    """
    text = text.strip()
    number = printed_number(text)
    if number is not None:
        return Quantity(number)
    if (said := _YES_NO.match(text)) is not None:
        return said[1].lower()
    if not any(character.isdigit() for character in text):
        return text
    bare = _bare(text)
    number = printed_number(bare)
    found = _phrase(bare) if number is None else Quantity(number)
    if found is None:
        raise ValueError(f"the answer '{' '.join(text.split())[:80]}' is not one number with its unit")
    return found


def _bare(text: str) -> str:
    """Removes text around a number: `**The answer is approximately 5.**` becomes 5."""
    text = without_latex(answer_section(text).text).strip(" \t\n*_`")
    if (about := _ABOUT.match(text)) is not None:
        text = text[about.end() :]
    return text[:-1].rstrip(" *_`") if text.endswith(".") else text.rstrip(" *_`")


def _phrase(text: str) -> Quantity | None:
    """Returns a number with words that are no more than its unit."""
    bare, is_negative = without_brackets(text) if len(text) <= _MAX_CHARS else ("", False)
    found = numbers_in(bare, amounts=True)
    if len(found) != 1 or found[0].why or found[0].decimals is None or bare[: found[0].span[0]].strip():
        return None
    rest = bare[found[0].span[1] :]
    words = rest.strip(" .,*_").casefold()
    # The word must be separate: in "1.1relegation" it is a slip, not a unit.
    stuck = bool(rest[:1].strip(" .,*_")) and words not in _STUCK
    if stuck or _NO_UNIT.search(words) or re.search(r"[\d()]", words):
        return None
    return _with_unit(as_printed(found[0], negative=is_negative), found[0].scale, words.split())


def _with_unit(number: Number, scale: float, words: list[str]) -> Quantity | None:
    unit = " ".join(words)
    if len(words) > 4 or scale not in (1, *_NAMES) or not SCALES.keys().isdisjoint(words):
        return None
    if unit in _HUNDREDTHS or unit in _BASIS_POINTS:
        if number.percent or scale != 1:
            return None
        return Quantity(Number(number.value / (100 if unit in _HUNDREDTHS else 10_000), True, number.decimals))
    return Quantity(number, scale)


def in_units_of(text: str, quantity: Quantity) -> Number:
    """Converts a quantity to the page's unit: "412.5 million" is 412.5 if the page says "in millions".

    Args:
        text: the page.
        quantity: the answer.

    Raises:
        ValueError: with one sentence, if the page uses several magnitudes, so that the answer is ambiguous.
    """
    if quantity.magnitude == 1:
        return quantity.number
    stated, worded = _sizes(_STATED.findall(text)), _sizes(_WORDED.findall(text))
    size = quantity.magnitude
    if size in worded and stated <= {size}:
        return quantity.number
    counted = stated or worded
    if len(counted) > 1 or (size in worded and stated):
        known = " and ".join(_NAMES[size] for size in sorted(counted | ({size} & worded)))
        raise ValueError(f"the page counts in {known}: '{quantity.number.value:g} {_NAMES[size]}' may be two numbers")
    return _scaled(quantity.number, size / next(iter(counted), 1.0))


_NAMES = {1e3: "thousands", 1e6: "millions", 1e9: "billions", 1e12: "trillions"}


def _sizes(words: Iterable[str]) -> set[float]:
    return {SCALES[word.lower()] for word in words}


def _scaled(number: Number, factor: float) -> Number:
    if factor == 1:
        return number
    return Number(number.value * factor, number.percent, max(number.decimals - round(log10(factor)), 0))
