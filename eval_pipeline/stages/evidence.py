"""Evidence: what comparing the last attempt of each turn with the gold shows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice

from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Evidence, Partition
from eval_pipeline.stages.attempts.rows import attempted_turns
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES, EVIDENCE, GENERATIONS, RECOVERY_ATTEMPTS
from eval_pipeline.tracks.capabilities import gather_all
from eval_pipeline.workspace.columns import Columns, by_name
from eval_pipeline.workspace.lineage import content_hashes
from eval_pipeline.workspace.progress import SILENT, counted, label_of
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace

VERSION = "1"
_AT_ONCE = 32
"""Turns that a track is given together."""


def gather_evidence(workspace: Workspace, partition: Partition, progress: Progress = SILENT) -> StageResult:
    """Compares every turn's last attempt with its gold and records what that shows."""
    track, record = workspace.track(partition.suite), workspace.record
    key = RecordKey.of(partition)
    made_from = _made_from(workspace, partition)
    reused = is_current(workspace, partition)
    if not reused:
        with record.writer(EVIDENCE, key, made_from) as writer:
            rows = Columns(writer, by_name)
            found: dict[tuple[str, int], Sequence[Evidence]] = {}
            generated = record.header(GENERATIONS, key)
            label, total = label_of(partition, "evidence"), generated.rows if generated else 0
            turns = counted(progress, label, attempted_turns(workspace, partition), total)
            while some := list(islice(turns, _AT_ONCE)):
                gathered = gather_all(track, [(case, turn, made[-1][1]) for case, turn, _, made in some])
                for (case, turn, sample, _), pieces in zip(some, gathered, strict=True):
                    place = {"turn_id": turn.id, "case_id": case.id, "turn_index": turn.index, "sample": sample}
                    found[turn.id, sample] = pieces
                    for evidence in pieces:
                        said = {"kind": evidence.kind, "verdict": evidence.verdict, "value": evidence.value}
                        rows.add(place | said | {"details": json_text(dict(evidence.details))})
            rows.flush()
        # Saves the next stage, in the same process, reading it back.
        workspace.remembered(EVIDENCE.name, content_hashes(record, partition, (EVIDENCE,)), lambda: found)
    header = record.header(EVIDENCE, key)
    assert header is not None
    return StageResult(header.rows, header.content_hash, reused, {"rows": header.rows})


def load_evidence(workspace: Workspace, partition: Partition) -> Mapping[tuple[str, int], Sequence[Evidence]]:
    """The evidence of a partition by turn and sample."""

    def read() -> Mapping[tuple[str, int], Sequence[Evidence]]:
        found: defaultdict[tuple[str, int], list[Evidence]] = defaultdict(list)
        columns = ["turn_id", "sample", "kind", "verdict", "value", "details"]
        for row in workspace.record.read(EVIDENCE, RecordKey.of(partition), columns).to_pylist():
            details = parse_json(row.pop("details"))
            found[row["turn_id"], row["sample"]].append(Evidence(**row, details=details))
        return found

    return workspace.remembered(EVIDENCE.name, content_hashes(workspace.record, partition, (EVIDENCE,)), read)


def is_current(workspace: Workspace, partition: Partition) -> bool:
    """Whether the record holds what `gather_evidence` would make."""
    return workspace.record.is_current(EVIDENCE, RecordKey.of(partition), _made_from(workspace, partition))


def _made_from(workspace: Workspace, partition: Partition) -> dict[str, str]:
    made_from = content_hashes(workspace.record, partition, (CASES, GENERATIONS, RECOVERY_ATTEMPTS))
    return made_from | {"evidence": workspace.track(partition.suite).versions["evidence"], "stage": VERSION}
