"""The evaluations of a suite that are compared with each other, and what is recorded of their trends."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation, evaluations_of, latest
from eval_pipeline.core.errors import MissingFileError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import TRENDS
from eval_pipeline.tracks.capabilities import ComparesMetrics
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Workspace

LOSS, GAIN, DRIFT_DOWN, DRIFT_UP, NO_CHANGE = "loss", "gain", "drift_down", "drift_up", "no_change"
_HELD = "evaluations"
_LOOKED_UP = 3
T = TypeVar("T")
Evaluations = Mapping[str, Sequence[CompleteEvaluation]]
Row = dict[str, Any]


def compared_metrics(inputs: Inputs) -> tuple[str, ...]:
    """Returns the metrics that the suite's track has tested beside the primary one."""
    return inputs.track.compared_metrics if isinstance(inputs.track, ComparesMetrics) else ()


def latest_evaluations(inputs: Inputs) -> dict[str, str]:
    """Returns a hash of the compared evaluations: the latest of every model version that is not retired."""
    return {"evaluations": json_hash([found.fingerprint() for found in compared_evaluations(inputs)])}


def every_series(inputs: Inputs) -> dict[str, str]:
    """Returns one hash per model version over its series, so that only changed series are computed again."""
    return {
        source_of(name): series_hash(series_of(found), retired=inputs.workspace.is_retired(name))
        for name, found in evaluations_by_name(inputs).items()
    }


def series_hash(series: Sequence[CompleteEvaluation], *, retired: bool) -> str:
    """Returns a hash of all that the rows of a series in `trends` are made of."""
    return json_hash([*(found.fingerprint() for found in series), retired])


def newest_trends(workspace: Workspace, suite: str) -> list[Row]:
    """Returns the newest row of each model version in `trends`, including retired ones."""
    return list({row["model_version"]: row for row in trends_of(workspace, suite)}.values())


def trends_of(workspace: Workspace, suite: str) -> list[Row]:
    """Returns the rows of `trends`, sorted by date."""
    rows: list[Row] = workspace.record.read(TRENDS, RecordKey.of_suite(suite)).to_pylist()
    return sorted(rows, key=lambda row: row["eval_date"])


def of_what_is_there(inputs: Inputs, make: Callable[[Inputs], T]) -> T:
    """Returns what is made of a suite's evaluations.

    Another run may put one of them aside, to make it anew, after they were looked up; then they are looked up again.
    Raises MissingFileError if that happens again and again.
    """
    for _ in range(_LOOKED_UP):
        try:
            return make(inputs)
        except MissingFileError:
            inputs.held.pop(_HELD, None)
    return make(inputs)


def evaluations_by_name(inputs: Inputs) -> Evaluations:
    """Returns the complete evaluations of the suite by model version, read once for all stages that compare."""
    return inputs.hold(_HELD, lambda: evaluations_of(inputs.workspace, inputs.suite))


def compared_evaluations(inputs: Inputs) -> list[CompleteEvaluation]:
    """Returns the latest evaluation of each model version in use, sorted by name, as far as they are of one scope.

    A version with six turns is not beside one with all: only full evaluations count, or else those of the scope of the
    newest one.
    """
    found = evaluations_by_name(inputs)
    newest = [latest(found[name]) for name in sorted(found) if not inputs.workspace.is_retired(name)]
    return series_of(newest) if newest else []


def source_of(model_version: str) -> str:
    """Returns the name under which the footer of `trends` has the hash of a model version's series."""
    return f"series of {model_version}"


def series_of(evaluations: Sequence[CompleteEvaluation]) -> list[CompleteEvaluation]:
    """Returns the evaluations that form a series, sorted by date: those with the same scope as the latest one."""
    scope = latest(evaluations).scope
    return [found for found in evaluations if found.scope == scope]


def audited_evaluations(inputs: Inputs) -> dict[str, str]:
    """Returns a hash of the evaluations in which agreement is searched: the latest of every model version."""
    return {"evaluations": json_hash([found.fingerprint() for found in latest_of_each(inputs)])}


def latest_of_each(inputs: Inputs) -> list[CompleteEvaluation]:
    """Returns the latest evaluation of each model version, retired ones too, sorted by name."""
    found = evaluations_by_name(inputs)
    return [latest(found[name]) for name in sorted(found)]
