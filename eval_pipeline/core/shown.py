"""Formats figures and foreign texts for people, so that the same reads the same wherever it is shown.

Each function takes a value, None if it is unknown, and the ends of its 95% interval where there is one. An interval
bounds the decimals: half its width is told with two significant digits, and its middle with no more decimals than that
(JCGM 100:2008, 7.2.6). Halves are rounded away from zero, as Excel does, so that 6.25% is 6.3% everywhere. A negative
figure has a proper minus sign, which is as wide as a plus, and one that is rounded to zero has none.
"""

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, isfinite, log10
from typing import Any, Literal, TypeGuard

Unit = Literal["rate", "points", "score", "count", "tokens", "usd", "ms", "p"]
"""What a figure is: a rate from 0 to 1; a difference between rates; a score from 0 to 1; a mean of counts; a whole
number such as tokens; US dollars; milliseconds; or a probability."""
UNKNOWN = "–"
UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
"""Characters, as a class of a regular expression, that control a terminal, change the direction of writing (Unicode's
property Bidi_Control) or are not seen at all. Tab, line feed, and what joins letters and emoji are none of them."""
LEAST_P = 0.0001
"""Smaller probabilities are not told apart."""
CENTS, LEAST_USD, MOST_USD = 2, 4, 6
"""Decimals of amounts from one dollar on; the least of those below; and the most, which amounts with fewer than
`TELLING` digits otherwise have, so that one call is not shown as nothing."""
TELLING = 2
"""How many digits other than zeros in front tell an amount of less than a cent."""
_LEAST_FIXED = 1e-9
_SIGNIFICANT = 4
_GIVEN = 8
_SIZES = ("B", "kB", "MB", "GB", "TB")
_MOST: Mapping[Unit, int] = {"rate": 1, "points": 1, "score": 3, "count": 2, "usd": MOST_USD}
_IN_PERCENT = frozenset({"rate", "points"})
_UNSEEN = re.compile(f"[{UNSEEN}]")
_CONTEXT = Context(prec=400, rounding=ROUND_HALF_UP)
Ends = float | None


