"""Writes `statistics.json`, all aggregates under their names, and beside it `splits.json`, the figures of groups."""

import json
from pathlib import Path
from typing import Any

from eval_pipeline.core.provenance import PROVENANCE
from eval_pipeline.reports.contents.facts import provenance_of
from eval_pipeline.reports.evaluation import ALL, Evaluation, Row
from eval_pipeline.reports.files.json_text import readable_json
from eval_pipeline.reports.places.paths import SPLITS, STATISTICS

_FIGURES = ("mean", "n", "clusters", "se", "low", "high", "method", "failures", "mean_without_failures", "reason")
_KEY = frozenset({"suite", "model_version", "eval_date"})


def write_statistics(evaluation: Evaluation, folder: Path) -> None:
    """Writes both files."""
    for name, value in ((STATISTICS, statistics(evaluation)), (SPLITS, splits(evaluation))):
        (folder / name).write_text(readable_json(value, 4), encoding="utf-8")


def statistics(evaluation: Evaluation) -> dict[str, Any]:
    """Returns what was evaluated, the named figures, and the uncertainty of each.

    A figure that cannot be computed from the data is null; `overall`, `cost` and `complexity_ceiling` give the reason.
    """
    return {
        **_evaluated(evaluation),
        **_named(evaluation),
        "overall": {metric: _figures(row) for metric, row in evaluation.overall.items()},
        "splits_in": SPLITS,
        "cost": _without_key(evaluation.cost),
        "complexity_ceiling": {row["axis"]: _without_key(row) for row in evaluation.ceilings},
        "accuracy_by_complexity": _levels(evaluation),
        **_contracts(evaluation),
        "error_analysis": [_without_key(row) for row in evaluation.error_groups],
        "gold_editions": [_without_key(row) for row in evaluation.editions],
        **({"sampled_estimates": [_without_key(row) for row in evaluation.drawn]} if evaluation.drawn else {}),
        **_further(evaluation),
    }


def _contracts(evaluation: Evaluation) -> dict[str, Any]:
    found = [_without_key(row) | {"owed_to": json.loads(row["owed_to"])} for row in evaluation.own_contracts]
    return {"accuracy_by_contract": found} if found else {}


def _further(evaluation: Evaluation) -> dict[str, Any]:
    """Returns the rows of aggregates that plug-in packages add, by table; empty if there are none."""
    found = {table.name: [_without_key(row) for row in rows] for table, rows in evaluation.further()}
    return {"further": found} if found else {}


def _evaluated(evaluation: Evaluation) -> dict[str, Any]:
    partition, suite, model, planned = evaluation.partition, evaluation.suite, evaluation.model, evaluation.planned
    return {
        "suite": partition.suite,
        "suite_version": suite["version"],
        "suite_content_hash": suite["content_hash"],
        "track": evaluation.profile.track,
        "primary_metric": evaluation.profile.primary_metric,
        "model_version": partition.model_version,
        "provider": model["provider"],
        "model": model["model"],
        "identity_hash": model["identity_hash"],
        "simulated": evaluation.simulated,
        "recorded": model["recorded"],
        **({PROVENANCE: provenance_of(evaluation)} if model["recorded"] else {}),
        "eval_date": partition.eval_date.isoformat(),
        "scope": planned.scope if planned.is_full else json.loads(planned.scope),
        "software": dict(planned.software),
        "turns_planned": planned.turns,
        "turns": evaluation.turns,
        "coverage": evaluation.coverage.columns(),
        "conversations": evaluation.cost["conversations"],
    }


def _named(evaluation: Evaluation) -> dict[str, Any]:
    overall, profile = evaluation.overall, evaluation.profile
    fields: dict[str, Any] = {
        "accuracy": _mean(overall.get("correct")),
        "first_attempt_accuracy": _mean(overall.get("first_attempt_correct")),
        "conversation_success": _mean(overall.get("conversation_success")),
    }
    fields |= {metric.mean_name: _mean(overall.get(metric.name)) for metric in profile.averaged}
    fields["cost_per_correct_answer"] = evaluation.cost["tokens_per_success"]
    fields["usd_per_correct_answer"] = evaluation.cost["usd_per_success"]
    fields["accuracy_by_turn_number"] = _by_turn(evaluation, "correct")
    fields |= {info.by_turn_name: _by_turn(evaluation, info.name) for info in profile.metrics if info.by_turn_name}
    fields["latency_ms_p50"] = _mean(overall.get("latency_ms_p50"))
    fields["latency_ms_p95"] = _mean(overall.get("latency_ms_p95"))
    return fields


def _by_turn(evaluation: Evaluation, metric: str) -> dict[str, float | None]:
    """Returns the mean of a metric for each turn index, counted from 0."""
    rows = [row for row in evaluation.statistics if row["metric"] == metric and row["split"] == "turn_number"]
    return {row["split_value"]: row["mean"] for row in sorted(rows, key=lambda row: int(row["split_value"]))}


def splits(evaluation: Evaluation) -> dict[str, Any]:
    """Returns which evaluation it is, and the figures by split, group and metric under `splits`."""
    found: dict[str, dict[str, dict[str, Row]]] = {}
    for row in evaluation.statistics:
        if row["split"] != ALL:
            groups = found.setdefault(row["split"], {})
            groups.setdefault(row["split_value"], {})[row["metric"]] = _figures(row)
    partition = evaluation.partition
    key = {"suite": partition.suite, "model_version": partition.model_version}
    return {**key, "eval_date": partition.eval_date.isoformat(), "splits": found}


def _levels(evaluation: Evaluation) -> dict[str, list[Row]]:
    axes: dict[str, list[Row]] = {row["axis"]: [] for row in evaluation.ceilings}
    for row in evaluation.levels:
        axes.setdefault(row["axis"], []).append({name: row[name] for name in row if name not in _KEY | {"axis"}})
    return axes


def _figures(row: Row) -> Row:
    return {name: row[name] for name in _FIGURES}


def _without_key(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _KEY}


def _mean(row: Row | None) -> float | None:
    return row["mean"] if row else None
