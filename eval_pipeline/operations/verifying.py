"""Compares the files of the record with the digests in their footers."""

from collections.abc import Callable, Iterator

from eval_pipeline.core.errors import EvalError
from eval_pipeline.store.record import Header, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import all_tables
from eval_pipeline.workspace.track_tables import further_tables
from eval_pipeline.workspace.workspace import Workspace


def unreadable_files(
    workspace: Workspace, before: Callable[[int], None] = lambda _: None
) -> Iterator[tuple[Table, RecordKey, EvalError]]:
    """Yields the damaged files of the record and those of a newer version; `before` receives the size of each file."""
    for source, key, found in verified_files(workspace, before):
        if isinstance(found, EvalError):
            yield source, key, found


def verified_files(
    workspace: Workspace, before: Callable[[int], None] = lambda _: None, *, by_key: bool = False
) -> Iterator[tuple[Table, RecordKey, Header | EvalError]]:
    """Yields each file of the record with its header, or with what is wrong with it.

    Args:
        workspace: the workspace.
        before: receives the size of each file before it is read.
        by_key: all tables of a key after one another, those of suites before those of their evaluations; otherwise all
            keys of a table.
    """
    files = sorted(_files(workspace), key=lambda one: one[1].order()) if by_key else _files(workspace)
    for source, key in files:
        try:
            status = workspace.record.status(source, key)
            before(status[0] if status else 0)
            found: Header | EvalError = workspace.record.examine(source, key)
        except EvalError as error:
            found = error
        yield source, key, found


def _files(workspace: Workspace) -> Iterator[tuple[Table, RecordKey]]:
    for table in all_tables(further_tables()):
        for source in table.record_tables():
            for key in workspace.record.partitions(source):
                yield source, key
