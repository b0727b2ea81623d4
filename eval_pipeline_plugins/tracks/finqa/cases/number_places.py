"""Finds for each number of a page the line item and the period that it belongs to."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from eval_pipeline.answers.printed import printed_number
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.finqa.programs.execute import cell_number

Rows = tuple[tuple[str | float, ...], ...]

_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|tember|ober|ember)?"
_ORDINAL = r"(?:first|second|third|fourth|[1-4](?:st|nd|rd|th))"
_NAMED_BY_YEAR = (
    r"(?:programs?|plans?|notes?|bonds?|debentures?|facility|agreement)\b(?!\s+(?:assets|payable|receivable))"
)
"""Things that have a year as a name: the 2007 program, the 2014 notes."""
_PERIOD = re.compile(
    rf"""\b(?:19|20)\d\d\b(?!\s+{_NAMED_BY_YEAR}) | (?<=,\s)(?:19|20)\d\d\b | \b\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?\b
    | \b\d{{1,2}}/\d{{2,4}}\b | \b(?:fy|cy|h|q)\s*'?\d{{1,4}}\b
    | \b{_ORDINAL}\s+(?:quarter|half|three\b|six\b|nine\b) | ^\W*{_ORDINAL}\W*$ | \b(?:three|six|nine|twelve)\s+months\b
    | ^\W*(?:current|prior|previous|last|this)\s+(?:year|quarter|month)\W*$ | \b{_MONTH}\b""",
    re.VERBOSE | re.IGNORECASE,
)
_FILLER = re.compile(
    r"\b(?:for|the|as|of|at|in|and|to|ended|ending|fiscal|years?|months?|quarters?|half)\b|\d+|[^a-z]", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[a-z)%])\s*[.;](?=\s|$)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?|(?<![\w.,])\.\d+")
_LISTED = re.compile(
    r"\brespectively\b|\b(?:up|down|increased|decreased|rose|fell)\s+from\b|\bcompared\s+(?:to|with)\b|\bversus\b",
    re.IGNORECASE,
)
_DAY = re.compile(rf"\b{_MONTH}\.?\s+\d{{1,2}}\Z", re.IGNORECASE)
_OF_A_DATE = ("day", "of", "month")
"""In place of a period: the day of a date is no line item of any period."""
_YEAR = re.compile(r"(?:19|20)\d\d")


@value
class NumberPlace:
    """The line item and period of a number.

    Attributes:
        item: what the labels of its row and column say besides the period, or its sentence.
        period: the periods that they name (empty: none), or its position in a sentence's list of periods.
        cell: its row and column in the table; None in a text.
    """

    item: str
    period: tuple[str, ...]
    cell: tuple[int, int] | None = None

    def lines(self) -> Iterator[tuple[tuple[str, int | str], int]]:
        """Yields the row and the column of the table, or the list of the sentence, with the position in it."""
        if self.cell is not None:
            row, column = self.cell
            yield ("row", row), column
            yield ("column", column), row
        elif self.period[0].isdigit():
            yield ("list", self.item), int(self.period[0])

    def is_of_another_period(self, other: "NumberPlace") -> bool:
        """Whether the periods contradict each other; a label without a period contradicts none."""
        if len(self.period) != len(other.period):
            return True
        return any(a and b and a != b for a, b in zip(self.period, other.period, strict=True))


def number_places(table: Rows, texts: Sequence[str]) -> Mapping[float, list[NumberPlace]]:
    """Returns the places of each number in table and text, by absolute value."""
    found: defaultdict[float, list[NumberPlace]] = defaultdict(list)
    for size, place in (*_in_table(table), *_in_texts(texts)):
        found[float(f"{size:.10g}")].append(place)
    return found


def _in_table(table: Rows) -> Iterator[tuple[float, NumberPlace]]:
    if not table:
        return
    rows = _axis([str(row[0]) if row else "" for row in table])
    columns = _axis(_headers(table))
    for number, row in enumerate(table):
        for column, cell in enumerate(row[1:], start=1):
            size = cell_number(cell)
            if size is not None and column < len(columns):
                item, period = zip(rows[number], columns[column], strict=True)
                yield abs(size), NumberPlace(" | ".join(item), period, (number, column))


def _headers(table: Rows) -> list[str]:
    """Returns the label of each column: its header, with the year below it where a second row has years only."""
    width = max(map(len, table))
    rows = [table[0], *([table[1]] if len(table) > 1 and _holds_years(table[1]) else ())]
    return [" ".join(str(row[column]) for row in rows if column < len(row)) for column in range(width)]


def _holds_years(row: Sequence[str | float]) -> bool:
    """Whether a row has no label, and nothing but years."""
    return bool(row[1:]) and not str(row[0]).strip() and all(_YEAR.match(str(cell)) for cell in row[1:])


def _axis(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Returns item and period of each row or column.

    Where at least half of the labels name a period and nothing besides, the others (a total) are periods, too.
    """
    found = [_item_and_period(label if label.strip() else f"({number})") for number, label in enumerate(labels)]
    others = found[1:]
    items = {item for item, period in others if period}
    if items == {""} and 2 * sum(bool(period) for _, period in others) >= len(others):
        return [("", period or label) for label, (_, period) in zip(labels, found, strict=True)]
    return found


def _item_and_period(label: str) -> tuple[str, str]:
    """Splits a label: `pension plans , december 31 , 2018` → (`pension plans`, the rest); no period: all is item."""
    named = _PERIOD.findall(label)
    if not named:
        return label.strip().casefold(), ""
    item = _FILLER.sub(" ", _PERIOD.sub(" ", label)).casefold()
    return " ".join(item.split()), " ".join(named).casefold()


def _in_texts(texts: Sequence[str]) -> Iterator[tuple[float, NumberPlace]]:
    for part, text in enumerate(texts):
        for number, sentence in enumerate(_SENTENCE.split(text)):
            yield from _in_sentence(sentence, f"sentence {part}.{number}")


def _in_sentence(sentence: str, name: str) -> Iterator[tuple[float, NumberPlace]]:
    """Amounts for several periods (`… respectively`, `up from …`) belong to one item; others are separate items."""
    listed = _LISTED.search(sentence) is not None
    for place, match in enumerate(_NUMBER.finditer(sentence)):
        number = printed_number(match[0].rstrip(","))
        if number is None or _YEAR.fullmatch(match[0]):
            continue
        if _DAY.search(sentence, 0, match.end()):
            yield abs(number.value), NumberPlace(f"{name}.{place}", _OF_A_DATE)
        elif listed:
            yield abs(number.value), NumberPlace(name, (str(place),))
        else:
            yield abs(number.value), NumberPlace(f"{name}.{place}", ("text",))
