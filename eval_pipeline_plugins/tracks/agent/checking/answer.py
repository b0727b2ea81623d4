"""Compares what was given to the tool `answer` with the right answers, whatever its form."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, time
from typing import Any

from eval_pipeline.answers.chosen_number import WantedNumber, number_of
from eval_pipeline.answers.envelope import answer_section
from eval_pipeline.answers.labels import asserted, label_of
from eval_pipeline.answers.markup import plain
from eval_pipeline.answers.mentions import (
    QuotableText,
    is_denied,
    is_left_open,
    is_listed,
    is_quoted,
    without_asked_denials,
    words_of,
)
from eval_pipeline.answers.numbers import decimal_of, numbers_in
from eval_pipeline.answers.wording import declines
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline.table_comparison.cells import moment_in
from eval_pipeline.table_comparison.comparison import compare
from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline.table_comparison.relaxations import Relaxation, Set
from eval_pipeline.table_comparison.table import ComparedTable
from eval_pipeline_plugins.tracks.agent.checking.readings import MOST_CHARS, forms, names_for, with_and
from eval_pipeline_plugins.tracks.agent.checking.spans import (
    PART_OF,
    month_of,
    months_said,
    other_unit,
    range_in,
    with_signs,
    without_total,
)

_MOST_WORDS, _MOST_AROUND, _MOST_TOLD = 60, 5, 200
_SLACK, _NEAR = 4, 200
LEAST_DECIMALS = 2
"""Decimals to which a number may be rounded where the question says nothing about that."""
_LONGER_NAME = re.compile(r"[ -][A-Z]")
"""What follows a name that is only the beginning of another: `The Rundown Film`."""
_RIVAL_AFTER = re.compile(r"[\s\"'”’`*]*(?:(?i:and|&)|,(?=[^.;()]*\b(?i:and)\b))\s+(?!I\b)[\"'“‘`*]*[A-Z]")
_RIVAL_BEFORE = re.compile(
    r"(?:[A-Z][\w'’-]*[\"'”’`*]*,?\s+(?i:and|&)"
    r"|\b(?i:than|versus|vs\.?|ahead of|beats?|behind|followed by|compared (?:to|with)))\s+[\"'“‘`*]*$"
)
_BOTH = re.compile(r"\W*\S+(?: \S+)? and \S+(?: \S+)?\W*", re.IGNORECASE)
"""What stands around a name beside another one: `A and B`, `A, B and C`, `A is ahead of B`."""
_DATE = re.compile(
    r"\b(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}\.\d{1,2}\.\d{4}"
    r"|\d{1,2}(?:st|nd|rd|th)? (?:of )?[A-Z][a-z]{2,8}\.?,? \d{4}"
    r"|[A-Z][a-z]{2,8}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4})\b"
)
_AMOUNT = re.compile(r"([€$£¥]?)\s?-?\d[\d,]*(?:\.\d+)?\s?([^\W\d_]{1,12}|[€$£¥]|°\w?)?")
_EDGE = re.compile(r"^(?:the|an?)\s+|[\s.!]+$", re.IGNORECASE)


@value
class ComparedAnswer:
    """How an answer compares.

    Attributes:
        right: whether it is right.
        words: in what it differs, or what is overlooked; may be empty.
        declined: whether it says that there is no answer.
    """

    right: bool
    words: str = ""
    declined: bool = False


def compare_answer(
    given: Json, accepted: Sequence[Json], question: str, contract: Contract, labels: Sequence[str] = ()
) -> ComparedAnswer:
    """Compares an answer with the accepted ones; the nearest one is told of."""
    if given is None or given == "":
        return ComparedAnswer(False, "no answer was given")
    declined = isinstance(given, str) and declines(given)
    insisted = contract.insisted(question)
    found = [_compare(given, right, question, insisted, contract, labels) for right in accepted]
    best = next((one for one in found if one.right), found[0])
    return ComparedAnswer(best.right, best.words, declined and not best.right)


def is_refusal(given: Json) -> bool:
    """Returns whether an answer says that there is none, in words or by a reason in an object."""
    texts = given.values() if isinstance(given, Mapping) else (given,)
    return any(isinstance(one, str) and (declines(one) or bool(_LACKS.search(one[:MOST_CHARS]))) for one in texts)


_LACKS = re.compile(
    r"\bthere (?:is|are) no\b[^.\d]*\b(?:in|about|for|on) (?:the |this |these |any )*"
    r"(?:data|files?|tables?|databases?|worlds?|columns?|records?)\b"
    r"|\b(?:the|this|these) (?:data|files?|tables?|databases?|world|records?) "
    r"(?:lacks?|(?:has|have|holds?|contains?) no)\b",
    re.IGNORECASE,
)
"""Says what the data lack, which answers a question that has no answer."""


def _compare(
    given: Json, right: Json, question: str, insisted: Set, contract: Contract, labels: Sequence[str]
) -> ComparedAnswer:
    if not isinstance(right, Mapping | list):
        given, why = _unwrapped(given, right)
        if why:
            return ComparedAnswer(False, why)
    elif isinstance(right, list) and isinstance(given, Mapping) and len(given) == 1:
        given = next(iter(given.values()))  # an object around the list
    if isinstance(right, bool):
        labels, right = ("yes", "no"), "yes" if right else "no"
        given = {True: "yes", False: "no", "true": "yes", "false": "no"}.get(_hashable(given), given)
    if labels and isinstance(right, str):
        return _label(given, right, labels, question)
    given = _as_asked(given, right, question)
    if isinstance(right, str) and isinstance(given, str):
        told = _text(given, right, question)
        if told.right:
            return told
    if isinstance(right, int | float) and isinstance(given, str):
        number, why = _number(given, right, question)
        if number is None:
            return ComparedAnswer(False, why)
        given = _with_zeros(number, given) if Relaxation.TEXT_NUMBERS in contract.overlooked(insisted) else number
    return _of_values(same_tables(given, right, insisted, contract, question), given, right)


def _of_values(found: ComparedAnswer, given: Json, right: Json) -> ComparedAnswer:
    """Returns the same, which says nothing of rows and columns where there are just two values that differ."""
    if found.right or isinstance(given, Mapping | list) or isinstance(right, Mapping | list):
        return found
    texts = [(one if isinstance(one, str) else json_text(one))[:_MOST_TOLD] for one in (given, right)]
    return ComparedAnswer(False, f"{texts[0]} where {texts[1]} is right")


def _unwrapped(given: Json, right: Json) -> tuple[Json, str]:
    """Returns the one value of an object or a list that is of the kind that was asked for, and why there is none."""
    for _ in range(_MOST_AROUND):
        if isinstance(given, Mapping) and isinstance(given.get("columns"), list):
            given = given.get("rows", given.get("data"))
        if not isinstance(given, Mapping | list):
            return given, ""
        values = list(given.values()) if isinstance(given, Mapping) else given
        told = f"it gives {len(values)} values where one is asked for"
        if isinstance(given, Mapping) and len(values) > 1:
            values = [
                one
                for one in values
                if not isinstance(one, Mapping | list) and isinstance(one, str) is isinstance(right, str)
            ]
        if len(values) != 1:
            return None, told
        given = values[0]
    return None, "its value is too deep within others"


def _as_asked(given: Json, right: Json, question: str) -> Json:
    return without_asked_denials(given, question, json_text(right)) if isinstance(given, str) else given


def _hashable(given: Json) -> Any:
    return plain(given).casefold() if isinstance(given, str) else given if isinstance(given, bool) else None


def _label(given: Json, right: str, labels: Sequence[str], question: str) -> ComparedAnswer:
    text = given if isinstance(given, str) else json_text(given)
    named = dict.fromkeys(labels, ())
    found = label_of(text, named)
    sources = [QuotableText(question, _SLACK)]
    told = [found] if found is not None else asserted(text[:MOST_CHARS], named, sources, frozenset())
    if told == [right]:
        return ComparedAnswer(True)
    return ComparedAnswer(False, f"it gives {', '.join(told) or 'none'} of {', '.join(labels)}")


def _number(text: str, right: float, question: str) -> tuple[float | None, str]:
    """Returns the number of a text, in the unit that is asked for: 12.5% is 0.125 unless a percentage is wanted."""
    section = answer_section(text)
    said = without_total(section.text if section.marked else text)
    said = with_signs(said) if right < 0 else said
    if PART_OF.search(said):
        return None, "it gives a part of a number"
    if (unit := other_unit(said, question)) is not None:
        return None, f"it gives {unit}, which is not the unit that is asked for"
    wanted = WantedNumber(
        section.marked, section.closed, decimal_of(None), (), [QuotableText(question, _SLACK)], frozenset()
    )
    number, why = number_of(said, wanted)
    is_share = number is not None and abs(right) <= 1 and not _PERCENT.search(question)
    if number is not None and is_share and any(one.percent and one.value == number for one in numbers_in(plain(said))):
        return number / 100, why
    return number, why


def _with_zeros(number: float, text: str) -> Json:
    """Returns a number as a text writes it if that ends with zeros, which show to what it is rounded."""
    found = [one for one in numbers_in(plain(text)) if one.value == number and one.scale == 1 and one.decimals]
    whole, _, places = str(float(number)).partition(".")
    shown = (found[0].decimals or 0) if found else 0
    return f"{whole}.{places.ljust(shown, '0')}" if shown > len(places) and places.isdigit() else number


_PERCENT = re.compile(r"%|\bper ?cent", re.IGNORECASE)


def _text(given: str, right: str, question: str) -> ComparedAnswer:
    """Compares texts without regard to case and marks at the ends; a sentence may say the right one."""
    section = answer_section(given)
    said, right = with_and((section.text if section.marked else given).strip()), with_and(right)
    if _folded(said) == _folded(right):
        return ComparedAnswer(True)
    words, wanted = words_of(said), [word for word, _, _ in words_of(right)]
    if not wanted or len(words) > _MOST_WORDS:
        return ComparedAnswer(False, "another text")
    if (told := _span(said, right, question)) is not None:
        return ComparedAnswer(told, "said in a sentence" if told else "another date or range")
    for at in range(len(words) - len(wanted) + 1):
        if [word for word, _, _ in words[at : at + len(wanted)]] == wanted:
            span = words[at][1], words[at + len(wanted) - 1][2]
            sources = [QuotableText(question, _SLACK)]
            doubted = is_denied(said, span) or is_quoted(said, span, sources) or is_left_open(said, span)
            is_part = _LONGER_NAME.match(said, span[1]) is not None or is_listed(said, span) or _has_rivals(said, span)
            if not doubted and not is_part:
                return ComparedAnswer(True, "said in a sentence")
    return ComparedAnswer(False, "another text")


def _span(said: str, right: str, question: str) -> bool | None:
    """Returns whether a text gives the month, day or range that is right; None if that is none, or no day is given."""
    day, month = moment_in(right), month_of(right)
    if month is not None:
        told = [(found, is_denied(said, at) or is_left_open(said, at)) for found, at in months_said(plain(said))]
        told += [("a day", True) for _ in _DATE.finditer(said)]
        return bool(told) and all(found == month and not is_doubted for found, is_doubted in told)
    if isinstance(day, datetime):
        dates = set(_dates(said, question)) if day.time() == time.min else set()
        return dates == {day} if dates else None
    if (wanted := range_in(right)) is not None and re.fullmatch(r"\W*\d[^A-Za-z]*", right):
        if range_in(said) == wanted:
            return not is_denied(said, (0, len(said)))
        return None if len(re.findall(r"\d+", said)) == len(re.findall(r"\d+", right)) else False
    return None


def _dates(text: str, question: str) -> Iterator[datetime | time | None]:
    """Yields the days that a text asserts, in whatever form, and None for one that it does not."""
    sources = [QuotableText(question, _SLACK)]
    for found in _DATE.finditer(text):
        span = found.span()
        is_doubted = is_denied(text, span) or is_left_open(text, span) or is_quoted(text, span, sources)
        yield None if is_doubted else moment_in(found[0].replace(" of ", " "))


def _has_rivals(text: str, span: tuple[int, int]) -> bool:
    """Returns whether a mention is one of several names."""
    if len([line for line in text.splitlines() if line.strip()]) > 2:
        return True
    before, after = text[max(span[0] - _NEAR, 0) : span[0]], text[span[1] : span[1] + _NEAR]
    is_beside = _RIVAL_AFTER.match(after) is not None or _RIVAL_BEFORE.search(before) is not None
    return is_beside or (len(text) < _NEAR and _BOTH.fullmatch(f"{before}X{after}") is not None)


def _folded(text: str) -> str:
    bare = " ".join(plain(text).split()).strip("\"'`“”‘’*").casefold()
    return _EDGE.sub("", bare) or bare


def same_tables(given: Json, right: Json, insisted: Set, contract: Contract, question: str = "") -> ComparedAnswer:
    """Compares lists, tables and values as tables, in any form in which they can be written."""
    overlooked = contract.overlooked(insisted)
    closest = ""
    for expected in map(_with_months, forms(right)):
        if Relaxation.ROW_ORDER in insisted:
            expected = ComparedTable(expected.columns, expected.rows, tuple(range(len(expected.rows))), expected.shape)
        for table in _with_bare_amounts(map(_with_months, forms(given, names_for(question, expected.columns)))):
            found = compare(table, expected)
            # who uses the right names says with them which value is which
            named = {Relaxation.COLUMN_NAMES} if _names(table) == _names(expected) else set()
            if found.accepted(overlooked - named, LEAST_DECIMALS):
                return ComparedAnswer(True, "" if found.needs == (frozenset(),) else found.sentence())
            closest = closest or found.sentence()
    return ComparedAnswer(False, closest or "it has another form")


def _with_months(table: ComparedTable) -> ComparedTable:
    """Returns a table whose months are in one form, which is no day's."""
    if not any(isinstance(cell, str) and month_of(cell) for row in table.rows for cell in row):
        return table
    rows = [tuple(_month_told(cell) for cell in row) for row in table.rows]
    return ComparedTable(table.columns, rows, table.ties, table.shape)


