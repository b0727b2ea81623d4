"""Compares the files of the record with the digests in their footers, and the store with the record."""

from collections.abc import Callable, Iterator

from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import EvalError
from eval_pipeline.store.keys import EARLIER
from eval_pipeline.store.published.query import connect_read_only
from eval_pipeline.store.record import Header, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import STATISTICS, all_tables
from eval_pipeline.workspace.noting.commands import left_behind
from eval_pipeline.workspace.tabled.track_tables import further_tables
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


def published_keys(workspace: Workspace) -> set[RecordKey]:
    """Returns the keys of the evaluations in the store."""
    if not workspace.home.store.exists():
        return set()
    with connect_read_only(workspace.home.store) as store:
        own = f"regexp_extract(path, '/{EARLIER}([^/]+)/', 1)"
        query = f"SELECT DISTINCT suite, model_version, eval_date, {own} FROM meta.files WHERE eval_date IS NOT NULL"
        return {RecordKey(*row) for row in store.execute(query).fetchall()}


def only_in_one(workspace: Workspace) -> tuple[list[RecordKey], list[RecordKey]]:
    """Returns the evaluations in the store that the record lacks, and the whole ones on record that the store lacks.

    What a living command is going to publish is not among the latter.
    """
    published = published_keys(workspace)
    recorded = {key for _, key in _files(workspace) if key.eval_date}
    with left_behind(workspace.home) as (_, living):
        awaited = {RecordKey.of(place) for noted in living for place in noted.unpublished}
    whole = {key for earlier in (False, True) for key in workspace.record.partitions(STATISTICS, earlier=earlier)}
    missing = whole - published - awaited
    ordered = [sorted(keys, key=RecordKey.order) for keys in (published - recorded, missing)]
    return ordered[0], [key for key in ordered[1] if _is_whole(workspace, key)]


def _is_whole(workspace: Workspace, key: RecordKey) -> bool:
    try:
        return gate(workspace)(key) is None
    except EvalError:  # it is damaged, which is told elsewhere
        return False


def _files(workspace: Workspace) -> Iterator[tuple[Table, RecordKey]]:
    for table in all_tables(further_tables()):
        for source in table.record_tables():
            for earlier in (False, True):
                for key in workspace.record.partitions(source, earlier=earlier):
                    yield source, key
