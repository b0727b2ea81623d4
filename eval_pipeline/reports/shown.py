"""Formats numbers and texts for readers of a page; unknown values are shown as a dash."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from eval_pipeline.reports.profile import Unit

UNKNOWN = "–"
_SMALL_DOLLARS = 1
_LEAST_P = 0.0001


def shown(value: float | None, unit: Unit) -> str:
    """Formats a number in its unit as the workbook does: `87.7%`, `0.912`, `183,525`, `$0.0123`, `1,200 ms`."""
    return _BY_UNIT[unit](value)


def shown_interval(row: Mapping[str, Any], unit: Unit, name: str = "") -> str:
    """Formats the interval in a row's columns `low` and `high`, or `<name>_low` and `<name>_high`."""
    lead = f"{name}_" if name else ""
    ends = (row[f"{lead}low"], row[f"{lead}high"])
    return UNKNOWN if None in ends else " to ".join(shown(end, unit) for end in ends)


def shown_points(value: float | None) -> str:
    """Formats a difference between rates, in percentage points."""
    if value is None:
        return UNKNOWN
    return _minus(f"{100 * value:+.1f}") if round(value, 3) else "0.0"


def shown_p(value: float | None) -> str:
    """Formats a probability."""
    if value is None:
        return UNKNOWN
    return "< 0.0001" if value < _LEAST_P else f"{value:.4f}"


def shown_rate(value: float | None) -> str:
    """Formats a rate from 0 to 1 in percent."""
    return UNKNOWN if value is None else _minus(f"{value:.1%}")


def shown_count(value: float | None) -> str:
    """Formats a whole number."""
    return UNKNOWN if value is None else _minus(f"{value:,.0f}")


def shown_dollars(value: float | None) -> str:
    """Formats US dollars; amounts below one have at least four decimals."""
    if value is None:
        return UNKNOWN
    sign, amount = "−" if value < 0 else "", abs(value)
    if amount == 0 or amount >= _SMALL_DOLLARS:
        return f"{sign}${amount:,.2f}"
    return f"{sign}${amount:.6f}".removesuffix("0").removesuffix("0")


def shown_time(value: float | None) -> str:
    """Formats milliseconds."""
    return UNKNOWN if value is None else f"{shown_count(value)} ms"


def short(text: str | None, most: int = 300) -> str:
    """Returns a text for a table cell: on one line, cut if it is long."""
    if text is None:
        return UNKNOWN
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[:most]}…"


def place(turn_id: str, sample: int = 0) -> str:
    """Returns the place of a turn in its suite: `<case>#<index>`, followed by `~<sample>` from sample 1 on."""
    return turn_id.partition("/")[2] + (f"~{sample}" if sample else "")


def shown_json(value: Any) -> str:
    """Formats a value; an object becomes lines of `name: value` without its empty entries."""
    if not isinstance(value, Mapping):
        return _json_text(value)
    told = ((name, found) for name, found in value.items() if found not in (None, "", [], {}))
    return "\n".join(f"{name}: {_json_text(found)}" for name, found in told)


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _minus(text: str) -> str:
    """Returns the number with a proper minus sign, which is as wide as a plus.

    A number rounded to zero gets no sign.
    """
    return text.replace("-", "−") if any(digit in text for digit in "123456789") else text.removeprefix("-")


def _decimal(value: float | None) -> str:
    return UNKNOWN if value is None else _minus(f"{value:,.2f}")


def _score(value: float | None) -> str:
    return UNKNOWN if value is None else _minus(f"{value:.3f}")


_BY_UNIT: Mapping[Unit, Callable[[float | None], str]] = {
    "rate": shown_rate,
    "score": _score,
    "count": _decimal,
    "tokens": shown_count,
    "usd": shown_dollars,
    "ms": shown_time,
}
