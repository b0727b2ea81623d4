"""Where the numbers of a page stand: of which line item, and for which period."""

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
    """Of what a number is told.

    Attributes:
        item: its row of the table (or column, where periods are the rows), or its sentence.
        period: its column of the table, or its place in a list of periods in a sentence.
    """

    item: str
    period: str


def number_places(table: Rows, texts: Sequence[str]) -> Mapping[float, list[NumberPlace]]:
    """The places of each size of a number, in table and text."""
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
    """Whether the labels of rows name years and the like, and those of columns do not, or less often."""
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
    """Amounts of several periods (`… respectively`, `up from …`) are of one item; others each of their own."""
    listed = _LISTED.search(sentence) is not None
    for place, match in enumerate(_NUMBER.finditer(sentence)):
        number = parse_number(match[0].rstrip(","))
        if number is None or _YEAR.fullmatch(match[0]):
            continue
        yield abs(number.value), NumberPlace(name if listed else f"{name}.{place}", str(place) if listed else "text")
