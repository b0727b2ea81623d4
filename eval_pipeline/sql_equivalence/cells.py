"""Compares cells of results: whole numbers, decimals and money exactly, other floats within a tolerance.

Values are compared as the engines compare them: 1 equals 1.0 and true, NULL equals NULL, a date equals midnight of its
day.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from math import isclose, isfinite
from typing import Any

RELATIVE_TOLERANCE = 1e-6
_ABSOLUTE_TOLERANCE = 1e-12  # noise that remains when equal floats are subtracted
_LAST_DIGITS = 1e-12  # of whole floats that are too large for every whole number to have its own
_LARGEST_EXACT = 2**53
_CENTS = 2

Number = Any
"""An int, a float or a Decimal; mypy has no type for arithmetic among them."""
NUMBERS = (int, float, Decimal)


def key_of(cell: Any) -> Any:
    """Returns a hashable key.

    Equal if the engines call the cells equal, except that close floats have different keys.
    """
    if cell is None or isinstance(cell, str | int):
        return cell  # in Python, too, True equals 1
    if isinstance(cell, float | Decimal):
        return _number_key(cell)
    if isinstance(cell, datetime):
        return cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, list | tuple):
        return ("list", *map(key_of, cell))
    if isinstance(cell, dict):
        return ("struct", *((name, key_of(item)) for name, item in cell.items()))
    return cell


def _number_key(number: float | Decimal) -> Any:
    if isinstance(number, Decimal):
        if not number.is_finite():
            return _number_key(float(number))
        return int(number) if number == number.to_integral_value() else number
    if number != number:
        return "NaN", "number"
    return int(number) if abs(number) < _LARGEST_EXACT and number.is_integer() else number


def rough_key(cell: Any) -> Any:
    """Returns a key that is also equal for close floats, except for some at the border between two keys."""
    key = key_of(cell)
    if isinstance(key, float | Decimal):
        return float(key) if _is_exact(key) or not isfinite(key) else float(f"{key:.6g}")
    return key


def same_number(one: Number, other: Number) -> bool:
    """Returns whether two keys that are numbers count as equal.

    Two integers or decimals must be exactly equal. So must floats if both have at most two decimals, as ids, epochs and
    amounts of money have in float columns. Other floats are equal within 1e-6 of each other.
    """
    if one == other:
        return True
    if not isinstance(one, float) and not isinstance(other, float):
        return False
    if abs(one) >= _LARGEST_EXACT and abs(other) >= _LARGEST_EXACT:
        return isclose(one, other, rel_tol=_LAST_DIGITS)
    if _is_exact(one) and _is_exact(other):
        return float(one) == float(other)  # a decimal and the nearest float
    return close(one, other)


def close(one: Number, other: Number) -> bool:
    """Returns whether two numbers are equal within the tolerance for floats, whatever their types."""
    return isclose(one, other, rel_tol=RELATIVE_TOLERANCE, abs_tol=_ABSOLUTE_TOLERANCE)


def _is_exact(number: Number) -> bool:
    """Returns whether a number has at most two decimals, and few enough digits for a float."""
    if isinstance(number, int):
        return True
    return isfinite(number) and abs(number) < _LARGEST_EXACT and bool(round(number, _CENTS) == number)
