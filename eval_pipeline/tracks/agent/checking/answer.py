"""Compares what was given to the tool `answer` with the right answers, whatever its form."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.answers.chosen_number import WantedNumber, number_of
from eval_pipeline.answers.envelope import answer_section
from eval_pipeline.answers.labels import asserted, label_of
from eval_pipeline.answers.markup import plain
from eval_pipeline.answers.mentions import QuotableText, is_denied, is_left_open, is_listed, is_quoted, words_of
from eval_pipeline.answers.numbers import decimal_of
from eval_pipeline.answers.refusals import declines
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline.table_comparison.comparison import compare
from eval_pipeline.table_comparison.contracts import Contract, insisted_by
from eval_pipeline.table_comparison.relaxations import Relaxation, Set
from eval_pipeline.table_comparison.table import ComparedTable, Shape

_MOST_CHARS, _MOST_WORDS = 20_000, 60
_SLACK = 4
LEAST_DECIMALS = 2
"""Decimals to which a number may be rounded where the question says nothing about that."""
_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_RULE = re.compile(r"^[\s|:+-]+$")
_LONGER_NAME = re.compile(r"[ -][A-Z]")
"""What follows a name that is only the beginning of another: `The Rundown Film`."""
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
    if isinstance(given, Mapping | list):
        values = list(given.values()) if isinstance(given, Mapping) else given
        if isinstance(given, list) and len(values) == 1 and isinstance(values[0], Mapping):
            return _unwrapped(values[0], right)
        alike = [one for one in values if isinstance(one, str) is isinstance(right, str)] if len(values) > 1 else values
        if len(alike) != 1 or isinstance(alike[0], Mapping | list) or (len(values) > 1 and isinstance(given, list)):
            return None, f"it gives {len(values)} values where one is asked for"
        return alike[0], ""
    return given, ""


def _hashable(given: Json) -> Any:
    return given.casefold().strip() if isinstance(given, str) else given if isinstance(given, bool) else None


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
    for at in range(len(words) - len(wanted) + 1):
        if [word for word, _, _ in words[at : at + len(wanted)]] == wanted:
            span = words[at][1], words[at + len(wanted) - 1][2]
            sources = [QuotableText(question, _SLACK)]
            doubted = is_denied(said, span) or is_quoted(said, span, sources) or is_left_open(said, span)
            is_part = _LONGER_NAME.match(said, span[1]) is not None or is_listed(said, span) or _is_one_of_lines(said)
            if not doubted and not is_part:
                return ComparedAnswer(True, "said in a sentence")
    return ComparedAnswer(False, "another text")


def _with_and(text: str) -> str:
    return re.sub(r"\s&\s", " and ", text)


def _is_one_of_lines(text: str) -> bool:
    return len([line for line in text.splitlines() if line.strip()]) > 2


def _folded(text: str) -> str:
    bare = " ".join(plain(text).split()).strip("\"'`“”‘’*").casefold()
    return _EDGE.sub("", bare) or bare


def same_tables(given: Json, right: Json, insisted: Set, contract: Contract) -> ComparedAnswer:
    """Compares lists, tables and values as tables, in any form in which they can be written."""
    overlooked = contract.overlooked(insisted)
    closest = ""
    for expected in _forms(right):
        if Relaxation.ROW_ORDER in insisted:
            expected = ComparedTable(expected.columns, expected.rows, tuple(range(len(expected.rows))), expected.shape)
        for table in _forms(given):
            found = compare(table, expected)
            # who uses the right names says with them which value is which
            named = {Relaxation.COLUMN_NAMES} if _names(table) == _names(expected) else set()
            if found.accepted(overlooked - named, LEAST_DECIMALS):
                return ComparedAnswer(True, "" if found.needs == (frozenset(),) else found.sentence())
            closest = closest or found.sentence()
    return ComparedAnswer(False, closest or "it has another form")


def _names(table: ComparedTable) -> frozenset[str]:
    return frozenset("" if name is None else str(name).casefold() for name in table.columns)


def _forms(answer: Json) -> Iterator[ComparedTable]:
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
                yield ComparedTable((None,) * width.pop(), [tuple(map(_cell, one)) for one in items])
        case [*items]:
            yield ComparedTable((None,), [(_cell(one),) for one in items], shape="list")
        case _:
            yield ComparedTable((None,), [(answer,)], shape="scalar")


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
            yield from _forms(read)


def _written(text: str) -> Iterator[ComparedTable]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
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
    elif lines:
        items = re.split(r"[,;]\s+(?:and\s+)?|\s+and\s+", lines[0].rstrip("."))
        if len(items) > 1:
            yield _list(items)


def _list(items: Sequence[str]) -> ComparedTable:
    shape: Shape = "list"
    return ComparedTable((None,), [(plain_cell(item),) for item in items], shape=shape)


def _table(rows: Sequence[tuple[Any, ...]]) -> Iterator[ComparedTable]:
    """Yields rows of text as a table with a header, and as one without."""
    if rows and len({len(row) for row in rows}) == 1:
        if len(rows) > 1:
            yield ComparedTable(tuple(map(str, rows[0])), rows[1:])
        yield ComparedTable((None,) * len(rows[0]), rows)


def plain_cell(text: str) -> Any:
    """Returns a number for a text that is one, None for an empty one."""
    bare = plain(text).strip().strip("\"'")
    try:
        return float(bare.replace(",", "")) if re.fullmatch(r"-?[\d,]*\d(\.\d+)?", bare) else bare or None
    except ValueError:
        return bare
