"""Writes `traces/<conversation>.json`: everything about one conversation."""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.ids import trace_id
from eval_pipeline.core.provenance import FIELDS, PROVENANCE, UNKNOWN
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.json_text import readable_json
from eval_pipeline.reports.paths import trace_file
from eval_pipeline.store import tables

_DEPTH = 5
_BATCH = 500
_KEY = frozenset({"suite", "model_version", "eval_date"})
_PLACE = frozenset({"turn_id", "case_id", "turn_index", "sample"})
_JSON = frozenset(
    {"artefact", "result", "metadata", "details", "checks", "errors", "gold", "tags", "features", "expected_result"}
)
_RESULT = (
    *("question", "expected", "answer", "correct", "first_attempt_correct", "score", "outcome", "error_class"),
    *("input_tokens", "output_tokens", "tokens", "usd", "latency_ms", "complexity"),
)
_IF_GIVEN = ("label", "reason", "details", "error")
_OF_METRIC = ("metric", "value", *_IF_GIVEN, "scorer_version")


class ByCase:
    """Yields the rows of a table case by case; only a few hundred at a time are held as Python values.

    Args:
        order: ids of the cases, in the order in which they will be requested.
    """

    def __init__(self, table: pa.Table, order: pa.Array) -> None:
        ranks = pc.index_in(table["case_id"], value_set=order).to_numpy()
        if table.num_rows and (np.diff(ranks) < 0).any():
            table = table.take(np.argsort(ranks, kind="stable"))
        self._rows = _rows(table)
        self._next: Row | None = next(self._rows, None)

    def take(self, case_id: str) -> list[Row]:
        """Returns the rows of a case, in the table's order."""
        taken = []
        while self._next is not None and self._next["case_id"] == case_id:
            taken.append(self._next)
            self._next = next(self._rows, None)
        return taken


class Prompts:
    """The texts of prompts by hash, held in Arrow and converted to Python text on demand."""

    def __init__(self, *found: pa.Table) -> None:
        self._texts = pa.concat_tables(found)["text"]
        hashes = pa.concat_tables(found)["prompt_hash"].to_pylist()
        self._places = {text: place for place, text in enumerate(hashes)}

    def text(self, prompt_hash: str) -> str | None:
        """Returns the prompt, or None if the record does not have it."""
        place = self._places.get(prompt_hash)
        return None if place is None else str(self._texts[place].as_py())


def write_traces(evaluation: Evaluation, folder: Path) -> None:
    """Writes one file for each evaluated conversation."""
    (folder / "traces").mkdir()
    for case_id, trace in traces(evaluation):
        (folder / trace_file(case_id)).write_text(readable_json(trace, _DEPTH), encoding="utf-8")


