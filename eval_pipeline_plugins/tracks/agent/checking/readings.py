"""Reads what was answered as tables, in any form in which they can be written."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.answers.envelope import answer_section
from eval_pipeline.answers.markup import plain
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.table_comparison.table import ComparedTable, Shape

MOST_CHARS = 20_000
_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_RULE = re.compile(r"^[\s|:+-]+$")
_PAIR = re.compile(r"(.+?)(?:[:=\t]|\s[-–—→]\s|->)(.+)")
_LISTED_AFTER = re.compile(r"[^:,;]*?(?::|\b(?:are|were))\s+")
_TURNED = re.compile(
    r"\b(?:except|excluding|other|but|not|without|neither|none|wrong|instead)\b|n['’]t\b", re.IGNORECASE
)
"""What turns round a list before which it stands."""


def forms(answer: Json, names: frozenset[str] = frozenset()) -> Iterator[ComparedTable]:
    """Yields the tables as which an answer can be read, the likeliest first.

    Args:
        answer: what was given, or is right.
        names: what a column may be called, see `names_for`; other words head one only if they look like it.
    """
    match answer:
        case str():
            yield from _texts(answer, names)
            yield ComparedTable((None,), [(answer.strip(),)], shape="scalar")
        case dict() if answer:
            yield from _of_object(answer)
        case [*items] if items and all(isinstance(one, dict) for one in items):
            yield _records(items)
        case [*items] if items and all(isinstance(one, list) for one in items):
            if len(width := {len(one) for one in items}) == 1:
                rows = [tuple(map(_cell, one)) for one in items]
                yield ComparedTable((None,) * width.pop(), rows)
                if _is_header(rows[0], rows[1:], names):
                    yield ComparedTable(tuple(map(str, rows[0])), rows[1:])
        case [*items]:
            yield ComparedTable((None,), [(_cell(one),) for one in items], shape="list")
        case _:
            yield ComparedTable((None,), [(answer,)], shape="scalar")


def names_for(question: str, columns: Iterable[object] = ()) -> frozenset[str]:
    """Returns what columns of an answer may be called: as what is asked for, or as those of the right answer."""
    asked = [found[1] for found in _ASKED_FOR.finditer(question)]
    return frozenset(_singular(str(name)) for name in (*asked, *columns) if name) | _GENERIC


_ASKED_FOR = re.compile(
    r"\b(?:which|what|list|name|give|how many)\s+(?:(?:are|is|were|was|all|the)\s+)*([a-z][\w-]*)", re.IGNORECASE
)
_GENERIC = frozenset({"id", "name", "value", "item", "result", "answer", "count", "number", "total"})
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[ _-][a-z0-9]+){0,3}")


def _singular(name: str) -> str:
    return re.sub(r"(?<=\w\w)s$", "", name.strip().casefold())


def _is_header(first: Sequence[Any], rows: Sequence[Sequence[Any]], names: frozenset[str]) -> bool:
    """Returns whether the first row names columns: text over numbers, a known name, or small letters over others."""
    if not rows or any(_is_no_name(cell) for cell in first) or _TURNED.search(" ".join(map(str, first))):
        return False
    columns = zip(first, *rows, strict=True)
    if any(isinstance(cell, str) and not re.search(r"\d", cell) and _are_numbers(column) for cell, *column in columns):
        return True
    words = [_singular(re.split(r"[_\s]", cell)[-1]) for cell in first if isinstance(cell, str)]
    if any(_singular(str(cell)) in names for cell in first) or any(word in names for word in words):
        return True
    return len(first) > 1 and _are_names(first) and not any(map(_are_names, rows))


def _are_numbers(column: Sequence[Any]) -> bool:
    return bool(column) and all(isinstance(cell, int | float) for cell in column)


def _are_names(cells: Sequence[Any]) -> bool:
    return all(isinstance(cell, str) and _NAME.fullmatch(cell) for cell in cells)


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


def _texts(text: str, names: frozenset[str]) -> Iterator[ComparedTable]:
    """Yields what a text holds that is JSON, or a table of Markdown or CSV, or a list."""
    section = answer_section(text)
    fenced = _FENCE.findall(text)
    for part in dict.fromkeys([*fenced, *([section.text] if section.marked else []), text]):
        part = part.strip()
        if len(part) > MOST_CHARS:
            continue
        try:
            read = json.loads(part)
        except (ValueError, RecursionError):
            yield from _written(part, names)
            continue
        if not isinstance(read, str):
            yield from forms(read, names)


def _written(text: str, names: frozenset[str]) -> Iterator[ComparedTable]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = lines[1:] if len(lines) > 1 and _is_title(lines[0]) else lines
    barred = [line for line in lines if "|" in line]
    if len(barred) >= 2:
        told = [line.strip("|").split("|") for line in barred if not _RULE.match(line)]
        rows = [tuple(map(plain_cell, line)) for line in told]
        is_ruled = len(barred) > 1 and _RULE.match(barred[1]) is not None
        yield from _table(rows, names, is_ruled=is_ruled)
    for separator in (",", ";", "\t"):
        if len(lines) >= 2 and all(separator in line for line in lines):
            read = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator)
            yield from _table([tuple(map(plain_cell, row)) for row in read], names)
    bullets = [re.sub(r"^(?:[-*•·+]|\(?\d{1,3}[.)])\s+", "", line) for line in lines]
    if len(lines) >= 2:
        yield _list(bullets)
        if len(bullets) > 2 and _is_header((bullets[0],), [(plain_cell(one),) for one in bullets[1:]], names):
            yield _list(bullets[1:])
        yield from _pairs(bullets)
    elif lines:
        yield from _one_line(with_and(lines[0].rstrip(".")))


def _one_line(line: str) -> Iterator[ComparedTable]:
    """Yields the items of a line as a list and as pairs, and those after its first words: `They are A and B`."""
    after = _LISTED_AFTER.match(line)
    is_after = after is not None and _TURNED.search(after[0]) is None
    for part in (line, line[after.end() :]) if after is not None and is_after else (line,):
        items = re.split(r"[,;]\s+(?:and\s+)?|\s+and\s+", part)
        if _NUMBERS.fullmatch(part):
            items = re.split(r"[,;\s]+", part)
        if len(items) > 1:
            yield _list(items)
            yield from _pairs(items)


_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:(?:,(?!\d{3}(?!\d))|;|\s)\s*-?\d+(?:\.\d+)?)+")
"""Numbers in a row, of which no comma can be a separator of thousands."""


def with_and(text: str) -> str:
    """Returns a text with `and` for `&`."""
    return re.sub(r"\s&\s", " and ", text)


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


def _table(
    rows: Sequence[tuple[Any, ...]], names: frozenset[str], *, is_ruled: bool = False
) -> Iterator[ComparedTable]:
    """Yields rows of text as a table with a header, if the first can be one or is ruled off, and as one without."""
    if rows and len({len(row) for row in rows}) == 1:
        if len(rows) > 1 and (is_ruled or _is_header(rows[0], rows[1:], names)):
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