def _month_told(cell: Any) -> Any:
    month = month_of(plain(cell)) if isinstance(cell, str) else None
    return cell if month is None else f"{month} (month)"


def _with_bare_amounts(tables: Iterable[ComparedTable]) -> Iterator[ComparedTable]:
    """Yields tables, and again with numbers in columns in which all have the same unit."""
    for table in tables:
        yield table
        columns = list(zip(*table.rows, strict=True))
        bare = [_bare_amounts(column) or column for column in columns]
        if bare != columns:
            yield ComparedTable(table.columns, list(zip(*bare, strict=True)), table.ties, table.shape)


def _bare_amounts(column: Sequence[Any]) -> tuple[float, ...] | None:
    found = [_AMOUNT.fullmatch(one) if isinstance(one, str) else None for one in column]
    units = {None if one is None else (one[1], (one[2] or "").casefold()) for one in found}
    if len(units) != 1 or units & {None, ("", "k"), ("", "m")}:  # thousands or kelvin, millions or metres
        return None
    numbers = [one for text in column for one in numbers_in(text)]
    return tuple(one.value for one in numbers) if all(one.scale == 1.0 and not one.why for one in numbers) else None


def _names(table: ComparedTable) -> frozenset[str]:
    return frozenset("" if name is None else str(name).casefold() for name in table.columns)
