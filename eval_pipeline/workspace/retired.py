"""Retired model versions: recorded but no longer in any file. They leave comparisons but can still be queried."""

from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import MODEL_VERSIONS
from eval_pipeline.workspace.workspace import RETIRED, Workspace


def note_retired(workspace: Workspace) -> list[RecordKey]:
    """Updates in the record whether each model version is retired; returns the keys of those that have changed.

    Raises:
        StoreError: the record cannot be read or written.
    """
    changed = []
    for key in workspace.record.partitions(MODEL_VERSIONS):
        header = workspace.record.header(MODEL_VERSIONS, key)
        assert key.model_version
        retired = workspace.is_retired(key.model_version)
        if header is None or retired == (RETIRED in header.made_from):
            continue
        (row,) = workspace.record.read(MODEL_VERSIONS, key).to_pylist()
        columns = {column.name: [row[column.name]] for column in MODEL_VERSIONS.columns} | {RETIRED: [retired]}
        made_from = {name: text for name, text in header.made_from.items() if name != RETIRED}
        with workspace.record.writer(MODEL_VERSIONS, key, made_from | ({RETIRED: "true"} if retired else {})) as writer:
            writer.write(columns)
        changed.append(key)
    return changed
