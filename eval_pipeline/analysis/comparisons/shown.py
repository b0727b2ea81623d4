"""Comparisons of chosen model versions, over the suites asked for, as `eval-pipeline compare` shows them."""

from collections.abc import Sequence
from itertools import groupby

from eval_pipeline.analysis.comparisons.evaluations import Evaluated, TurnReader, evaluations_of, latest
from eval_pipeline.analysis.comparisons.pairs import Row, comparison_rows, every_pair
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import MODEL_VERSIONS
from eval_pipeline.workspace.workspace import Workspace


def comparisons_of(workspace: Workspace, suites: Sequence[str], names: Sequence[str]) -> dict[str, list[Row]]:
    """Rows as in `model_comparisons`, by suite, of every pair of the model versions in the order given.

    They are corrected for each other over all the suites, since they are shown together. Read from the record, so that
    nothing has to be published; suites that fewer than two of them have answered are left out.

    Raises:
        UsageError: one of them is not known, or no suite has been answered by two of them.
    """
    for name in names:
        if not workspace.record.header(MODEL_VERSIONS, RecordKey.of_model_version(name)):  # retired ones have one
            workspace.model_version(name)
    pairs: list[tuple[Evaluated, Evaluated]] = []
    for suite in suites:
        found = evaluations_of(workspace, suite)
        pairs += every_pair([latest(found[name]) for name in dict.fromkeys(names) if name in found])
    if not pairs:
        raise UsageError(
            f"no suite has evaluations of two of {', '.join(dict.fromkeys(names))}; `eval-pipeline run` makes them"
        )
    rows = comparison_rows(pairs, TurnReader(workspace))
    told = [(pair[0].partition.suite, row) for pair, row in zip(pairs, rows, strict=True)]
    return {suite: [row for _, row in group] for suite, group in groupby(told, key=lambda found: found[0])}


def compare_with(workspace: Workspace, partition: Partition, baseline: str) -> Row | None:
    """The row of a partition against a baseline's latest evaluation, the baseline first; None where it has none.

    Raises:
        UsageError: the partition is not evaluated to its end.
    """
    found = evaluations_of(workspace, partition.suite)
    ours = next((one for one in found.get(partition.model_version, ()) if one.partition == partition), None)
    if ours is None:
        raise UsageError(f"the record has no whole evaluation of {partition}")
    if baseline not in found:
        return None
    return comparison_rows([(latest(found[baseline]), ours)], TurnReader(workspace))[0]
