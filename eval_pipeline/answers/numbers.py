"""The grammar of numbers in answers: each number of a text is read whole, or there is a reason why it cannot be."""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from typing import Literal

from eval_pipeline.core.values import value

Decimal = Literal[".", ",", "?"]
"""The decimal sign where a number can be read in two ways, such as 1.234; `?` refuses such a number."""

_SCALES = {
    **dict.fromkeys(("hundred", "hundreds"), 1e2),
    **dict.fromkeys(("thousand", "thousands", "k", "tausend", "mille", "mil"), 1e3),
    **dict.fromkeys(("million", "millions", "m", "mn", "mm", "mln", "mio", "millionen", "millones", "milioni"), 1e6),
    **dict.fromkeys(("billion", "billions", "b", "bn", "bln", "milliarde", "milliarden", "milliard", "mrd"), 1e9),
    **dict.fromkeys(("trillion", "trillions", "tn"), 1e12),
    **dict.fromkeys(("万", "萬"), 1e4),
    **dict.fromkeys(("亿", "億"), 1e8),
}
_NEED_MONEY = frozenset({"m", "b", "mm"})
"""Abbreviations that are units in small letters (5 m are metres) unless a currency stands before the number."""
_CURRENCY = r"(?:(?:us|hk|[ac])?[$€£¥₹₽₩]|(?:usd|eur|gbp|chf|jpy|inr|cny|rs)\b\.?)"
_GROUP = " \u00a0\u2009\u202f"
_WORDS = "|".join(sorted((word for word in _SCALES if word.isascii() and len(word) > 1), key=len, reverse=True))
_NUMBER = re.compile(
    rf"""
    (?<![A-Za-z0-9_.^\\√)À-ɏ])
    (?P<sign>[-+–](?=\s?(?:us)?[$€£¥₹]|\.?\d)|\b(?:minus|negative)\s+)?
    (?P<money>{_CURRENCY}\s?)?
    (?P<inner>-)?
    (?: (?P<whole>\d+)\s+(?:and\s+)?(?P<top>\d{{1,4}})\s?/\s?(?P<bottom>\d{{1,4}})(?![\d.,]?\d|\s?/)
      | (?P<run>\d{{1,3}}(?:[{_GROUP}]\d{{3}}(?!\d))+(?:[.,]\d+)? | \d+(?:[.,'’_]\d+)* | \.\d+)
        (?: e(?P<exponent>[-+]?\d{{1,3}})(?!\w)
          | \s?[×x*·]\s?10\s?\^\s?[({{]?\s?(?P<ten>[-+]?\d{{1,3}})[)}}]?
          | \^[({{]?(?P<power>-?\d{{1,3}})[)}}]?
          | \s?/\s?(?P<under>\d+(?:\.\d+)?)(?![\d.,]?\d|\s?/) )?
    )
    (?P<percent>\s?%|\s?(?:percent|per\scent|pct|prozent|pour\scent|por\sciento|per\scento|por\scento|процент\w*)\b)?
    (?:\s?(?P<scale>(?:{_WORDS}|m|b)(?![\w²³/]|-[a-z])|[kK](?<=\dk)(?![\w])|(?<=\d)K(?!\w)|[万萬亿億]))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_EXPRESSION_AFTER = re.compile(r"\s?[√π]|\(|\^|:\d|/\d|_\d|\s?\*\*|[.,'’]\d|\{|\s?‰|[yzni]\b|\s[-+]\s[xyzn]\b")
_FUNCTION_BEFORE = re.compile(r"(?:\b(?:log|ln|sin|cos|tan|exp)[ ({]*|\b[fgP]\()$")
_MOST_POWER = 300


@value
class Found:
    """A number in a text.

    Attributes:
        value: the quantity in the printed unit: a percent sign does not change it, `million` does.
        span: its position.
        percent: whether a percent sign follows it.
        why: why it cannot be read; then `value` means nothing.
    """

    value: float
    span: tuple[int, int]
    percent: bool = False
    why: str = ""


def numbers_in(text: str, *, decimal: Decimal = ".", units: Sequence[str] = ()) -> list[Found]:
    """Returns every number of a text, in order.

    Args:
        text: plain text, as `markup.without_latex` and `markup.with_plain_digits` make it.
        decimal: how a number with two readings is read.
        units: words after a number that do not change it, such as `million` if millions are asked for.
    """
    ignored = {unit.casefold() for unit in units}
    found = [_read(match, decimal, ignored) for match in _NUMBER.finditer(text)]
    return [number for number in found if number is not None]


def grouped(run: str, decimal: Decimal) -> float | str:
    """Returns the value of digits with separators between them, or why they have none or two: `1.234,56` is 1234.56."""
    signs = [sign for sign in run if not sign.isdigit()]
    if not signs:
        return float(run)
    last = signs[-1]
    parts = re.split(r"\D", run)
    if run.startswith("."):
        return float(run)
    if len(set(signs)) == 1 and last in ".,":
        if len(signs) == 1:
            return _one_sign(run, parts, last, decimal)
        return _joined(run, parts, "", indian=last == ",")
    if last in ".," and signs.count(last) == 1:
        if len(set(signs[:-1])) == 1:
            return _joined(run, parts[:-1], parts[-1], indian=last == ".")
        return f"'{run}' mixes signs between digits"
    return _joined(run, parts, "") if len(set(signs)) == 1 else f"'{run}' mixes signs between digits"


def decimal_of(locale: str | None) -> Decimal:
    """Returns the decimal sign of a locale such as `de` or `pt-BR`; a point without one.

    Source: the decimal symbols of Unicode CLDR, for the languages and regions named here.
    """
    if not locale:
        return "."
    language, _, region = locale.replace("_", "-").partition("-")
    if region.upper() in _POINT_REGIONS.get(language.lower(), ()):
        return "."
    return "," if language.lower() in _COMMA_LANGUAGES else "."


_COMMA_LANGUAGES = frozenset(
    "af az be bg bs ca cs da de el es et eu fi fr gl hr hu hy id is it ka kk lt lv mk nb nl nn no pl pt ro ru sk sl sq "
    "sr sv tr uk uz vi".split()
)
_POINT_REGIONS = {
    "de": ("CH", "LI"),
    "it": ("CH",),
    "es": ("MX", "US", "GT", "HN", "NI", "PA", "PE", "PR", "SV", "DO"),
}


def _one_sign(run: str, parts: Sequence[str], sign: str, decimal: Decimal) -> float | str:
    whole, fraction = parts
    is_fraction = float(f"{whole}.{fraction}")
    if len(fraction) != 3 or len(whole) > 3 or whole.startswith("0"):
        return is_fraction
    if decimal == "?":
        return f"'{run}' may be {is_fraction:g} or {whole}{fraction}"
    return is_fraction if sign == decimal else float(whole + fraction)


def _joined(run: str, parts: Sequence[str], fraction: str, *, indian: bool = False) -> float | str:
    first, *middle, last = parts if len(parts) > 1 else (parts[0], "000")
    sizes = {3, 2} if indian else {3}
    if not 1 <= len(first) <= 3 or len(last) != 3 or not all(len(part) in sizes for part in middle):
        return f"'{run}' is not one number"
    return float("".join(parts) + "." + (fraction or "0"))


def _read(match: re.Match[str], decimal: Decimal, ignored: set[str]) -> Found | None:
    text, start = match.string, match.start()
    if start >= 2 and text[start - 1] == "/" and (text[start - 2].isalnum() or text[start - 2] == ")"):
        return None  # part of an expression such as S/2
    number = _magnitude(match, decimal)
    if isinstance(number, str):
        return Found(0.0, match.span(), why=number)
    if _EXPRESSION_AFTER.match(text, match.end()) or _FUNCTION_BEFORE.search(text[max(start - 8, 0) : start]):
        return Found(0.0, match.span(), why=f"'{text[start : match.end() + 8].strip()}' is not one number")
    number *= _scale(match, ignored)
    sign = (match["sign"] or "").strip().casefold()
    is_negative = sign in {"-", "–", "minus", "negative"} or match["inner"] is not None
    if sign == "minus" and re.search(r"\d\s*$", text[max(start - 4, 0) : start]):
        is_negative = False  # "50 minus 8" is a calculation
    if not isfinite(number):
        return Found(0.0, match.span(), why="the number is not finite")
    return Found(-number if is_negative else number, match.span(), bool(match["percent"]))


def _magnitude(match: re.Match[str], decimal: Decimal) -> float | str:
    if match["whole"]:
        if int(match["bottom"]) == 0:
            return "a fraction has the denominator 0"
        return int(match["whole"]) + int(match["top"]) / int(match["bottom"])
    number = grouped(match["run"], decimal)
    if isinstance(number, str):
        return number
    if match["exponent"]:
        return (
            float(f"{number!r}e{match['exponent']}") if "e" not in repr(number) else number * 10.0 ** _exponent(match)
        )
    if match["ten"]:
        return number * 10.0 ** int(match["ten"])
    if match["power"]:
        return _power(number, int(match["power"]))
    if match["under"]:
        under = float(match["under"])
        return number / under if under else "a fraction has the denominator 0"
    return number


def _exponent(match: re.Match[str]) -> int:
    return max(min(int(match["exponent"]), _MOST_POWER), -_MOST_POWER)


@lru_cache(maxsize=256)
def _power(number: float, exponent: int) -> float | str:
    try:
        return float(number**exponent)
    except (OverflowError, ZeroDivisionError):
        return "the number is not finite"


def _scale(match: re.Match[str], ignored: set[str]) -> float:
    word = match["scale"]
    if word is None or word.casefold() in ignored:
        return 1.0
    if word.casefold() in _NEED_MONEY and word != word.upper() and not match["money"]:
        return 1.0
    if word == "B" and not match["money"] and match.string[match.end() - 2 : match.end() - 1].isspace():
        return 1.0
    return _SCALES[word.casefold()]
