"""Exports an evaluation as records of Every Eval Ever: the means of its metrics, and the verdict on each answer.

Source: `eval.schema.json` and `instance_level_eval.schema.json` of every-eval-ever 0.3.0,
https://github.com/evaleval/every_eval_ever
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from eval_pipeline import __version__
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash, json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.provenance import UNKNOWN
from eval_pipeline.reports.contents.draws import drawn_text
from eval_pipeline.reports.contents.facts import scope_text
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.json_text import readable_json
from eval_pipeline.reports.files.traces import traces
from eval_pipeline.reports.profile import WORSE_WHEN_HIGH
from eval_pipeline_plugins.exports.origins import CORRECT, asked_with, model_of, scores_of

SCHEMA = "0.3.0"
RELATIONS = ("first_party", "third_party", "collaborative", "other")
"""How who evaluates is related to who made the model."""
_NO_NAME = re.compile(r'[<>:"/\\|?*\x00-\x1f]+|^\.+|[. ]+$')
_GENERATION = ("temperature", "top_p", "top_k", "max_tokens")


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Who evaluates, which no record tells."""

    organization: str
    relation: str = "other"


def write_records(evaluation: Evaluation, folder: Path, who: Evaluator, now: datetime) -> tuple[Path, int]:
    """Writes `data/<suite>/<developer>/<model>/<id>.json` and beside it `<id>_samples.jsonl` into a folder.

    The same evaluation has the same id, so that exporting it again replaces the files.

    Returns:
        The first file, and the number of answers in the other one.

    Raises:
        UsageError: the relation is none of `RELATIONS`; the record lacks a table of the evaluation.
    """
    if who.relation not in RELATIONS:
        raise UsageError(f"expected one of {', '.join(RELATIONS)} as relation, found '{who.relation}'")
    place = evaluation.partition
    provider, model = model_of(evaluation)
    identity = json_hash([place.suite, place.model_version, place.eval_date.isoformat(), place.evaluation])
    name = str(UUID(identity, version=4))
    parts = ("data", *(_NO_NAME.sub("_", part) for part in (place.suite, provider, model)))
    inside = folder.joinpath(*parts)
    inside.mkdir(parents=True, exist_ok=True)
    stamp = str(int(now.timestamp()))
    run = f"{place.suite}/{provider}/{model}/{stamp}"
    samples = inside / f"{name}_samples.jsonl"
    digest, count = hashlib.sha256(), 0
    with samples.open("wb") as file:
        for record in _answers(evaluation, run, f"{provider}/{model}"):
            line = (json_text(record) + "\n").encode()
            digest.update(line)
            file.write(line)
            count += 1
    detailed: dict[str, Any] | None = None
    if count:
        where = "/".join((*parts, samples.name))
        detailed = {"format": "jsonl", "file_path": where, "hash_algorithm": "sha256", "checksum": digest.hexdigest()}
        detailed["total_rows"] = count
    else:
        samples.unlink()
    record = _record(evaluation, who, run, stamp) | ({"detailed_evaluation_results": detailed} if detailed else {})
    (inside / f"{name}.json").write_text(readable_json(record, 12), encoding="utf-8")
    return inside / f"{name}.json", count


def _record(evaluation: Evaluation, who: Evaluator, run: str, stamp: str) -> dict[str, Any]:
    place, suite = evaluation.partition, evaluation.suite
    provider, model = model_of(evaluation)
    rows = evaluation.overall
    names = [CORRECT, *(info.name for info in evaluation.profile.averaged)]
    shown = [name for name in dict.fromkeys(names) if name in rows and rows[name]["mean"] is not None]
    return {
        "schema_version": SCHEMA,
        "evaluation_id": run,
        "evaluation_timestamp": _timestamp(evaluation),
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "eval-pipeline",
            "source_type": "evaluation_run",
            "source_organization_name": who.organization,
            "evaluator_relationship": who.relation,
        },
        "eval_library": {"name": "eval_pipeline", "version": __version__},
        "model_info": {
            "name": model,
            "id": f"{provider}/{model}",
            "additional_details": {
                "deployment_type": UNKNOWN,
                "model_availability": UNKNOWN,
                "model_version": place.model_version,
                "answered_by": ", ".join(evaluation.served) or UNKNOWN,
                "simulated": str(evaluation.simulated).lower(),
                "recorded": str(bool(evaluation.model["recorded"])).lower(),
            },
        },
        "evaluation_results": [_result(evaluation, name, rows[name], suite) for name in shown],
    }


