"""Compares what was given to the tool `answer` with the right answers, whatever its form."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, time
from typing import Any

from eval_pipeline.answers.chosen_number import WantedNumber, number_of
from eval_pipeline.answers.envelope import answer_section
from eval_pipeline.answers.labels import asserted, label_of
from eval_pipeline.answers.markup import plain
from eval_pipeline.answers.mentions import QuotableText, is_denied, is_left_open, is_listed, is_quoted, words_of
from eval_pipeline.answers.numbers import decimal_of, numbers_in
from eval_pipeline.answers.refusals import declines
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline.table_comparison.cells import moment_in
from eval_pipeline.table_comparison.comparison import compare
from eval_pipeline.table_comparison.contracts import Contract, insisted_by
from eval_pipeline.table_comparison.relaxations import Relaxation, Set
from eval_pipeline.table_comparison.table import ComparedTable, Shape

_MOST_CHARS, _MOST_WORDS, _MOST_AROUND = 20_000, 60, 5
_SLACK, _NEAR = 4, 200
LEAST_DECIMALS = 2
"""Decimals to which a number may be rounded where the question says nothing about that."""
_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_RULE = re.compile(r"^[\s|:+-]+$")
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
_PAIR = re.compile(r"(.+?)(?:[:=\t]|\s[-–—→]\s|->)(.+)")
_LISTED_AFTER = re.compile(r"[^:,;]*?(?::|\b(?:are|were))\s+")
_AMOUNT = re.compile(r"([€$£¥]?)\s?-?\d[\d,]*(?:\.\d+)?\s?([^\W\d_]{1,12}|[€$£¥]|°\w?)?")
_TURNED = re.compile(
    r"\b(?:except|excluding|other|but|not|without|neither|none|wrong|instead)\b|n['’]t\b", re.IGNORECASE
)
"""What turns round a list before which it stands."""
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
    insisted = insisted_by(question)
    found = [_compare(given, right, question, insisted, contract, labels) for right in accepted]
    best = next((one for one in found if one.right), found[0])
    return ComparedAnswer(best.right, best.words, declined and not best.right)


def is_refusal(given: Json) -> bool:
    """Returns whether an answer says that there is none, in words or by a reason in an object."""
    if isinstance(given, Mapping):
        return any(isinstance(one, str) and declines(one) for one in given.values())
    return isinstance(given, str) and declines(given[:_MOST_CHARS])


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
    if isinstance(right, str) and isinstance(given, str):
        told = _text(given, right, question)
        if told.right:
            return told
    if isinstance(right, int | float) and isinstance(given, str):
        number, why = _number(given, question)
        if number is None:
            return ComparedAnswer(False, why)
        given = number
    return same_tables(given, right, insisted, contract)


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


def _hashable(given: Json) -> Any:
    return plain(given).casefold() if isinstance(given, str) else given if isinstance(given, bool) else None


def _label(given: Json, right: str, labels: Sequence[str], question: str) -> ComparedAnswer:
    text = given if isinstance(given, str) else json_text(given)
    named = dict.fromkeys(labels, ())
    found = label_of(text, named)
    sources = [QuotableText(question, _SLACK)]
    told = [found] if found is not None else asserted(text[:_MOST_CHARS], named, sources, frozenset())
    if told == [right]:
        return ComparedAnswer(True)
    return ComparedAnswer(False, f"it gives {', '.join(told) or 'none'} of {', '.join(labels)}")


def _number(text: str, question: str) -> tuple[float | None, str]:
    section = answer_section(text)
    said = section.text if section.marked else text
    wanted = WantedNumber(
        section.marked, section.closed, decimal_of(None), (), [QuotableText(question, _SLACK)], frozenset()
    )
    return number_of(said, wanted)


def _text(given: str, right: str, question: str) -> ComparedAnswer:
    """Compares texts without regard to case and marks at the ends; a sentence may say the right one."""
    section = answer_section(given)
    said, right = _with_and((section.text if section.marked else given).strip()), _with_and(right)
    if _folded(said) == _folded(right):
        return ComparedAnswer(True)
    words, wanted = words_of(said), [word for word, _, _ in words_of(right)]
    if not wanted or len(words) > _MOST_WORDS:
        return ComparedAnswer(False, "another text")
    day = moment_in(right)
    if isinstance(day, datetime) and day.time() == time.min and len(dates := set(_dates(said, question))) == 1:
        return ComparedAnswer(dates == {day}, "said in a sentence" if dates == {day} else "another date")
    for at in range(len(words) - len(wanted) + 1):
        if [word for word, _, _ in words[at : at + len(wanted)]] == wanted:
            span = words[at][1], words[at + len(wanted) - 1][2]
            sources = [QuotableText(question, _SLACK)]
            doubted = is_denied(said, span) or is_quoted(said, span, sources) or is_left_open(said, span)
            is_part = _LONGER_NAME.match(said, span[1]) is not None or is_listed(said, span) or _has_rivals(said, span)
            if not doubted and not is_part:
                return ComparedAnswer(True, "said in a sentence")
    return ComparedAnswer(False, "another text")


def _dates(text: str, question: str) -> Iterator[datetime | time | None]:
    """Yields the days that a text asserts, in whatever form, and None for one that it does not."""
    sources = [QuotableText(question, _SLACK)]
    for found in _DATE.finditer(text):
        span = found.span()
        is_doubted = is_denied(text, span) or is_left_open(text, span) or is_quoted(text, span, sources)
        yield None if is_doubted else moment_in(found[0].replace(" of ", " "))


def _with_and(text: str) -> str:
    return re.sub(r"\s&\s", " and ", text)


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


def same_tables(given: Json, right: Json, insisted: Set, contract: Contract) -> ComparedAnswer:
    """Compares lists, tables and values as tables, in any form in which they can be written."""
    overlooked = contract.overlooked(insisted)
    closest = ""
    for expected in forms(right):
        if Relaxation.ROW_ORDER in insisted:
            expected = ComparedTable(expected.columns, expected.rows, tuple(range(len(expected.rows))), expected.shape)
        for table in _with_bare_amounts(forms(given)):
            found = compare(table, expected)
            # who uses the right names says with them which value is which
            named = {Relaxation.COLUMN_NAMES} if _names(table) == _names(expected) else set()
            if found.accepted(overlooked - named, LEAST_DECIMALS):
                return ComparedAnswer(True, "" if found.needs == (frozenset(),) else found.sentence())
            closest = closest or found.sentence()
    return ComparedAnswer(False, closest or "it has another form")


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


def forms(answer: Json) -> Iterator[ComparedTable]:
    """Yields the tables as which an answer can be read, the likeliest first."""
    match answer:
        case str():
            yield from _texts(answer)
            yield ComparedTable((None,), [(answer.strip(),)], shape="scalar")
        case dict() if answer:
            yield from _of_object(answer)
        case [*items] if items and all(isinstance(one, dict) for one in items):
            yield _records(items)
        case [*items] if items and all(isinstance(one, list) for one in items):
            if len(width := {len(one) for one in items}) == 1:
                rows = [tuple(map(_cell, one)) for one in items]
                yield ComparedTable((None,) * width.pop(), rows)
                if any(isinstance(cell, str) and _are_numbers(column) for cell, *column in zip(*rows, strict=True)):
                    yield ComparedTable(tuple(map(str, rows[0])), rows[1:])
        case [*items]:
            yield ComparedTable((None,), [(_cell(one),) for one in items], shape="list")
        case _:
            yield ComparedTable((None,), [(answer,)], shape="scalar")


def _are_numbers(column: Sequence[Any]) -> bool:
    return bool(column) and all(isinstance(cell, int | float) for cell in column)


def _of_object(answer: Mapping[str, Json]) -> Iterator[ComparedTable]:
    columns, rows, values = answer.get("columns"), answer.get("rows", answer.get("data")), list(answer.values())
    if isinstance(columns, list) and isinstance(rows, list):
        if all(isinstance(row, list) and len(row) == len(columns) for row in rows):
            yield ComparedTable(tuple(map(str, columns)), [tuple(map(_cell, row)) for row in rows])
    elif all(isinstance(one, list) for one in values):
        if len({len(one) for one in values}) == 1:
            yield ComparedTable.from_columns(list(answer), [list(map(_cell, one)) for one in values])
    elif all(isinstance(one, dict) for one in values):
        yield _records([{"": name, **one} for name, one in answer.items()])
    else:
        cells = list(map(_cell, values))
        yield ComparedTable(tuple(answer), [tuple(cells)], shape="row")
        yield ComparedTable((None, None), list(zip(answer, cells, strict=True)))


def _records(items: Sequence[Mapping[str, Json]]) -> ComparedTable:
    names = list(dict.fromkeys(name for one in items for name in one))
    rows = [tuple(_cell(one.get(name)) for name in names) for one in items]
    return ComparedTable(tuple(names), rows, shape="row" if len(rows) == 1 else "table")


def _cell(found: Json) -> Any:
    return json_text(found) if isinstance(found, list | dict) else found


def _texts(text: str) -> Iterator[ComparedTable]:
    """Yields what a text holds that is JSON, or a table of Markdown or CSV, or a list."""
    section = answer_section(text)
    fenced = _FENCE.findall(text)
    for part in dict.fromkeys([*fenced, *([section.text] if section.marked else []), text]):
        part = part.strip()
        if len(part) > _MOST_CHARS:
            continue
        try:
            read = json.loads(part)
        except (ValueError, RecursionError):
            yield from _written(part)
            continue
        if not isinstance(read, str):
            yield from forms(read)


def _written(text: str) -> Iterator[ComparedTable]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = lines[1:] if len(lines) > 1 and _is_title(lines[0]) else lines
    barred = [line for line in lines if "|" in line]
    if len(barred) >= 2:
        told = [line.strip("|").split("|") for line in barred if not _RULE.match(line)]
        rows = [tuple(map(plain_cell, line)) for line in told]
        yield from _table(rows)
    for separator in (",", ";", "\t"):
        if len(lines) >= 2 and all(separator in line for line in lines):
            read = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator)
            yield from _table([tuple(map(plain_cell, row)) for row in read])
    bullets = [re.sub(r"^(?:[-*•·+]|\(?\d{1,3}[.)])\s+", "", line) for line in lines]
    if len(lines) >= 2:
        yield _list(bullets)
        yield from _pairs(bullets)
    elif lines:
        yield from _one_line(_with_and(lines[0].rstrip(".")))


def _one_line(line: str) -> Iterator[ComparedTable]:
    """Yields the items of a line as a list and as pairs, and those after its first words: `They are A and B`."""
    after = _LISTED_AFTER.match(line)
    is_after = after is not None and _TURNED.search(after[0]) is None
    for part in (line, line[after.end() :]) if after is not None and is_after else (line,):
        items = re.split(r"[,;]\s+(?:and\s+)?|\s+and\s+", part)
        if len(items) > 1:
            yield _list(items)
            yield from _pairs(items)


def _is_title(line: str) -> bool:
    return line.endswith(":") and _TURNED.search(line) is None


def _pairs(items: Sequence[str]) -> Iterator[ComparedTable]:
    """Yields items such as `north: 10` as a table of two columns."""
    pairs = [_PAIR.fullmatch(item) for item in items]
    if all(pairs):
        yield ComparedTable((None, None), [(plain_cell(one[1]), plain_cell(one[2])) for one in pairs if one])


def _list(items: Sequence[str]) -> ComparedTable:
    shape: Shape = "list"
    return ComparedTable((None,), [(plain_cell(item),) for item in items], shape=shape)


def _table(rows: Sequence[tuple[Any, ...]]) -> Iterator[ComparedTable]:
    """Yields rows of text as a table with a header, and as one without."""
    if rows and len({len(row) for row in rows}) == 1:
        if len(rows) > 1 and not any(map(_is_no_name, rows[0])):
            yield ComparedTable(tuple(map(str, rows[0])), rows[1:])
        yield ComparedTable((None,) * len(rows[0]), rows)


def _is_no_name(cell: Any) -> bool:
    """Returns whether a cell cannot name a column, as a number that is no year."""
    return isinstance(cell, float) and not (cell.is_integer() and 1000 <= cell < 3000)


def plain_cell(text: str) -> Any:
    """Returns a number for a text that is one, None for an empty one."""
    bare = plain(text).strip().strip("\"'")
    try:
        return float(bare.replace(",", "")) if re.fullmatch(r"-?[\d,]*\d(\.\d+)?", bare) else bare or None
    except ValueError:
        return bare
