"""Writes `chat_history/<case>/metrics.json` and `metrics_summary.json` (docs/pandas.md) from the record."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.json_text import readable_json
from eval_pipeline.reports.places.paths import safe_name
from eval_pipeline.store import tables

FOLDER, METRICS_FILE, SUMMARY_FILE = "chat_history", "metrics.json", "metrics_summary.json"
AVERAGED = ("correctness", "quality", "performance", "understanding", "coverage", "recovery", "overall")
_DEPTH = 4

Entry = dict[str, Any]


def write_chat_history(evaluation: Evaluation, folder: Path) -> None:
    """Writes both files for each conversation, and a summary of all of them at the top of the report's folder."""
    (folder / FOLDER).mkdir()
    whole: list[Entry] = []
    for case_id, entries in conversations(evaluation):
        place = folder / FOLDER / safe_name(case_id)
        place.mkdir()
        _write(place / METRICS_FILE, entries)
        _write(place / SUMMARY_FILE, summary(entries))
        whole += entries
    _write(folder / SUMMARY_FILE, summary(whole))


def conversations(evaluation: Evaluation) -> Iterator[tuple[str, list[Entry]]]:
    """Yields the entries of each conversation turn by turn; several samples of a turn follow each other."""
    errors = {
        (row["turn_id"], row["sample"]): row["error_message"]
        for row in evaluation.read(tables.GENERATIONS).select(["turn_id", "sample", "error_message"]).to_pylist()
    }
    found: dict[str, dict[tuple[int, int], dict[str, Row]]] = {}
    places: dict[tuple[str, int, int], str] = {}
    wanted = ["turn_id", "case_id", "turn_index", "sample", "metric", "value", "details"]
    for row in evaluation.read(tables.METRICS).select(wanted).to_pylist():
        turns = found.setdefault(row["case_id"], {})
        turns.setdefault((row["turn_index"], row["sample"]), {})[row["metric"]] = row
        places[row["case_id"], row["turn_index"], row["sample"]] = row["turn_id"]
    for case_id, turns in found.items():
        yield (
            case_id,
            [entry(metrics, errors[places[case_id, *place], place[1]]) for place, metrics in sorted(turns.items())],
        )


def entry(metrics: Mapping[str, Row], error_message: str | None) -> Entry:
    """Returns the entry of a turn in `metrics.json`.

    Args:
        metrics: rows of the table `metrics` by metric.
        error_message: message of the original attempt.
    """
    told: Entry = {
        f"{name}_score": metrics[f"{name}_score"]["value"]
        for name in ("correctness", "quality", "performance", "overall")
    }
    for part, score in (("prompt_understanding", "understanding_score"), ("requirement_coverage", "coverage_score")):
        words = metrics[f"{score}_from_words"]
        told[part] = {
            score: metrics[score]["value"],
            "details": _details(metrics[score]),
            f"{score}_from_words": {"value": words["value"], "details": _details(words)},
        }
    counted = ("recovery_success_rate", "error_fix_quality", "recovery_score")
    told["error_recovery"] = {
        "has_error": _verdict(metrics["has_error"]),
        "error_message": error_message,
        "recovery_attempts_count": int(metrics["recovery_attempts_count"]["value"]),
        "recovery_success": _verdict(metrics["recovery_success"]),
        **{name: metrics[name]["value"] for name in counted},
        "recovery_details": _details(metrics["recovery_success"]).get("recovery_details", []),
    }
    return told


def summary(entries: Sequence[Entry]) -> Entry:
    """Returns averages over the turns that have a score, and counts of errors; null if there is nothing to average."""
    recoveries = [entry["error_recovery"] for entry in entries]
    errors = sum(bool(one["has_error"]) for one in recoveries)
    recovered = sum(bool(one["recovery_success"]) for one in recoveries)
    averages = {f"average_{name}_score": _mean(_score(entry, name) for entry in entries) for name in AVERAGED}
    return {
        "summary": {
            **averages,
            "errors_encountered": errors,
            "total_recovery_attempts": sum(one["recovery_attempts_count"] for one in recoveries),
            "successful_recoveries": recovered,
            "recovery_success_rate": recovered / errors if errors else None,
        }
    }


def _score(entry: Entry, name: str) -> float | None:
    places = {
        "understanding": entry["prompt_understanding"],
        "coverage": entry["requirement_coverage"],
        "recovery": entry["error_recovery"],
    }
    found: float | None = places.get(name, entry)[f"{name}_score"]
    return found


def _mean(scores: Iterable[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None


def _details(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row["details"]) if row["details"] else {}
    return found


def _verdict(row: Row) -> bool | None:
    return None if row["value"] is None else bool(row["value"])


def _write(path: Path, value: Any) -> None:
    path.write_text(readable_json(value, _DEPTH), encoding="utf-8")
