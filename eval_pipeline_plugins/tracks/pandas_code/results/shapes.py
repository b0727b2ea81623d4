"""The tables that a result can stand for: dicts, lists, a single row, and a table with a column for each label."""

from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import permutations
from typing import Any

from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.pandas_code.results.result_table import ResultColumn, ResultTable

_WIDTH = 3
"""Two labels and a value."""


def as_tables(result: Json, wanted: ResultTable, spoken: Collection[str] = ()) -> Iterator[Json]:
    """Yields a result, and the tables that dicts, lists and a single row can stand for beside the expected one.

    Args:
        result: in the sandbox's tagged JSON.
        wanted: the expected result.
        spoken: columns of the given tables that the question speaks of; only under their names a row is a list, as of
            others nobody can tell whether they belong to the values: a list has none.
    """
    yield result
    rows = wanted.rows
    is_row = isinstance(result, dict) and result.get("kind") == "frame" and result.get("rows") == 1
    if is_row and wanted.kind == "list" and all(column["name"] in spoken for column in result["columns"]):
        yield {"kind": "value", "value": {"t": "list", "v": [column["values"][0] for column in result["columns"]]}}
    told = result.get("value") if isinstance(result, dict) and result.get("kind") == "value" else None
    match told:
        case {"t": "dict", "v": list() as pairs} if pairs:
            yield from _of_dict([pair for pair in pairs if isinstance(pair, list) and len(pair) == 2], rows)
        case {"t": "list" | "tuple", "v": list() as items} if items:
            if all(_tag(item) == "dict" for item in items):
                yield _records([_pairs(item) for item in items])
            widths = {len(item["v"]) for item in items if _tag(item) in ("list", "tuple")}
            if len(widths) == 1 and all(_tag(item) in ("list", "tuple") for item in items):
                yield _frame([(None, [item["v"][place] for item in items]) for place in range(*widths)])
    if isinstance(result, dict) and result.get("kind") == "series" and rows == 1:
        labels = result["index"][0]["values"] if len(result["index"]) == 1 else []
        yield _frame([(name, [cell]) for name, cell in zip(labels, result["values"]["values"], strict=False)])


def _of_dict(pairs: Sequence[Sequence[Json]], rows: int) -> Iterator[Json]:
    kinds = {_tag(item) for _, item in pairs}
    if kinds == {"dict"}:
        inner = list(dict.fromkeys(_text(key) for _, item in pairs for key, _ in _pairs(item)))
        keys = {_text(key): key for _, item in pairs for key, _ in _pairs(item)}
        by_key = [(outer, {_text(key): cell for key, cell in _pairs(item)}) for outer, item in pairs]
        labels = ("", [keys[name] for name in inner])
        yield _frame([(outer, [cells.get(name) for name in inner]) for outer, cells in by_key], labels)
        labels = ("", [outer for outer, _ in by_key])
        yield _frame([(keys[name], [cells.get(name) for _, cells in by_key]) for name in inner], labels)
    elif kinds <= {"list", "tuple"} and len({len(item["v"]) for _, item in pairs}) == 1:
        yield _frame([(key, item["v"]) for key, item in pairs])
    elif rows == 1:
        yield _frame([(key, [cell]) for key, cell in pairs])


def _records(rows: Sequence[Sequence[Sequence[Json]]]) -> Json:
    keys = {_text(key): key for row in rows for key, _ in row}
    cells = [{_text(key): cell for key, cell in row} for row in rows]
    return _frame([(key, [row.get(name) for row in cells]) for name, key in keys.items()])


def _frame(columns: Sequence[tuple[Json, list[Json]]], labels: tuple[str, list[Json]] | None = None) -> Json:
    rows = len(columns[0][1]) if columns else 0
    index = {"name": None, "dtype": "object", "values": list(range(rows)) if labels is None else labels[1]}
    told = [{"name": name, "dtype": "object", "values": cells} for name, cells in columns]
    return {"kind": "frame", "columns": told, "index": [index], "rows": rows}


def _tag(told: Json) -> Any:
    return told.get("t") if isinstance(told, dict) and isinstance(told.get("v"), list) else None


def _pairs(told: Json) -> list[list[Json]]:
    return [pair for pair in told["v"] if isinstance(pair, list) and len(pair) == 2]


def _text(key: Json) -> str:
    return f"{type(key).__name__} {key}"


def as_long(table: ResultTable, expected: ResultTable) -> ResultTable | None:
    """Returns a table with one row for each cell of a wide one; None if that cannot be the expected table.

    Wide are those of `crosstab` and `unstack`, and nested dicts.
    Labels must be those of the expected table. A cell that is missing is no row where the expected table has none: it
    only says that there is nothing. So does a 0 among whole numbers, such as counts; a mean of 0 says something else.

    Args:
        table: labels in its index, or in its first column, and as names of columns.
        expected: two columns of labels and one of values, in any order.
    """
    wanted = [*(level for level in expected.index if level.labels), *expected.columns]
    labels, columns = [level for level in table.index if level.labels], list(table.columns)
    if not labels:
        labels, columns = columns[:1], columns[1:]
    if len(wanted) != _WIDTH or len(labels) != 1 or not columns:
        return None
    names = {column.name for column in columns}
    for outer, inner, values in permutations(wanted):
        if names == {*inner.cells} and {*labels[0].cells} == {*outer.cells}:
            known = {*zip(outer.cells, inner.cells, strict=True)}
            nothing = (None, 0) if all(type(cell) is int and cell >= 0 for cell in values.cells) else (None,)
            return _long(labels[0], columns, known, nothing) if len(names) == len(columns) else None
    return None


def _long(
    labels: ResultColumn,
    columns: list[ResultColumn],
    known: set[tuple[Hashable, Hashable]],
    nothing: tuple[int | None, ...],
) -> ResultTable | None:
    rows = [
        (label, column.name, column.cells[place])
        for place, label in enumerate(labels.cells)
        for column in columns
        if (label, column.name) in known or column.cells[place] not in nothing
    ]
    if not rows:
        return None
    first, second, third = zip(*rows, strict=True)
    return ResultTable(
        "frame", (), (ResultColumn(labels.name, first), *(ResultColumn(None, c) for c in (second, third)))
    )
