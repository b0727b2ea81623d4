"""The grammar of numbers in answers: each number of a text is read whole, or there is a reason why it cannot be."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from math import isfinite
from typing import Literal

from eval_pipeline.core.values import value

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SMALL = {word: value for value, word in enumerate(_UNITS)} | {word: 10 * at for at, word in enumerate(_TENS, 2)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_COUNTED = {"hundred": 100, "dozen": 12} | _LARGE
PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
         "ninth": 9, "tenth": 10, "hundredth": 100, "thousandth": 1000}  # fmt: skip
_PLURALS = {"halves": 2} | {f"{word}s": size for word, size in PARTS.items() if word != "half"}
_DIGITS = frozenset(_UNITS[:10])
_WHOLES = frozenset({"of", "the", "my", "her", "his", "their", "as"})
"""Words after a part that say of what it is one."""
_MOST_WORDS = 20


def number_in_words(text: str) -> tuple[float, str] | None:
    """Returns the number with which a text of words begins, and the words after it; None without one."""
    words = text.casefold().replace("-", " ").split()[:_MOST_WORDS]
    bare = [word.strip(".,!") for word in words]
    sign = int(bool(bare) and bare[0] in {"minus", "negative"})
    number, taken = _quantity(bare[sign:])
    if not taken:
        return None
    return (-number if sign else number), " ".join(words[sign + taken :])


def _quantity(words: Sequence[str]) -> tuple[float, int]:
    """Returns a number and how many words it takes, 0 if there is none."""
    after = [*words[1:], "", ""]
    if words[:1] == ["half"]:
        article = int(after[0] in {"a", "an"})
        if after[article] in _COUNTED:  # half a million
            return _COUNTED[after[article]] / 2, 2 + article
        return 0.5, 0 if after[0] in _WHOLES else 1
    if words[:1] in (["a"], ["an"]):
        if after[0] == "dozen":
            return 12, 2
        if after[0] not in _COUNTED and after[0] not in PARTS:
            return 0, 0
        words = ["one", *words[1:]]
    whole, taken = _whole(words)
    if not taken:
        return 0, 0
    number, more = _tail(whole, [*words[taken:], "", "", ""])
    if more and words[taken + more : taken + more + 1] and words[taken + more] in _LARGE:  # two and a half million
        return number * _LARGE[words[taken + more]], taken + more + 1
    return number, 0 if more == 1 and words[taken + more : taken + more + 1] == ["of"] else taken + more


def _tail(whole: int, rest: Sequence[str]) -> tuple[float, int]:
    """Returns a number with the part of one that follows it, and how many words that takes."""
    if rest[0] == "point":
        digits = "".join(str(_SMALL[word]) for word in takewhile(_DIGITS.__contains__, rest[1:]))
        return (float(f"{whole}.{digits}"), 1 + len(digits)) if digits else (whole, 0)
    if rest[0] == "and" and (rest[1] in {"a", "one"} or rest[2] in _PLURALS):
        size = PARTS.get(rest[2]) or _PLURALS.get(rest[2])
        count = 1 if rest[1] == "a" else _SMALL.get(rest[1])
        return (whole + count / size, 3) if size and count else (whole, 0)
    size = PARTS.get(rest[0]) if whole == 1 else _PLURALS.get(rest[0])
    return (whole / size, 1) if size else (whole, 0)


def _whole(words: Sequence[str]) -> tuple[int, int]:
    total = current = taken = 0
    last = -1
    for at, word in enumerate(words):
        if word in _SMALL and not (last >= 0 and (last < 20 or _SMALL[word] >= 10)):
            current, last = current + _SMALL[word], _SMALL[word]
        elif word == "hundred" and 0 < current < 10:
            current, last = current * 100, -1
        elif word in _LARGE and current:
            total, current, last = total + current * _LARGE[word], 0, -1
        elif word == "and" and last < 0 and (total or current) and words[at + 1 : at + 2] and words[at + 1] in _SMALL:
            if words[at + 2 : at + 3] and words[at + 2] in _PLURALS:
                break  # one hundred and three quarters
            continue
        else:
            break
        taken = at + 1
    return total + current, taken


Decimal = Literal[".", ",", "?"]
"""The decimal sign where a number can be read in two ways, such as 1.234; `?` refuses such a number."""

SCALES = {
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
_CURRENCY = r"(?:(?:us|hk|[ac])?[$€£¥₹₽₩]|(?:usd|eur|gbp|chf|jpy|inr|cny|rs)(?![a-z])\.?)"
_GROUP = " \u00a0\u2009\u202f"
_WORDS = "|".join(sorted((word for word in SCALES if word.isascii() and len(word) > 1), key=len, reverse=True))
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
          | \s+and\s+(?:a|one)\s+(?P<part>{"|".join(PARTS)})\b
          | \s?/\s?(?P<under>\d+(?:\.\d+)?)(?![\d.,]?\d|\s?/) )?
    )
    (?P<percent>\s?%|\s?(?:percent|per\scent|pct|prozent|pour\scent|por\sciento|per\scento|por\scento|процент\w*)\b)?
    (?:\s?(?P<scale>(?:{_WORDS}|[mbk])(?![\w²³/]|-[a-z])|[万萬亿億]))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_EXPRESSION_AFTER = re.compile(
    r"\s?[√π]|\(|\^|:\d|/\d|_\d|\s?\*\*|[.,'’]\d|\{|\s?‰|[yzni]\b|\s[-+]\s[xyzn]\b"
    r"|!(?![!\"'”’)*\]]*(?:\s*$|\s+[A-Z\"'“]))"  # a factorial, unless the sentence ends there
)
_FUNCTION_BEFORE = re.compile(r"(?:\b(?:log|ln|sin|cos|tan|exp)[ ({]*|\b[fgP]\()$")


@value
class FoundNumber:
    """A number in a text.

    Attributes:
        value: the quantity in the printed unit: a percent sign does not change it, `million` does.
        span: its position.
        percent: whether a percent sign follows it.
        scale: what a magnitude such as `million` has multiplied it by.
        decimals: number of digits after the decimal sign; None if it is not only digits, as in 1/2 or 10^6.
        why: why it cannot be read; then `value` means nothing.
    """

    value: float
    span: tuple[int, int]
    percent: bool = False
    scale: float = 1.0
    decimals: int | None = None
    why: str = ""


def numbers_in(
    text: str, *, decimal: Decimal = ".", units: Sequence[str] = (), amounts: bool = False
) -> list[FoundNumber]:
    """Returns every number of a text, in order.

    Args:
        text: plain text, as `markup.without_latex` and `markup.with_plain_digits` make it.
        decimal: how a number with two readings is read.
        units: words after a number that do not change it, such as `million` if millions are asked for.
        amounts: whether every number is an amount of money, so that `5 m` are millions without a currency, too.
    """
    ignored = {unit.casefold() for unit in units}
    found = [_read(match, decimal, ignored, amounts) for match in _NUMBER.finditer(text)]
    return [number for number in found if number is not None]


def _grouped(run: str, decimal: Decimal) -> tuple[str, str] | str:
    """Returns the digits before and after the decimal sign, or why there are none or two readings: `1.234,56`."""
    signs = [sign for sign in run if not sign.isdigit()]
    if not signs:
        return run, ""
    last = signs[-1]
    parts = re.split(r"\D", run)
    if run.startswith("."):
        return "0", parts[1]
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


def _one_sign(run: str, parts: Sequence[str], sign: str, decimal: Decimal) -> tuple[str, str] | str:
    whole, fraction = parts
    if len(fraction) != 3 or len(whole) > 3 or whole.startswith("0"):
        return whole, fraction
    if decimal == "?":
        return f"'{run}' may be {whole}.{fraction} or {whole}{fraction}"
    return (whole, fraction) if sign == decimal else (whole + fraction, "")


def _joined(run: str, parts: Sequence[str], fraction: str, *, indian: bool = False) -> tuple[str, str] | str:
    first, *middle, last = parts if len(parts) > 1 else (parts[0], "000")
    sizes = {3, 2} if indian else {3}
    if not 1 <= len(first) <= 3 or len(last) != 3 or not all(len(part) in sizes for part in middle):
        return f"'{run}' is not one number"
    return "".join(parts), fraction


def _read(match: re.Match[str], decimal: Decimal, ignored: set[str], amounts: bool) -> FoundNumber | None:
    text, start = match.string, match.start()
    if start >= 2 and text[start - 1] == "/" and (text[start - 2].isalnum() or text[start - 2] == ")"):
        return None  # part of an expression such as S/2
    number = _magnitude(match, decimal)
    if isinstance(number, str):
        return FoundNumber(0.0, match.span(), why=number)
    if _EXPRESSION_AFTER.match(text, match.end()) or _FUNCTION_BEFORE.search(text[max(start - 8, 0) : start]):
        return FoundNumber(0.0, match.span(), why=f"'{text[start : match.end() + 8].strip()}' is not one number")
    if match["sign"] and match["inner"]:
        return FoundNumber(0.0, match.span(), why=f"'{match[0]}' has two signs")
    size, decimals = number
    scale = _scale(match, ignored, amounts)
    sign = (match["sign"] or "").strip().casefold()
    is_negative = sign in {"-", "–", "minus", "negative"} or match["inner"] is not None
    if sign == "minus" and re.search(r"\d\s*$", text[max(start - 4, 0) : start]):
        is_negative = False  # "50 minus 8" is a calculation
    size *= -scale if is_negative else scale
    if not isfinite(size):
        return FoundNumber(0.0, match.span(), why="the number is not finite")
    is_unit = match["scale"] is not None and scale == 1 and match["scale"].casefold() not in ignored
    end = match.start("scale") if is_unit else match.end()  # the metres of "5 m" are no part of the number
    return FoundNumber(size, (start, end), bool(match["percent"]), scale, decimals)


def _magnitude(match: re.Match[str], decimal: Decimal) -> tuple[float, int | None] | str:
    """Returns the number without sign and scale, and its decimals, or why it cannot be read."""
    if match["whole"]:
        return _quotient(float(match["whole"]), float(match["top"]), float(match["bottom"]))
    digits = _grouped(match["run"], decimal)
    if isinstance(digits, str):
        return digits
    whole, fraction = digits
    shift = int(match["exponent"] or match["ten"] or 0)
    number = float(f"{whole}.{fraction}e{shift}")  # in decimal: 8.04 * 10 is not exactly 80.4
    if match["power"]:
        return _power(number, int(match["power"]))
    if match["part"]:
        return number + 1 / PARTS[match["part"].casefold()], None
    if match["under"]:
        return _quotient(0, number, float(match["under"]))
    return number, None if match["ten"] else max(len(fraction) - shift, 0)


def _quotient(whole: float, top: float, bottom: float) -> tuple[float, None] | str:
    return (whole + top / bottom, None) if bottom else "a fraction has the denominator 0"


@lru_cache(maxsize=256)
def _power(number: float, exponent: int) -> tuple[float, None] | str:
    try:
        return float(number**exponent), None
    except (OverflowError, ZeroDivisionError):
        return "the number is not finite"


def _scale(match: re.Match[str], ignored: set[str], amounts: bool) -> float:
    word = match["scale"]
    if word is None or word.casefold() in ignored:
        return 1.0
    if amounts or match["money"]:
        return SCALES[word.casefold()]
    if word.casefold() in _NEED_MONEY and word != word.upper():
        return 1.0
    if word in {"B", "K", "k"} and match.string[match.end() - 2].isspace():
        return 1.0
    return SCALES[word.casefold()]
