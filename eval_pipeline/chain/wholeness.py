"""Checks that the files of a partition were made from each other; only consistent partitions are published.

A run that was killed leaves some of a partition's files new and others old. The files' footers record what they were
made from.
"""

from collections.abc import Iterator

from eval_pipeline.analysis.aggregates import all_aggregates
from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.chain.stage import Chain, Stage
from eval_pipeline.core.model import Partition
from eval_pipeline.stages.attempts.asked import is_resumed
from eval_pipeline.stages.checks.verdicts import CheckVerdict, check_generations_scored
from eval_pipeline.store.listing import Refusal
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES, GENERATIONS, MEASURED_EVIDENCE
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.registry import load_track, manifests
from eval_pipeline.workspace.evaluations import id_in_place
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import COMPLETE, INCOMPLETE, run_rows
from eval_pipeline.workspace.tabled.track_tables import turns_table
from eval_pipeline.workspace.workspace import Workspace


def gate(workspace: Workspace) -> Refusal:
    """Returns a function that says why a partition must not be published, or None if it may be."""

    def refuse(key: RecordKey) -> str | None:
        return why_not_whole(workspace, key.partition())

    return refuse


def why_not_whole(workspace: Workspace, partition: Partition) -> str | None:
    """Returns why a partition must not be published, to complete a sentence about it; None if it may be.

    Its tables have to exist and to be made from the current versions of each other, and its blocking checks have to
    pass.

    Raises:
        StoreError: one of its files is damaged.
    """
    inputs = Inputs.of(workspace, partition)
    if partition.evaluation and partition.evaluation == id_in_place(workspace, partition):
        return "is the newest of its date"
    track = _track_of(inputs)
    if track is None:
        return "has no table of its track yet"
    chain = [stage for stage in chain_of(track) if stage.writes and not stage.whole_suite]
    written = [table for stage in chain for table in stage.writes]
    missing = [t.name for t in written if inputs.header(t) is None and not _came_later(inputs, t.name)]
    if missing:
        return f"has no {', '.join(missing)} yet"
    for stage in chain:
        if odd := _odd(inputs, stage):
            return f"has {odd[0]} that were not made from its {odd[1]} as they are now"
    for verdict in _verdicts(inputs, chain):
        if not verdict.passed:
            return f"does not pass its checks: {verdict.text}"
    return None


def _track_of(inputs: Inputs) -> Track | None:
    """Finds the track by the table of turns that the partition has, because its suite may no longer exist."""
    source = inputs.workspace.suites.get(inputs.suite)
    if source and source.header:
        track = source.track()
        return track if inputs.header(turns_table(track)) is not None else None
    named = (one.name for one in manifests() if inputs.header(turns_table(one)) is not None)
    return next(map(load_track, named), None)


def _came_later(inputs: Inputs, name: str) -> bool:
    """Whether the table did not exist yet when the evaluation was completed."""
    rows = run_rows(inputs.workspace, inputs.place, ["status", "evaluation_id"])
    ids = {row["evaluation_id"] for row in rows}
    own = id_in_place(inputs.workspace, inputs.place)
    # Runs of before do not tell which evaluation of the date they made.
    statuses = {row["status"] for row in rows if row["evaluation_id"] == (own if own in ids else None)}
    made = {table.name for aggregate in all_aggregates().values() for table in aggregate.tables}
    return name in {*made, MEASURED_EVIDENCE.name} and bool(statuses & {COMPLETE, INCOMPLETE})


def _odd(inputs: Inputs, stage: Stage) -> tuple[str, str] | None:
    """Returns a table of the stage, and a newer table that it was not made from; None if all fit together.

    The tables of one stage are made together. A source that a footer does not name was not read by the older code.
    """
    headers = [(table.name, header) for table in stage.writes if (header := inputs.header(table))]
    for name, header in headers:
        for source in stage.reads:
            found = inputs.header(source) if source.key == "partition" else None
            if found and header.made_from.get(source.name, found.content_hash) != found.content_hash:
                return name, source.name
        if header.made_from != headers[0][1].made_from:
            return name, headers[0][0]
    return None


def _verdicts(inputs: Inputs, chain: Chain) -> Iterator[CheckVerdict]:
    """Yields the results of the blocking checks.

    If the plan is no longer known, checks only that every answer is scored.
    """
    workspace, generations = inputs.workspace, inputs.header(GENERATIONS)
    assert generations is not None
    source, cases = workspace.suites.get(inputs.suite), inputs.header(CASES)
    known = source is not None and source.header is not None and inputs.place.model_version in workspace.model_versions
    known = known and is_resumed(inputs)
    if known and cases is not None and generations.made_from.get("cases") == cases.content_hash:
        for stage in chain:
            yield from (check.verdict(inputs) for check in stage.checks if check.blocking)
    else:
        yield check_generations_scored(inputs)
