"""The table `label_confusion` as a matrix: a row for each expected label, a column for each given one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.reports.figure_table import Column, FigureTable
from eval_pipeline.store.tables import LABEL_CONFUSION

NO_LABEL = "no label"
CAPTION = "Labels: expected (rows) and given (columns), in turns"
MOST_LABELS = 30
"""Matrices of more labels are not drawn; the rows of the table are."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """A matrix of turns.

    Attributes:
        given: labels of the columns: first the expected labels in their order, last `NO_LABEL` if some answers gave no
            label.
        rows: for each expected label: the label, the number of turns for each of `given`, and their total.
    """

    given: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...], int], ...]


def confusion_of(rows: Sequence[Mapping[str, Any]]) -> Confusion | None:
    """Returns the matrix of the table's rows; None without labels, or with more than `MOST_LABELS`."""
    expected = sorted({row["expected_label"] for row in rows})
    others = sorted({row["answer_label"] for row in rows} - {None, *expected})
    given: list[str | None] = [*expected, *others]
    if any(row["answer_label"] is None for row in rows):
        given.append(None)
    if not rows or len(given) > MOST_LABELS:
        return None
    turns = {(row["expected_label"], row["answer_label"]): row["turns"] for row in rows}
    counts = {label: tuple(turns.get((label, said), 0) for said in given) for label in expected}
    names = tuple(NO_LABEL if label is None else label for label in given)
    return Confusion(names, tuple((label, counts[label], sum(counts[label])) for label in expected))


def matrix_of(table: FigureTable) -> FigureTable | None:
    """Returns the matrix of a table of further figures; None for other tables, or if there is no matrix."""
    found = confusion_of(table.rows) if table.caption.startswith(f"{LABEL_CONFUSION.name}:") else None
    if found is None:
        return None
    columns = [Column("expected", "expected"), *(Column(name, f"given {name}", "tokens") for name in found.given)]
    rows = [
        {"expected": label, "total": total}
        | {f"given {n}": c or None for n, c in zip(found.given, counts, strict=True)}
        for label, counts, total in found.rows
    ]
    return FigureTable(CAPTION, [*columns, Column("turns", "total", "tokens")], rows, [])
