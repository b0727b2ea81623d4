"""The stages `model_comparisons` and `trends`."""

from collections.abc import Mapping, Sequence

from eval_pipeline.analysis.comparisons.compared import (
    compared_evaluations,
    evaluations_by_name,
    newest_trends,
    of_what_is_there,
    series_hash,
    series_of,
    source_of,
)
from eval_pipeline.analysis.comparisons.metrics import metric_rows
from eval_pipeline.analysis.comparisons.pairs import Row, comparison_rows, every_pair
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.analysis.comparisons.trends import trend_rows
from eval_pipeline.core.model import Json
from eval_pipeline.store.tables import METRIC_COMPARISONS, MODEL_COMPARISONS, TRENDS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.progress import busy


def compare_models(inputs: Inputs, outputs: Outputs) -> None:
    """Makes the tables `model_comparisons` and `metric_comparisons` of a suite."""
    with busy(inputs.progress, inputs.label("comparing models")):
        models, metrics = of_what_is_there(inputs, _pairs_compared)
        outputs.rows(MODEL_COMPARISONS).extend(models)
        outputs.rows(METRIC_COMPARISONS).extend(metrics)


def _pairs_compared(inputs: Inputs) -> tuple[list[Row], list[Row]]:
    pairs, reader = every_pair(compared_evaluations(inputs)), TurnReader(inputs.workspace)
    return list(comparison_rows(pairs, reader)), list(metric_rows(pairs, reader, inputs.track))


def comparison_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the number of pairs, and of those that differ significantly."""
    verdicts = inputs.read(MODEL_COMPARISONS, ["verdict"])["verdict"].to_pylist()
    different = sum(verdict not in {None, "not_significant"} for verdict in verdicts)
    return {"pairs": len(verdicts), "significantly_different": different}


def make_trends(inputs: Inputs, outputs: Outputs) -> None:
    """Makes the table `trends` of a suite; the rows of unchanged dates are copied."""
    code = outputs.made_from.get("code")
    with busy(inputs.progress, inputs.label("trends")):
        outputs.rows(TRENDS).extend(of_what_is_there(inputs, lambda inputs: _trend_rows(inputs, code)))


def _trend_rows(inputs: Inputs, code: str | None) -> list[Row]:
    before, kept = _kept(inputs)
    rows, reader = list[Row](), TurnReader(inputs.workspace)
    for name, evaluations in sorted(evaluations_by_name(inputs).items()):
        series, retired = series_of(evaluations), inputs.workspace.is_retired(name)
        known = kept.get(name, []) if before.get("code") == code else []
        if before.get(source_of(name)) != series_hash(series[: len(known)], retired=retired):
            known = []
        made = trend_rows(inputs.workspace, series, reader, known)
        rows.extend(row | {"retired": retired} for row in made)
    return rows


def trend_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the newest accuracy of every model version."""
    rows = newest_trends(inputs.workspace, inputs.suite)
    return {"model_versions": len(rows), **{f"accuracy_{row['model_version']}": row["accuracy"] for row in rows}}


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
