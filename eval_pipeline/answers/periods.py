"""Times that an answer says of its number, as `in May 2025`: which of their figures are not the answer."""

import re
from collections.abc import Iterator, Sequence

from eval_pipeline.core.values import value

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR, _ORDINAL = r"(?:19|20)\d\d", r"(?:st|nd|rd|th)"
_PARTS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_CLEAR = re.compile(
    rf"\b(?:(?:\d{{1,2}}(?:{_ORDINAL}|\.)? (?:of )?)?{_MONTH},? (?:\d{{1,2}}{_ORDINAL}?,? )?{_YEAR}"
    rf"|{_YEAR},? {_MONTH}(?!\w)|Q[1-4][ /-]?{_YEAR}|{_YEAR}[ /-]?Q[1-4]"
    rf"|(?:{'|'.join(_PARTS)}) (?:quarter|half) of {_YEAR}"
    rf"|(?:start|beginning|end) of {_YEAR}|(?:in|during|year|FY) ?{_YEAR}(?![-/]\d| ?Q[1-4]))(?![\d.,]*\d)",
    re.IGNORECASE,
)
_SHORT = re.compile(
    rf"(?<![\d./-])(?:{_YEAR}[-/](?:0[1-9]|1[0-2])(?:[-/][0-3]\d)?|(?:0?[1-9]|1[0-2])/{_YEAR}|[0-3]?\d[./][01]?\d[./]{_YEAR})"
    r"(?![\d/-]|\.\d)"
)
"""Times only if the question has one as well: numbers of things look alike."""
_COUNT = re.compile(rf"\d{{1,2}} (?={_MONTH})", re.IGNORECASE)
_ON_DAY = re.compile(r"\b(?:on|until|since|dated|as of|as at) $", re.IGNORECASE)
_BEFORE = len(" as of ") + 2
_ASKS_WHEN = re.compile(
    r"\b(?:when (?:is|are|was|were|did|does|do|has|had|will)|(?:which|what) (?:year|quarter|month|day|date))\b",
    re.IGNORECASE,
)


@value
class _When:
    """A time.

    Attributes:
        year: its four digits.
        part: a month as `05`, a quarter as `Q2`, a half as `H1`, `start` or `end`; empty for the whole year.
        day: of the month; 0 for none.
    """

    year: str
    part: str
    day: int

    def is_within(self, other: "_When") -> bool:
        """Returns whether it is another time, or within it, or is not told as exactly."""
        if self.year != other.year or (self.day and other.day and self.day != other.day):
            return False
        return not self.part or not other.part or self.part == other.part or self.part in _covered(other.part)


def _covered(part: str) -> set[str]:
    """Returns the months of a quarter, and the months and quarters of a half."""
    if part[0] not in "QH":
        return set()
    number, months = int(part[1]), 3 if part[0] == "Q" else 6
    within = {f"{month:02}" for month in range(months * (number - 1) + 1, months * number + 1)}
    return within | ({f"Q{2 * number - 1}", f"Q{2 * number}"} if part[0] == "H" else set())


def times_said(text: str, sources: Sequence[str]) -> list[tuple[int, int]]:
    """Returns where a text says of what time its number is, if the question asks about that time, or about none.

    Args:
        text: the answer section.
        sources: the question, and what else may be repeated from it.

    Returns:
        Spans. Empty where the question asks for a time. A day in front of a month is none if it may be a count, as in
        `12 March 2025 orders`.
    """
    if any(_ASKS_WHEN.search(source) for source in sources):
        return []
    asked = [when for source in sources for _, when in _times_in(source, (_CLEAR, _SHORT))]
    found = _times_in(text, (_CLEAR, _SHORT) if asked else (_CLEAR,))
    return [_without_count(text, span, asked) for span, when in found if not asked or any(map(when.is_within, asked))]


def spans_of_times(text: str) -> list[tuple[int, int]]:
    """Returns where a text says a time, of whatever year."""
    return [span for span, _ in _times_in(text, (_CLEAR, _SHORT))]


def _without_count(text: str, span: tuple[int, int], asked: Sequence[_When]) -> tuple[int, int]:
    start, end = span
    count = _COUNT.match(text, start)
    if (
        count is None
        or _ON_DAY.search(text[max(0, start - _BEFORE) : start])
        or any(int(count[0]) == one.day for one in asked)
    ):
        return span
    return count.end(), end


def _times_in(text: str, forms: Sequence[re.Pattern[str]]) -> Iterator[tuple[tuple[int, int], _When]]:
    for form in forms:
        for match in form.finditer(text):
            yield match.span(), _when(match[0])


def _when(told: str) -> _When:
    year = re.search(_YEAR, told)
    assert year is not None
    rest = f"{told[: year.start()]} {told[year.end() :]}".casefold()
    month = re.search(rf"\b{_MONTH}", rest)
    numbers = [int(one) for one in re.findall(r"\d+", rest)]
    if month is not None:
        return _When(year[0], f"{_MONTHS.index(month[0][:3]) + 1:02}", numbers[0] if numbers else 0)
    if (part := re.search(rf"({'|'.join(_PARTS)}) (quarter|half)|(start|beginning|end) of|q([1-4])", rest)) is not None:
        if part[3]:
            return _When(year[0], "end" if part[3] == "end" else "start", 0)
        if part[2] == "half":
            return _When(year[0], f"H{min(_PARTS[part[1]], 2)}", 0)
        return _When(year[0], f"Q{part[4] or _PARTS[part[1]]}", 0)
    if not numbers:
        return _When(year[0], "", 0)
    if told.startswith(year[0]):
        return _When(year[0], f"{numbers[0]:02}", numbers[1] if len(numbers) > 1 else 0)
    return _When(year[0], f"{numbers[-1]:02}", numbers[0] if len(numbers) > 1 else 0)
