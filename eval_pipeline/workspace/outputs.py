"""Where a stage puts what it makes: every table appears as a whole when the stage has ended well, or none does."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from eval_pipeline.store.record import TableWriter
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.columns import GROUP, Columns, by_name
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import T


class Outputs:
    """The tables that a stage writes; see `open_outputs`.

    Attributes:
        made_from: what their files will say that they were made from.
        kept: what was made of tables, for the stages that follow.
    """

    def __init__(self, inputs: Inputs, tables: Sequence[Table], made_from: Mapping[str, str], stack: ExitStack) -> None:
        self._inputs, self._tables, self._stack = inputs, tables, stack
        self.made_from = dict(made_from)
        self._writers: dict[str, TableWriter] = {}
        self._rows: list[Columns[Any]] = []
        self.kept: list[tuple[Table, Any]] = []

    def writer(self, table: Table) -> TableWriter:
        """Writes a table, columns at a time."""
        self.open()
        return self._writers[table.name]

    def open(self) -> None:
        """Begins the file of every table, where that has not been done."""
        for table in () if self._writers else self._tables:
            opened = self._inputs.record.writer(table, self._inputs.key(table), self.made_from, self._inputs.run.run_id)
            self._writers[table.name] = self._stack.enter_context(opened)

    def rows(self, table: Table, group: int = GROUP) -> Columns[Mapping[str, Any]]:
        """Writes a table, rows at a time; what is left is written when the stage ends."""
        columns = Columns(self.writer(table), by_name, group)
        self._rows.append(columns)
        return columns

    def unlike(self, name: str, text: str) -> None:
        """Says what keeps these tables from being what was wanted, so that the next run makes them again.

        To be said before anything is written.
        """
        assert not self._writers, "its files have been begun"
        self.made_from[name] = text

    def keep(self, table: Table, made: Any) -> None:
        """Saves the next stages, in the same process, reading a table back; see `Inputs.remembered`."""
        self.kept.append((table, made))

    def flush(self) -> None:
        """Writes rows that wait."""
        for columns in self._rows:
            columns.flush()


@contextmanager
def open_outputs(inputs: Inputs, tables: Sequence[Table], made_from: Mapping[str, str]) -> Iterator[Outputs]:
    """The tables of a stage, each with a file when the block ends, the first one last.

    With an exception nothing has changed.
    """
    with ExitStack() as stack:
        outputs = Outputs(inputs, tables, made_from, stack)
        yield outputs
        outputs.open()
        outputs.flush()
    for table, made in outputs.kept:
        inputs.remembered(table, partial(_itself, made))


def _itself(made: T) -> T:
    return made