def traces(evaluation: Evaluation, only: Collection[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the conversations one at a time in the order of the results: all, or those whose ids are in `only`."""
    order = evaluation.results["case_id"].unique()
    if only is not None:
        order = order.filter(pc.is_in(order, value_set=pa.array(sorted(only), pa.string())))
    cases = {row["case_id"]: row for row in _of_cases(evaluation.read(tables.CASES), order).to_pylist()}
    prompts = Prompts(evaluation.read(tables.GENERATION_PROMPTS), evaluation.read(tables.RECOVERY_PROMPTS))
    by_case = {
        name: ByCase(_of_cases(table, order), order)
        for name, table in {
            "gold": evaluation.read(tables.TURNS),
            "results": evaluation.results,
            "generations": evaluation.read(tables.GENERATIONS),
            "recovery": evaluation.read(tables.RECOVERY_ATTEMPTS),
            "validation": evaluation.read(tables.VALIDATION),
            "evidence": evaluation.evidence(),
            "metrics": evaluation.read(tables.METRICS).select([*_OF_METRIC, "case_id", "turn_id", "sample"]),
        }.items()
    }
    for case_id in order.to_pylist():
        rows = {name: source.take(case_id) for name, source in by_case.items()}
        yield case_id, _trace(evaluation, cases[case_id], rows, prompts)


def _of_cases(table: pa.Table, order: pa.Array) -> pa.Table:
    """Returns the rows of these cases, without the columns that are the same in every row."""
    kept = [name for name in table.column_names if name not in _KEY]
    return table.select(kept).filter(pc.is_in(table["case_id"], value_set=order))


def _rows(table: pa.Table) -> Iterator[Row]:
    for batch in table.to_batches(max_chunksize=_BATCH):
        yield from batch.to_pylist()


def _trace(evaluation: Evaluation, case: Row, rows: Mapping[str, list[Row]], prompts: Prompts) -> dict[str, Any]:
    partition, model_version = evaluation.partition, evaluation.partition.model_version
    gold, recorded = {row["turn_id"]: row for row in rows["gold"]}, bool(evaluation.model["recorded"])
    by_turn = {name: _by_turn(found) for name, found in rows.items() if name not in ("gold", "results")}
    return {
        "conversation_id": case["case_id"],
        "suite": partition.suite,
        "model_version": model_version,
        "eval_date": partition.eval_date.isoformat(),
        "simulated": evaluation.simulated,
        "all_right": all(row["correct"] for row in rows["results"]),
        "source": {"file": case["source_file"], "line": case["source_line"], "hash": case["source_hash"]},
        "cluster": case["cluster"],
        "tags": _value("tags", case["tags"]),
        "features": _value("features", case["features"]),
        "case": _loaded(case["content"]),
        "turns": [
            _turn(row, gold.get(row["turn_id"], {}), by_turn, prompts, model_version, recorded)
            for row in rows["results"]
        ],
    }


def _by_turn(rows: list[Row]) -> dict[tuple[str, int], list[Row]]:
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row["turn_id"], row["sample"]), []).append(row)
    return found


def _turn(
    result: Row,
    gold: Row,
    rows: Mapping[str, Mapping[tuple[str, int], list[Row]]],
    prompts: Prompts,
    model_version: str,
    recorded: bool,
) -> Row:
    def mine(name: str) -> list[Row]:
        return rows[name].get((result["turn_id"], result["sample"]), [])

    return {
        "trace_id": trace_id(result["turn_id"], model_version),
        "turn_id": result["turn_id"],
        "turn_idx": result["turn_index"],
        "sample": result["sample"],
        **{name: result[name] for name in _RESULT},
        "expected_printed": gold.get("expected_printed"),
        "gold": _value("gold", gold.get("gold")),
        "gold_problem": gold.get("gold_problem"),
        "expected_result": _value("expected_result", gold.get("expected_result")),
        "attempts": [_attempt(row, prompts, recorded) for row in (*mine("generations"), *mine("recovery"))],
        "validation": [_plain(row) for row in mine("validation")],
        "evidence": [_plain(row) for row in mine("evidence")],
        "metrics": {row["metric"]: _metric(row) for row in mine("metrics")},
    }


def _attempt(row: Row, prompts: Prompts, recorded: bool) -> Row:
    shown = _plain(row)
    number, prompt = shown.pop("number"), prompts.text(row["prompt_hash"])
    if not recorded:
        return {"number": number, "prompt": prompt, **shown}
    known = (shown["metadata"] or {}).get(PROVENANCE)
    # For older imports the record holds the prompt that would have been sent, and the date on which the file was read.
    told = {"number": number, "prompt": UNKNOWN if known is None else prompt}
    told |= {PROVENANCE: {name: (known or {}).get(name, UNKNOWN) for name in FIELDS if name != "prompt"}}
    return told | shown | ({"asked_on": None} if known is None else {})


def _metric(row: Row) -> Row:
    """Returns a metric's value and version, and its label, reason, details and error if there are any."""
    shown: Row = {"value": row["value"]}
    for name in _IF_GIVEN:
        if row[name] is not None:
            shown[name] = _value(name, row[name])
    return shown | {"version": row["scorer_version"]}


def _plain(row: Row) -> Row:
    return {name: _value(name, value) for name, value in row.items() if name not in _PLACE}


def _value(name: str, value: Any) -> Any:
    return _loaded(value) if name in _JSON else value


def _loaded(text: str | None) -> Any:
    """Returns the JSON value in a text, or the text itself if it is not JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
