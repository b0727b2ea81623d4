"""Which turns of a suite tell models apart, by its recorded evaluations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.statistics.items import Item, item_history
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS, TURN_RESULTS
from eval_pipeline.workspace.asked.scope import FULL
from eval_pipeline.workspace.workspace import Workspace

_NO_MODELS = frozenset({"oracle", "null"})
"""Providers that are right or wrong by construction, which says nothing about a turn."""


@dataclass(frozen=True, slots=True)
class SuiteItems:
    """The turns of a suite with their history.

    Attributes:
        evaluations: the newest full evaluation of each model version.
        turns: ids, in the suite's order.
        items: for each turn its history.
    """

    suite: str
    evaluations: tuple[Partition, ...]
    turns: tuple[str, ...]
    items: tuple[Item, ...]


def suite_items(workspace: Workspace, suite: str) -> SuiteItems:
    """Describes the turns of a suite, one witness for each model version: its newest full evaluation.

    Raises:
        UsageError: the suite was never evaluated in full.
    """
    newest = _newest(workspace, suite)
    if not newest:
        raise UsageError(f"'{suite}' has no full evaluation yet; `eval-pipeline run --suite {suite}` makes one")
    outcomes = [_outcomes(workspace, place) for place in newest]
    turns = tuple(turn.id for case in workspace.cases(suite) for turn in case.turns)
    table = [[found.get(turn, float("nan")) for found in outcomes] for turn in turns]
    return SuiteItems(suite, tuple(newest), turns, tuple(item_history(table)))


def _newest(workspace: Workspace, suite: str) -> Sequence[Partition]:
    found: dict[str, Partition] = {}
    for key in workspace.record.partitions(TURN_RESULTS, RecordKey.of_suite(suite)):
        assert key.model_version and key.eval_date
        version = workspace.model_versions.get(key.model_version)
        header = workspace.record.header(GENERATIONS, key)
        if header is None or header.made_from.get("scope", FULL) != FULL:
            continue
        if version is not None and version.provider in _NO_MODELS:
            continue
        place = Partition(suite, key.model_version, key.eval_date)
        if place.model_version not in found or found[place.model_version].eval_date < place.eval_date:
            found[place.model_version] = place
    return [found[name] for name in sorted(found)]


def _outcomes(workspace: Workspace, place: Partition) -> Mapping[str, float]:
    """Returns 1 or 0 for each scored turn, of its first sample."""
    table = workspace.record.read(TURN_RESULTS, RecordKey.of(place), ["turn_id", "sample", "correct"])
    rows = zip(*(table[name].to_pylist() for name in ("turn_id", "sample", "correct")), strict=True)
    return {turn: float(correct) for turn, sample, correct in rows if sample == 0 and correct is not None}
