"""Whether what the record holds of a partition belongs together: only that is published.

A run that was killed leaves some of a partition's files new and some old. Their footers say what they were made from.
"""

from collections.abc import Iterator, Mapping, Sequence

from eval_pipeline.analysis.aggregates import all_aggregates
from eval_pipeline.core.model import Partition
from eval_pipeline.stages.checks.verdicts import BLOCKING, Verdict, check_generations_scored
from eval_pipeline.store.record import Header, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import (
    CASES,
    ERRORS,
    EVIDENCE,
    GENERATION_PROMPTS,
    GENERATIONS,
    JUDGEMENTS,
    METRIC_ERRORS,
    METRICS,
    RECOVERY_ATTEMPTS,
    RECOVERY_PROMPTS,
    TURN_RESULTS,
    VALIDATION,
)
from eval_pipeline.workspace.runs import COMPLETE, INCOMPLETE, run_rows
from eval_pipeline.workspace.track_tables import are_judged, track_tables, turns_table
from eval_pipeline.workspace.workspace import Workspace

Headers = Mapping[str, Header | None]
TWINS = {
    GENERATION_PROMPTS.name: GENERATIONS.name,
    VALIDATION.name: GENERATIONS.name,
    RECOVERY_PROMPTS.name: RECOVERY_ATTEMPTS.name,
}
"""Tables that a stage writes together with another one: both are made from the same."""


def why_not_whole(workspace: Workspace, partition: Partition) -> str | None:
    """Why a partition must not be published, as the rest of a sentence about it; None where it may.

    Its tables have to be there and made from each other as they are now, and its blocking checks have to pass.

    Raises:
        StoreError: a file of it is damaged.
    """
    record, key = workspace.record, RecordKey.of(partition)
    own = [table for table in _tables_of_track(workspace, partition) if key.fits(table)]
    own = [table for table in own if record.header(table, key) is not None]
    chain = dict(_chain(own))
    headers = {table.name: record.header(table, key) for table in chain}
    missing = [name for name in headers if headers[name] is None and not _came_later(workspace, partition, name)]
    if missing or not own:
        return f"has no {', '.join(missing) or 'table of its track'} yet"
    for table, sources in chain.items():
        if odd := _odd_source(headers, table, sources):
            return f"has {table.name} that were not made from its {odd} as they are now"
    for verdict in _verdicts(workspace, partition, headers):
        if not verdict.passed:
            return f"does not pass its checks: {verdict.text}"
    return None


def _tables_of_track(workspace: Workspace, partition: Partition) -> Sequence[Table]:
    """Those of the suite's track with the suite's metrics; of every track where nobody knows the suite any more."""
    source = workspace.suites.get(partition.suite)
    if source is None or source.header is None:
        return track_tables()
    track = source.track()
    return (turns_table(track), *track.turn_tables)


def _chain(own: Sequence[Table]) -> Iterator[tuple[Table, tuple[Table, ...]]]:
    """Each table of a partition with those that it is made from; `own` are those of the track."""
    asked, scored = (GENERATIONS, RECOVERY_ATTEMPTS), (TURN_RESULTS, *own, ERRORS, METRIC_ERRORS)
    yield GENERATIONS, ()
    yield from ((twin, (GENERATIONS,)) for twin in (GENERATION_PROMPTS, VALIDATION))
    yield RECOVERY_ATTEMPTS, (GENERATIONS,)
    yield RECOVERY_PROMPTS, (RECOVERY_ATTEMPTS,)
    yield EVIDENCE, asked
    judged = (JUDGEMENTS,) if are_judged(own) else ()
    yield from ((table, (*asked, EVIDENCE)) for table in judged)
    yield from ((table, (*asked, EVIDENCE, *judged)) for table in (METRICS, *scored))
    yield from ((found.table, (*scored, *found.reads)) for found in all_aggregates().values() if found.fits(own))


def _came_later(workspace: Workspace, partition: Partition, name: str) -> bool:
    """Whether the table is an aggregate that there was not yet when the partition was evaluated to its end."""
    statuses = {row["status"] for row in run_rows(workspace, partition, ["status"])}
    return name in all_aggregates() and bool(statuses & {COMPLETE, INCOMPLETE})


def _odd_source(headers: Headers, table: Table, sources: Sequence[Table]) -> str | None:
    """The first of the sources that the table was not made from as it is now.

    One that its footer does not name is one that older code did not read.
    """
    header = headers[table.name]
    for source in sources if header else ():
        found = headers[source.name]
        assert header and found  # only aggregates may be missing, and nothing is made from them
        if TWINS.get(table.name) == source.name:
            fits = header.made_from == found.made_from
        else:
            fits = header.made_from.get(source.name, found.content_hash) == found.content_hash
        if not fits:
            return source.name
    return None


def _verdicts(workspace: Workspace, partition: Partition, headers: Headers) -> Iterator[Verdict]:
    """The blocking checks; where nobody can tell any more what was planned, whether what was asked is scored."""
    generations = headers[GENERATIONS.name]
    assert generations is not None
    source = workspace.suites.get(partition.suite)
    cases = workspace.record.header(CASES, RecordKey.of_suite(partition.suite))
    known = source is not None and source.header is not None and partition.model_version in workspace.model_versions
    if known and cases is not None and generations.made_from.get("cases") == cases.content_hash:
        yield from (check(workspace, partition) for check in BLOCKING)
    else:
        yield check_generations_scored(workspace, partition)
