"""The tables that are compared."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

Shape = Literal["table", "list", "row", "scalar"]
Row = tuple[Any, ...]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """A table with its rows.

    Attributes:
        columns: names; None for a column without one.
        rows: as wide as `columns`, in the order in which they came.
        ties: of an expected table whose order of rows means something: for each row the number of its group, in
            ascending order; the order asked for does not tell rows of one group apart. None if it means nothing.
        shape: what the rows stand for; a list has one column, a row has one row, a scalar both.
    """

    columns: tuple[Hashable, ...]
    rows: Sequence[Row]
    ties: tuple[int, ...] | None = None
    shape: Shape = "table"

    @classmethod
    def from_columns(
        cls,
        columns: Sequence[Hashable],
        cells: Sequence[Sequence[Any]],
        ties: tuple[int, ...] | None = None,
        shape: Shape = "table",
    ) -> "ComparedTable":
        """Makes a table from the cells of each column.

        Raises:
            ValueError: the columns are of different lengths.
        """
        return cls(tuple(columns), list(zip(*cells, strict=True)), ties, shape)

    @classmethod
    def from_arrow(cls, table: "pa.Table", ties: tuple[int, ...] | None = None) -> "ComparedTable":
        """Makes a table from one of Arrow."""
        return cls.from_columns(table.column_names, [column.to_pylist() for column in table.columns], ties)

    def cells(self) -> list[Row]:
        """Returns the cells column by column."""
        return list(zip(*self.rows, strict=True)) if self.rows else [()] * len(self.columns)

    def transposed(self) -> "ComparedTable":
        """Returns a row as a column, or a column as a row; the names go, and so does the order of rows."""
        return ComparedTable((None,) * len(self.rows), self.cells(), None, self.shape)
