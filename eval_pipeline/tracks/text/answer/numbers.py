"""Finds the single number that an answer gives."""

import re
from collections.abc import Sequence

from eval_pipeline.core.numbers import parse_number
from eval_pipeline.core.values import value
from eval_pipeline.tracks.text.answer.mentions import Source, Span, is_denied, is_left_open, is_quoted

_NUMBER = re.compile(
    r"(?<![\w.])(?P<open>\((?=\s*[$€£¥₹]?\s*\d[\d,. ]*\)))?"
    r"(?P<sign>[-+−–](?=\s?[$€£¥₹]?\s?[\d.])|\bminus\s+|\bnegative\s+)?"
    r"\s?(?:us)?[$€£¥₹]?\s?(?P<inner>[-−])?"
    r"(?P<digits>\d{1,3}(?:[,  ]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?(?:e[-+]?\d{1,3})?|\.\d+)"
    r"(?P<close>\s?\))?(?P<percent>\s?%|\s+percent\b)?(?:\s?(?P<scale>thousand|million|billion|trillion|k|m|mn|mio|bn|tn)\b)?",
    re.IGNORECASE,
)
_SCALES = {
    "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "mn": 1e6, "mio": 1e6,
    "billion": 1e9, "bn": 1e9, "trillion": 1e12, "tn": 1e12,
}  # fmt: skip
_MOST_CHARS = 5_000
_MOST_NUMBERS = 100
_RANGE = re.compile(r"^\s*(?:-|–|—|to|through|and/or|or|/)\s*[$€£¥₹]?\s*[-−]?\.?\d", re.IGNORECASE)
_LEADING = re.compile(
    r"^[\s\"'“‘`*_=≈~]*(?:about|approximately|approx\.?|around|roughly|exactly|it is|is)?\s*$", re.IGNORECASE
)


@value
class Found:
    """A number in a text; `percent` says whether a percent sign follows it, which does not change the value."""

    value: float
    span: Span
    percent: bool = False


def numbers_of(text: str, units: Sequence[str] = ()) -> list[Found]:
    """Returns every number in a text; scale words such as `million` are applied unless they are units."""
    ignored = {unit.casefold() for unit in units}
    return [found for match in _NUMBER.finditer(text) if (found := _read(match, ignored)) is not None]


def number_of(
    text: str, *, marked: bool, units: Sequence[str], sources: Sequence[Source], allow: frozenset[str]
) -> tuple[float | None, str]:
    """Returns the number that an answer section gives; None and a sentence if it gives none or several.

    An introduced answer (`Answer: 42 in 2019`) gives the number it begins with. Otherwise it is the number after the
    last `=`, or the only remaining value; numbers that are denied, left open or quoted from the question do not count.
    """
    if len(text) > _MOST_CHARS:
        return None, f"the answer has {len(text):,} characters; expected a number"
    whole = parse_number(text.strip(" *_`").rstrip(". "))
    if whole is not None and not whole.percent:
        return whole.value, ""
    found = numbers_of(text, units)
    if not found:
        return None, "the answer gives no number"
    if len(found) > _MOST_NUMBERS:
        return None, f"the answer gives {len(found):,} numbers; expected one"
    spans = [number.span for number in found]
    kept = [
        number
        for number in found
        if ("negated" in allow or not is_denied(text, number.span, spans))
        and ("quoted" in allow or not is_quoted(text, number.span, sources))
    ]
    if not kept:
        return None, "the answer gives no number of its own: it denies or quotes those in it"
    first = kept[0]
    if _is_range(text, first):
        return None, "the answer gives a range or several numbers; expected one"
    if marked and _LEADING.match(text[: first.span[0]]) and "=" not in text:
        return (
            (None, "the answer leaves open which number is right")
            if is_left_open(text, first.span)
            else (first.value, "")
        )
    return _only(text, kept, "several" in allow)


def _only(text: str, kept: Sequence[Found], any_last: bool) -> tuple[float | None, str]:
    after = text.rfind("=")
    rest = [number for number in kept if number.span[0] > after] if after >= 0 else list(kept)
    values = {number.value for number in rest}
    if len(values) == 1 or (rest and any_last):
        return rest[-1].value, ""
    if not values:
        return None, "the answer gives no number after '='"
    return None, f"the answer gives {len(values)} numbers; expected one"


def _is_range(text: str, number: Found) -> bool:
    return bool(_RANGE.match(text[number.span[1] : number.span[1] + 40]))


def _read(match: re.Match[str], ignored: set[str]) -> Found | None:
    digits = re.sub(r"[,\s]", "", match["digits"])
    try:
        number = float(digits)
    except ValueError:
        return None
    scale = (match["scale"] or "").casefold()
    number *= 1.0 if scale in ignored else _SCALES.get(scale, 1.0)
    sign = (match["sign"] or "").strip().casefold()
    is_negative = sign in {"-", "−", "–", "minus", "negative"} or match["inner"] is not None
    is_negative = is_negative or (match["open"] is not None and match["close"] is not None)
    if abs(number) == float("inf"):
        return None
    return Found(-number if is_negative else number, match.span(), match["percent"] is not None)
