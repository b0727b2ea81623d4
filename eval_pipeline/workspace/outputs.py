"""The outputs of a stage: its tables appear together when the stage ends normally, or not at all."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from eval_pipeline.store.record import TableWriter
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.tabled.columns import GROUP, CollectedColumns, by_name
from eval_pipeline.workspace.workspace import T


class Outputs:
    """The tables that a stage writes; see `open_outputs`.

    Attributes:
        made_from: hashes of the inputs, to be written into the files.
        kept: values made from tables, for the following stages.
    """

    def __init__(self, inputs: Inputs, tables: Sequence[Table], made_from: Mapping[str, str], stack: ExitStack) -> None:
        self._inputs, self._tables, self._stack = inputs, tables, stack
        self.made_from = dict(made_from)
        self._writers: dict[str, TableWriter] = {}
        self._rows: list[CollectedColumns[Any]] = []
        self.kept: list[tuple[Sequence[Table], Any]] = []

    def writer(self, table: Table) -> TableWriter:
        """Returns the writer of a table, which takes columns."""
        self.open()
        return self._writers[table.name]

    def open(self) -> None:
        """Starts the file of every table, unless done already."""
        for table in () if self._writers else self._tables:
            opened = self._inputs.record.writer(table, self._inputs.key(table), self.made_from, self._inputs.run.run_id)
            self._writers[table.name] = self._stack.enter_context(opened)

    def rows(self, table: Table, group: int = GROUP) -> CollectedColumns[Mapping[str, Any]]:
        """Returns a writer that takes rows; the remaining rows are written when the stage ends."""
        columns = CollectedColumns(self.writer(table), by_name, group)
        self._rows.append(columns)
        return columns

    def unlike(self, name: str, text: str) -> None:
        """Records why these tables are not final, so that the next run makes them again.

        It may be called until the stage ends: files are given this last.
        """
        self.made_from[name] = text

    def keep(self, tables: Sequence[Table], made: Any) -> None:
        """Passes a value to the next stages in this process, to save reading the tables; see `Inputs.remembered`."""
        self.kept.append((tables, made))

    def flush(self) -> None:
        """Writes the waiting rows."""
        for columns in self._rows:
            columns.flush()


@contextmanager
def open_outputs(inputs: Inputs, tables: Sequence[Table], made_from: Mapping[str, str]) -> Iterator[Outputs]:
    """Opens the tables of a stage; their files appear when the block ends, the main table's last.

    If the block raises, nothing changes.
    """
    with ExitStack() as stack:
        outputs = Outputs(inputs, tables, made_from, stack)
        yield outputs
        outputs.open()
        outputs.flush()
    for kept, made in outputs.kept:
        inputs.remembered(kept, partial(_itself, made))


def _itself(made: T) -> T:
    return made
