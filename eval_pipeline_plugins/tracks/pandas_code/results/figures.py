"""Compares charts by what they show (`sandbox/inside/figures.py`): data, and the words that the expected one has."""

from collections.abc import Hashable, Sequence

from eval_pipeline_plugins.tracks.pandas_code.results.result_table import ResultColumn, ResultTable

FIGURE = "figure"
_WORDS = frozenset({"title", "x label", "y label", "text", "x scale", "y scale", "x limits", "y limits"})
_Place = tuple[Hashable, Hashable]


def comparable_figures(got: ResultTable, wanted: ResultTable) -> tuple[ResultTable, ResultTable]:
    """Returns two charts without what does not count.

    A title, label, text, scale or limit counts if the expected chart has one there, and so do the names in a legend;
    capitals and spaces in words do not count.
    """
    rows = [list(zip(*(column.cells for column in one.columns), strict=True)) for one in (got, wanted)]
    names = [str(column.name) for column in wanted.columns]
    panel, part, series = (names.index(name) for name in ("panel", "part", "series"))
    there = {(row[panel], row[part]) for row in rows[1]}
    named = {(row[panel], row[part]) for row in rows[1] if row[series] is not None}

    def counted(row: Sequence[Hashable]) -> list[Hashable]:
        told = row[series]
        keeps = (row[panel], row[part]) in named
        words = " ".join(told.casefold().split()) if isinstance(told, str) else told
        return [*row[:series], words if keeps else None, *row[series + 1 :]]

    kept = [
        [counted(row) for row in one if row[part] not in _WORDS or (row[panel], row[part]) in there] for one in rows
    ]
    return _with(got, kept[0]), _with(wanted, kept[1])


def _with(table: ResultTable, rows: Sequence[Sequence[Hashable]]) -> ResultTable:
    columns = tuple(
        ResultColumn(column.name, tuple(row[place] for row in rows)) for place, column in enumerate(table.columns)
    )
    return ResultTable(table.kind, (), columns)
