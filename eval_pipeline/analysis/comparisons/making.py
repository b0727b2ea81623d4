"""The stages `model_comparisons` and `trends`."""

from collections.abc import Mapping, Sequence

from eval_pipeline.analysis.comparisons.evaluations import Evaluated, evaluations_of, latest
from eval_pipeline.analysis.comparisons.metrics import metric_rows
from eval_pipeline.analysis.comparisons.pairs import Row, comparison_rows, every_pair
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.analysis.comparisons.trends import series_of, trend_rows
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Json
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import METRIC_COMPARISONS, MODEL_COMPARISONS, TRENDS
from eval_pipeline.tracks.capabilities import ComparesMetrics
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.progress import busy
from eval_pipeline.workspace.workspace import Workspace

Evaluations = Mapping[str, Sequence[Evaluated]]


def compare_models(inputs: Inputs, outputs: Outputs) -> None:
    """Makes the tables `model_comparisons` and `metric_comparisons` of a suite."""
    pairs, reader = every_pair(_compared(inputs)), TurnReader(inputs.workspace)
    with busy(inputs.progress, inputs.label("comparing models")):
        outputs.rows(MODEL_COMPARISONS).extend(comparison_rows(pairs, reader))
        outputs.rows(METRIC_COMPARISONS).extend(metric_rows(pairs, reader, inputs.track))


def compared_metrics(inputs: Inputs) -> tuple[str, ...]:
    """Returns the metrics that the suite's track has tested beside the primary one."""
    return inputs.track.compared_metrics if isinstance(inputs.track, ComparesMetrics) else ()


def latest_evaluations(inputs: Inputs) -> dict[str, str]:
    """Returns a hash of the compared evaluations: the latest of every model version that is not retired."""
    return {"evaluations": json_hash([found.fingerprint() for found in _compared(inputs)])}


def comparison_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the number of pairs, and of those that differ significantly."""
    verdicts = inputs.read(MODEL_COMPARISONS, ["verdict"])["verdict"].to_pylist()
    different = sum(verdict not in {None, "not_significant"} for verdict in verdicts)
    return {"pairs": len(verdicts), "significantly_different": different}


def make_trends(inputs: Inputs, outputs: Outputs) -> None:
    """Makes the table `trends` of a suite; unchanged series are copied."""
    now, (before, kept) = every_series(inputs), _kept(inputs)
    reader, code = TurnReader(inputs.workspace), outputs.made_from.get("code")
    with busy(inputs.progress, inputs.label("trends")):
        rows = outputs.rows(TRENDS)
        for name, evaluations in sorted(_evaluations(inputs).items()):
            source = _source(name)
            if before.get("code") == code and before.get(source) == now[source]:
                rows.extend(kept[name])
            else:
                retired = inputs.workspace.is_retired(name)
                made = trend_rows(inputs.workspace, series_of(evaluations), reader)
                rows.extend(row | {"retired": retired} for row in made)


def every_series(inputs: Inputs) -> dict[str, str]:
    """Returns one hash per model version over its series, so that only changed series are computed again."""
    return {
        _source(name): json_hash(
            [*(found.fingerprint() for found in series_of(series)), inputs.workspace.is_retired(name)]
        )
        for name, series in _evaluations(inputs).items()
    }


def trend_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the newest accuracy of every model version."""
    rows = newest_trends(inputs.workspace, inputs.suite)
    return {"model_versions": len(rows), **{f"accuracy_{row['model_version']}": row["accuracy"] for row in rows}}


def newest_trends(workspace: Workspace, suite: str) -> list[Row]:
    """Returns the newest row of each model version in `trends`, including retired ones."""
    return list({row["model_version"]: row for row in trends_of(workspace, suite)}.values())


def trends_of(workspace: Workspace, suite: str) -> list[Row]:
    """Returns the rows of `trends`, sorted by date."""
    rows: list[Row] = workspace.record.read(TRENDS, RecordKey.of_suite(suite)).to_pylist()
    return sorted(rows, key=lambda row: row["eval_date"])


def _evaluations(inputs: Inputs) -> Evaluations:
    return inputs.hold("evaluations", lambda: evaluations_of(inputs.workspace, inputs.suite))


def _compared(inputs: Inputs) -> list[Evaluated]:
    """Returns the latest evaluation of each model version in use, sorted by name."""
    found = _evaluations(inputs)
    return [latest(found[name]) for name in sorted(found) if not inputs.workspace.is_retired(name)]


def _source(model_version: str) -> str:
    return f"series of {model_version}"


def _kept(inputs: Inputs) -> tuple[Mapping[str, str], Mapping[str, Sequence[Row]]]:
    """Returns what `trends` was made from, and its rows by model version.

    Empty if there is no table with today's schema.
    """
    header = inputs.header(TRENDS)
    if header is None or header.schema_hash != TRENDS.schema_hash():
        return {}, {}
    rows: dict[str, list[Row]] = {}
    for row in inputs.read(TRENDS, [column.name for column in TRENDS.columns]).to_pylist():
        rows.setdefault(row["model_version"], []).append(row)
    return header.made_from, rows
