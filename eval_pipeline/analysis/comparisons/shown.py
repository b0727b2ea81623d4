"""Comparisons of chosen model versions over chosen suites, as shown by `eval-pipeline compare`."""

from collections.abc import Sequence
from itertools import groupby

from eval_pipeline.analysis.comparisons.evaluations import Evaluated, evaluations_of, latest
from eval_pipeline.analysis.comparisons.metrics import metric_rows
from eval_pipeline.analysis.comparisons.pairs import Row, comparison_rows, every_pair
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import MODEL_VERSIONS
from eval_pipeline.workspace.workspace import Workspace


def comparisons_of(workspace: Workspace, suites: Sequence[str], names: Sequence[str]) -> dict[str, list[Row]]:
    """Returns rows as in `model_comparisons`, by suite, for every pair of the model versions in the given order.

    The p-values are corrected over all suites, because they are shown together. The rows come from the record, so
    nothing has to be published. Suites answered by fewer than two of the model versions are left out.

    Raises:
        UsageError: a model version is unknown, or no suite has been answered by two of them.
    """
    for name in names:
        if not workspace.record.header(MODEL_VERSIONS, RecordKey.of_model_version(name)):  # retired ones are recorded
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


def metrics_of(workspace: Workspace, suites: Sequence[str], names: Sequence[str]) -> dict[str, list[Row]]:
    """Returns rows as in `metric_comparisons`, by suite, for every pair of the model versions in the given order."""
    reader, found = TurnReader(workspace), {}
    for suite in suites:
        evaluations = evaluations_of(workspace, suite)
        pairs = every_pair([latest(evaluations[name]) for name in dict.fromkeys(names) if name in evaluations])
        if pairs and (rows := metric_rows(pairs, reader, workspace.suite(suite).track())):
            found[suite] = rows
    return found


def compare_with(workspace: Workspace, partition: Partition, baseline: str) -> Row | None:
    """Compares an evaluation with a baseline's latest one, the baseline first; None if the baseline has none.

    Raises:
        UsageError: the evaluation is incomplete.
    """
    found = evaluations_of(workspace, partition.suite)
    ours = next((one for one in found.get(partition.model_version, ()) if one.partition == partition), None)
    if ours is None:
        raise UsageError(f"the record has no complete evaluation of {partition}")
    if baseline not in found:
        return None
    return comparison_rows([(latest(found[baseline]), ours)], TurnReader(workspace))[0]
