"""Finds for each number of a page the line item and the period that it belongs to."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from eval_pipeline.core.numbers import parse_number
from eval_pipeline.core.values import value
from eval_pipeline.tracks.finqa.execute import cell_number

Rows = tuple[tuple[str | float, ...], ...]

_PERIOD = re.compile(
    r"\b(?:19|20)\d\d\b|\bq[1-4]\b|\bquarter|\bmonths?\b|\byears?\b|"
    r"\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|tember|ober|ember)?\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[a-z)%])\s*[.;](?=\s|$)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?|(?<![\w.,])\.\d+")
_LISTED = re.compile(
    r"\brespectively\b|\b(?:up|down|increased|decreased|rose|fell)\s+from\b|\bcompared\s+(?:to|with)\b|\bversus\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:19|20)\d\d")


@value
class NumberPlace:
    """The line item and period of a number.

    Attributes:
        item: its table row (or column, if rows are periods), or its sentence.
        period: its table column (or row), or its position in a sentence's list of periods.
    """

    item: str
    period: str


def number_places(table: Rows, texts: Sequence[str]) -> Mapping[float, list[NumberPlace]]:
    """Returns the places of each number in table and text, by absolute value."""
    found: defaultdict[float, list[NumberPlace]] = defaultdict(list)
    for size, place in (*_in_table(table), *_in_texts(texts)):
        found[float(f"{size:.10g}")].append(place)
    return found


def _in_table(table: Rows) -> Iterator[tuple[float, NumberPlace]]:
    if not table:
        return
    rows_are_periods = _rows_are_periods(table)
    for number, row in enumerate(table):
        for column, cell in enumerate(row[1:], start=1):
            size = cell_number(cell)
            if size is None:
                continue
            here, there = f"row {number}", f"column {column}"
            place = NumberPlace(there, here) if rows_are_periods else NumberPlace(here, there)
            yield abs(size), place


def _rows_are_periods(table: Rows) -> bool:
    """Whether row labels name periods more often than column headers do."""
    labels = [str(row[0]) for row in table[1:] if row]
    headers = [str(cell) for cell in table[0][1:]]
    return _share_of_periods(labels) > _share_of_periods(headers)


def _share_of_periods(names: Sequence[str]) -> float:
    return sum(_PERIOD.search(name) is not None for name in names) / len(names) if names else 0.0


def _in_texts(texts: Sequence[str]) -> Iterator[tuple[float, NumberPlace]]:
    for part, text in enumerate(texts):
        for number, sentence in enumerate(_SENTENCE.split(text)):
            yield from _in_sentence(sentence, f"sentence {part}.{number}")


def _in_sentence(sentence: str, name: str) -> Iterator[tuple[float, NumberPlace]]:
    """Amounts for several periods (`… respectively`, `up from …`) belong to one item; others are separate items."""
    listed = _LISTED.search(sentence) is not None
    for place, match in enumerate(_NUMBER.finditer(sentence)):
        number = parse_number(match[0].rstrip(","))
        if number is None or _YEAR.fullmatch(match[0]):
            continue
        yield abs(number.value), NumberPlace(name if listed else f"{name}.{place}", str(place) if listed else "text")