def _result(evaluation: Evaluation, name: str, row: Row, suite: Row) -> dict[str, Any]:
    profile, place = evaluation.profile, evaluation.partition
    unit = profile.unit(name)
    metric: dict[str, Any] = {
        "metric_id": f"eval_pipeline.{profile.track}.{name}",
        "metric_name": name,
        "metric_kind": "accuracy" if name == CORRECT else name,
        "metric_unit": {"rate": "proportion", "score": "proportion"}.get(unit, unit),
        "evaluation_description": profile.meaning(name) or name,
        "lower_is_better": name in WORSE_WHEN_HIGH,
        "score_type": "continuous",
        "min_score": 0,
        "max_score": 1 if unit in {"rate", "score"} else "Infinity",
    }
    uncertainty: dict[str, Any] = {"num_samples": row["n"]}
    if row["se"] is not None:
        uncertainty["standard_error"] = {"value": row["se"], "method": "clustered by conversation"}
    if row["low"] is not None and row["high"] is not None:
        ends = {"lower": row["low"], "upper": row["high"], "confidence_level": 0.95, "method": row["method"] or UNKNOWN}
        uncertainty["confidence_interval"] = ends
    sampling = asked_with(evaluation)
    known = {key: sampling[key] for key in _GENERATION if isinstance(sampling.get(key), int | float)}
    whole = drawn_text(evaluation.drawn) or scope_text(evaluation.planned.scope)
    more = {"version": suite["version"], "content_hash": suite["content_hash"], "scope": whole}
    return {
        "evaluation_result_id": f"{place.suite}.{name}",
        "evaluation_name": f"{place.suite} {name}",
        "evaluation_timestamp": _timestamp(evaluation),
        "source_data": {"dataset_name": place.suite, "source_type": "other", "additional_details": _texts(more)},
        "metric_config": metric,
        "score_details": {
            "score": row["mean"],
            "details": _texts({"clusters": row["clusters"]}),
            "uncertainty": uncertainty,
        },
        "generation_config": {
            "generation_args": known,
            "additional_details": _texts({key: value for key, value in sampling.items() if key not in known}),
        },
    }


def _answers(evaluation: Evaluation, run: str, model: str) -> Iterator[dict[str, Any]]:
    """Yields the verdict on each answer that has one; other metrics are its metadata."""
    suite = evaluation.partition.suite
    for _, trace in traces(evaluation):
        for turn in trace["turns"]:
            if turn["correct"] is not None:
                told = {"schema_version": SCHEMA, "evaluation_id": run, "model_id": model}
                told |= {"evaluation_name": f"{suite} {CORRECT}", "evaluation_result_id": f"{suite}.{CORRECT}"}
                yield told | _answer(evaluation, trace, turn)


def _answer(evaluation: Evaluation, trace: Row, turn: Row) -> dict[str, Any]:
    attempts: Sequence[Row] = turn["attempts"]
    last: Mapping[str, Any] = attempts[-1] if attempts else {}
    response, expected = last.get("response"), turn["expected"]
    asked = {"raw": turn["question"], "reference": [] if expected is None else [expected]}
    sent, received = turn["input_tokens"], turn["output_tokens"]
    usage = {"input_tokens": sent, "output_tokens": received}
    found = {
        "turn_idx": 0,
        "source": "output.raw[0]",
        "extracted_value": turn["answer"],
        "extraction_method": f"track {evaluation.profile.track}",
        "is_terminal": True,
    }
    others = {
        score.name: score.label if score.value is None else score.value
        for score in scores_of(evaluation, turn)
        if score.name != CORRECT and not score.failed
    }
    more = {"case_id": trace["conversation_id"], "turn_index": turn["turn_idx"], "sample": turn["sample"]}
    return {
        "sample_id": f"{turn['turn_id']}~{turn['sample']}" if turn["sample"] else turn["turn_id"],
        "sample_hash": hashlib.sha256("".join([asked["raw"], *asked["reference"]]).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {**asked, "formatted": None if last.get("prompt") == UNKNOWN else last.get("prompt")},
        "output": {"raw": [] if response is None else [response]},
        "answer_attribution": [] if turn["answer"] is None or response is None else [found],
        "evaluation": {"score": float(turn["correct"]), "is_correct": turn["correct"], "num_turns": 1},
        "token_usage": None if None in (sent, received) else {**usage, "total_tokens": sent + received},
        "performance": None if turn["latency_ms"] is None else {"latency_ms": turn["latency_ms"]},
        "error": last.get("error_message"),
        "metadata": _texts({**more, **others}),
    }


def _timestamp(evaluation: Evaluation) -> str:
    day = evaluation.partition.eval_date
    return datetime(day.year, day.month, day.day, tzinfo=UTC).isoformat()


def _texts(told: Mapping[str, Json]) -> dict[str, str]:
    """Returns the values as text, which the schema requires of what it does not know."""
    return {
        name: value if isinstance(value, str) else json_text(value) for name, value in told.items() if value is not None
    }