def visible_text(text: str) -> str:
    r"""Returns a text with characters that are not seen, or change how others are, as escapes (`\x1b`, `\u202e`)."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    r"""Returns a JSON text with such characters as JSON's own escapes (`\u202e`), which is the same value."""

    def escaped(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

    return _UNSEEN.sub(escaped, text)


def rate(value: float | None, low: Ends = None, high: Ends = None) -> str:
    """Formats a rate from 0 to 1 in percent: `87.7%`."""
    return _fixed(value, decimals("rate", low, high), 2) + "%" if _is_known(value) else UNKNOWN


def rates(first: float | None, second: float | None, low: Ends = None, high: Ends = None) -> tuple[str, str]:
    """Formats two rates that are compared, given the interval of their difference, which they have no digits beyond."""
    return rate(first, low, high), rate(second, low, high)


def points(value: float | None, low: Ends = None, high: Ends = None) -> str:
    """Formats a difference between rates in percentage points, with its sign: `−24.7`."""
    if not _is_known(value):
        return UNKNOWN
    text = _fixed(value, decimals("points", low, high), 2)
    return f"+{text}" if value > 0 and _is_not_zero(text) else text


def score(value: float | None, low: Ends = None, high: Ends = None) -> str:
    """Formats a score from 0 to 1, or a coefficient: `0.912`."""
    return _fixed(value, decimals("score", low, high)) if _is_known(value) else UNKNOWN


def mean_count(value: float | None, low: Ends = None, high: Ends = None) -> str:
    """Formats a mean of counts: `1.25`."""
    return _fixed(value, decimals("count", low, high)) if _is_known(value) else UNKNOWN


def count(value: float | None) -> str:
    """Formats a whole number, or a mean that is told as one: `183,525`."""
    return _fixed(value, 0) if _is_known(value) else UNKNOWN


tokens = count


def counted(number: int, one: str, many: str) -> str:
    """Formats a number with what it counts: `1 turn`, `1,200 turns`."""
    return f"{number:,} {one if number == 1 else many}"


def turns(number: int) -> str:
    """Formats a number of turns: `1 turn`, `1,200 turns`."""
    return counted(number, "turn", "turns")


def dollars(value: float | None, low: Ends = None, high: Ends = None) -> str:
    """Formats US dollars; amounts below one have at least four decimals: `$1,234.50`, `$0.0123`."""
    if not _is_known(value):
        return UNKNOWN
    most = usd_decimals(value, low, high)
    text = _fixed(abs(value), most)
    for _ in range(most - LEAST_USD):
        text = text.removesuffix("0")
    return f"−${text}" if value < 0 and _is_not_zero(text) else f"${text}"


def milliseconds(value: float | None) -> str:
    """Formats milliseconds: `1,200 ms`."""
    return f"{count(value)} ms" if _is_known(value) else UNKNOWN


def given(value: float, unit: Unit = "rate") -> str:
    """Formats what somebody chose, as a threshold or a tick of an axis, with the digits that it has: `62.5%`."""
    text = _fixed(value, _GIVEN, 2 if unit in _IN_PERCENT else 0).rstrip("0").removesuffix(".")
    if unit == "rate":
        return f"{text}%"
    if unit == "usd":
        whole, _, cents = text.partition(".")
        return f"${whole}.{cents:0<2}" if cents else f"${whole}"
    return f"+{text}" if unit == "points" and value > 0 and _is_not_zero(text) else text


def size(value: int) -> str:
    """Formats a number of bytes: `812 B`, `12.3 MB`."""
    power = len(str(value)) - 1
    unit = min(power // 3, len(_SIZES) - 1)
    return f"{_fixed(value, max(0, 3 * unit + 2 - power) if unit else 0, -3 * unit)} {_SIZES[unit]}"


def p_value(value: float | None) -> str:
    """Formats a probability: `0.0312`, `< 0.0001`."""
    if not _is_known(value):
        return UNKNOWN
    return f"< {LEAST_P}" if value < LEAST_P else _fixed(value, 4)


def number(value: float | None) -> str:
    """Formats a number of unknown unit with four significant digits: `0.6543`, `3`, `1,234,568`."""
    if not _is_known(value):
        return UNKNOWN
    if 0 < abs(value) < _LEAST_FIXED:
        return f"{value:.{_SIGNIFICANT - 1}E}".replace("-", "−", value < 0)
    return _fixed(value, number_decimals(value))


def duration(seconds: float | None) -> str:
    """Formats a time span: `45 s`, `3 min 20 s`, `25 min`, `2 h 5 min`."""
    if not _is_known(seconds):
        return UNKNOWN
    whole = int(_rounded(max(seconds, 0), 0))
    minutes, hours = whole // 60, whole // 3600
    if not minutes:
        return f"{whole} s"
    large, small = (f"{hours} h", f"{minutes % 60} min") if hours else (f"{minutes} min", f"{whole % 60} s")
    return large if small.startswith("0 ") else f"{large} {small}"


def figure(value: float | None, unit: Unit, low: Ends = None, high: Ends = None) -> str:
    """Formats a figure in its unit."""
    bounded = _BOUNDED.get(unit)
    return _PLAIN[unit](value) if bounded is None else bounded(value, low, high)


def interval(low: Ends, high: Ends, unit: Unit = "rate") -> str:
    """Formats an interval: `83.9% to 91.2%`; unknown if an end is."""
    if low is None or high is None:
        return UNKNOWN
    return f"{figure(low, unit, low, high)} to {figure(high, unit, low, high)}"


def interval_or_counts(value: float | None, of: int | None, low: Ends, high: Ends) -> str:
    """Formats what a rate rests on: its interval, or of few, which bear none, their counts: `1 of 6`; may be empty."""
    if low is not None and high is not None:
        return interval(low, high)
    return f"{count(value * of)} of {count(of)}" if _is_known(value) and of else ""


def level_interval(low: Ends, high: Ends) -> str:
    """Formats the interval of a level of complexity, which may be open at an end: `… to 4`."""
    return " to ".join("…" if end is None else number(end) for end in (low, high))


def estimate(value: float | None, low: Ends, high: Ends, unit: Unit = "rate") -> str:
    """Formats a figure with its interval: `87.7% [83.9% to 91.2%]`, or without one if there is none."""
    told = figure(value, unit, low, high)
    return told if value is None or low is None or high is None else f"{told} [{interval(low, high, unit)}]"


def points_text(value: float | None, low: Ends = None, high: Ends = None) -> str:
    """Formats a difference between rates with its unit and its interval: `−24.7 points [−30.1 to −19.3]`."""
    told = f"{points(value, low, high)} points"
    return told if low is None or high is None else f"{told} [{interval(low, high, 'points')}]"


def open_loss(row: Mapping[str, Any]) -> str:
    """Formats the points of an open loss of a row of `trends`; it has their interval on the date of the loss."""
    lost, ends = row["open_loss_difference"], (None, None)
    for which in ("first", "previous") if row["open_loss_date"] == row["eval_date"] else ():
        if row[f"{which}_difference"] == lost:
            ends = (row[f"{which}_low"], row[f"{which}_high"])
    return points(lost, *ends)


def open_loss_p(row: Mapping[str, Any]) -> str:
    """Formats the p-value of an open loss in a row of `trends`: on its own date the corrected one of the verdict."""
    return p_value(row["previous_p_corrected" if row["open_loss_date"] == row["eval_date"] else "open_loss_p_value"])


def signed(value: float | None, unit: Unit, low: Ends = None, high: Ends = None) -> str:
    """Formats a difference between figures of a unit: `+120`, `−$0.0012`."""
    told = figure(value, unit, low, high)
    return f"+{told}" if unit != "points" and _is_known(value) and value > 0 and _is_not_zero(told) else told


def decimals(unit: Unit, low: Ends = None, high: Ends = None) -> int:
    """Returns how many decimals a figure of this unit has, in percent for rates, given its interval."""
    most = _MOST.get(unit, 0)
    if low is None or high is None or not isfinite(high - low) or high == low:
        return most
    half = abs(high - low) / 2 * (100 if unit in _IN_PERCENT else 1)
    return min(most, max(0, 1 - floor(log10(float(f"{half:.2g}")))))


def usd_decimals(value: float, low: Ends = None, high: Ends = None) -> int:
    """Returns how many decimals an amount of US dollars has at most; zeros after the fourth are left out."""
    if value == 0 or abs(value) >= 1:
        return CENTS
    telling = TELLING - 1 - floor(log10(abs(value)))
    return max(LEAST_USD, min(telling, decimals("usd", low, high)))


def rounded(value: float) -> float:
    """Returns the number that `number` shows, for those who plot it."""
    if not _is_known(value) or 0 < abs(value) < _LEAST_FIXED:
        return value
    return float(_rounded(value, number_decimals(value)))


def number_decimals(value: float) -> int:
    """Returns how many decimals `number` shows: those of four significant digits, without zeros at the end."""
    if value == 0:
        return 0
    most = max(0, _SIGNIFICANT - 1 - floor(log10(abs(value))))
    return len(format(_rounded(value, most), "f").partition(".")[2].rstrip("0"))


def _fixed(value: float, places: int, shift: int = 0) -> str:
    """Formats a number, multiplied by a power of ten, with that many decimals and separators of thousands."""
    text = format(_rounded(value, places, shift), ",f")
    return text.replace("-", "−") if _is_not_zero(text) else text.removeprefix("-")


def _is_not_zero(text: str) -> bool:
    return any(digit in text for digit in "123456789")


def _is_known(value: float | None) -> TypeGuard[float]:
    return value is not None and isfinite(value)


def _rounded(value: float, places: int, shift: int = 0) -> Decimal:
    """Rounds the 15 significant digits that Excel knows of a number, so that float noise below a half is one."""
    known = Decimal(value) if isinstance(value, int) else Decimal(f"{value:.15g}")
    return known.scaleb(shift, _CONTEXT).quantize(Decimal(1).scaleb(-places), context=_CONTEXT)


_BOUNDED: Mapping[Unit, Callable[[float | None, Ends, Ends], str]] = {
    "rate": rate,
    "points": points,
    "score": score,
    "count": mean_count,
    "usd": dollars,
}
_PLAIN: Mapping[Unit, Callable[[float | None], str]] = {
    "tokens": count,
    "ms": milliseconds,
    "p": p_value,
}
