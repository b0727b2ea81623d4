"""Whether what the record holds of a partition belongs together: only that is published.

A run that was killed leaves some of a partition's files new and some old. Their footers say what they were made from.
"""

from collections.abc import Iterator

from eval_pipeline.analysis.aggregates import all_aggregates
from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.chain.stage import Chain, Stage
from eval_pipeline.core.model import Partition
from eval_pipeline.stages.checks.verdicts import Verdict, check_generations_scored
from eval_pipeline.store.listing import Refusal
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES, GENERATIONS
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.registry import all_tracks
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import COMPLETE, INCOMPLETE, run_rows
from eval_pipeline.workspace.track_tables import turns_table
from eval_pipeline.workspace.workspace import Workspace


def gate(workspace: Workspace) -> Refusal:
    """Why a partition must not be published; None where it may."""

    def refuse(key: RecordKey) -> str | None:
        assert key.suite and key.model_version and key.eval_date
        return why_not_whole(workspace, Partition(key.suite, key.model_version, key.eval_date))

    return refuse


def why_not_whole(workspace: Workspace, partition: Partition) -> str | None:
    """Why a partition must not be published, as the rest of a sentence about it; None where it may.

    Its tables have to be there and made from each other as they are now, and its blocking checks have to pass.

    Raises:
        StoreError: a file of it is damaged.
    """
    inputs = Inputs.of(workspace, partition)
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
    """The track whose table of turns the partition has: its suite, which says which metrics it has, may be gone."""
    source = inputs.workspace.suites.get(inputs.suite)
    for track in [source.track()] if source and source.header else all_tracks():
        if inputs.header(turns_table(track)) is not None:
            return track
    return None


def _came_later(inputs: Inputs, name: str) -> bool:
    """Whether the table is an aggregate that there was not yet when the partition was evaluated to its end."""
    statuses = {row["status"] for row in run_rows(inputs.workspace, inputs.place, ["status"])}
    return name in all_aggregates() and bool(statuses & {COMPLETE, INCOMPLETE})


def _odd(inputs: Inputs, stage: Stage) -> tuple[str, str] | None:
    """A table of the stage, and one that it was not made from as it is now; None where all fit.

    The tables of one stage are made together. A source that a footer does not name is one that older code did not read.
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


def _verdicts(inputs: Inputs, chain: Chain) -> Iterator[Verdict]:
    """The blocking checks; where nobody can tell any more what was planned, whether what was asked is scored."""
    workspace, generations = inputs.workspace, inputs.header(GENERATIONS)
    assert generations is not None
    source, cases = workspace.suites.get(inputs.suite), inputs.header(CASES)
    known = source is not None and source.header is not None and inputs.place.model_version in workspace.model_versions
    if known and cases is not None and generations.made_from.get("cases") == cases.content_hash:
        for stage in chain:
            yield from (check.verdict(inputs) for check in stage.checks if check.blocking)
    else:
        yield check_generations_scored(inputs)
