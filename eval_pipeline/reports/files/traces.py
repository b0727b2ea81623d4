"""Writes `traces/<conversation>.json`: everything about one conversation."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.ids import trace_id
from eval_pipeline.core.provenance import FIELDS, PROVENANCE, UNKNOWN
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.json_text import Written, part, parts, readable_json
from eval_pipeline.reports.places.paths import trace_file
from eval_pipeline.store import tables

_DEPTH = 5
_OF_ROW = 1, 4
"""Depth that remains for a row of a turn, and its level: in a list of a turn, in the list of turns, in the trace."""
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


Place = tuple[str, int]
"""Turn id and sample."""
Shown = Callable[[pa.RecordBatch], Sequence[Any]]
"""Returns what is shown of each row."""


class ByCase:
    """Yields the rows of a table case by case; only a few hundred at a time are held as Python values.

    Args:
        table: its rows, which have a case, a turn, and usually a sample.
        order: ids of the cases, in the order in which they will be requested.
        shown: what is shown of them.
    """

    def __init__(self, table: pa.Table, order: pa.Array, shown: Shown) -> None:
        ranks = pc.index_in(table["case_id"], value_set=order).to_numpy()
        if table.num_rows and (np.diff(ranks) < 0).any():
            table = table.take(np.argsort(ranks, kind="stable"))
        self._rows = _rows(table, shown)
        self._next = next(self._rows, None)

    def take(self, case_id: str) -> list[tuple[Place, Any]]:
        """Returns the places of a case's rows and what is shown of them, in the table's order."""
        taken = []
        while self._next is not None and self._next[0] == case_id:
            taken.append(self._next[1:])
            self._next = next(self._rows, None)
        return taken


def _rows(table: pa.Table, shown: Shown) -> Iterator[tuple[str, Place, Any]]:
    for batch in table.to_batches(max_chunksize=_BATCH):
        samples = batch["sample"].to_pylist() if "sample" in batch.schema.names else [0] * len(batch)
        places = zip(batch["turn_id"].to_pylist(), samples, strict=True)
        yield from zip(batch["case_id"].to_pylist(), places, shown(batch), strict=True)


class Prompts:
    """The texts of prompts by hash, held in Arrow and converted to Python text on demand."""

    def __init__(self, found: pa.Table) -> None:
        self._texts = found["text"]
        self._places = {text: place for place, text in enumerate(found["prompt_hash"].to_pylist())}

    def text(self, prompt_hash: str) -> str | None:
        """Returns the prompt, or None if the record does not have it."""
        place = self._places.get(prompt_hash)
        return None if place is None else str(self._texts[place].as_py())


def write_traces(evaluation: Evaluation, folder: Path) -> None:
    """Writes one file for each evaluated conversation."""
    (folder / "traces").mkdir(exist_ok=True)
    for case_id, trace in _traces(evaluation, _tables(evaluation), None, written=True):
        (folder / trace_file(case_id)).write_bytes(readable_json(trace, _DEPTH).encode())


def traces(evaluation: Evaluation, only: Collection[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the conversations one at a time in the order of the results: all, or those whose ids are in `only`."""
    return _traces(evaluation, _tables(evaluation), only, written=False)


def _tables(evaluation: Evaluation) -> dict[str, pa.Table]:
    """Returns what traces show, but for prompts, without the columns that are the same in every row."""
    metrics = evaluation.read(tables.METRICS).select([*_OF_METRIC, "case_id", "turn_id", "sample"])
    found = {
        "cases": evaluation.read(tables.CASES),
        "gold": evaluation.read(tables.TURNS),
        "results": evaluation.results,
        "attempts": evaluation.published(tables.ATTEMPTS),
        "validation": evaluation.read(tables.VALIDATION),
        "evidence": evaluation.published(tables.ALL_EVIDENCE),
        "metrics": metrics,
    }
    return {
        name: table.select([column for column in table.column_names if column not in _KEY])
        for name, table in found.items()
    }


def _traces(
    evaluation: Evaluation, found: Mapping[str, pa.Table], only: Collection[str] | None, *, written: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the conversations; with `written`, the rows of their turns are JSON text already, made by column."""
    order = found["results"]["case_id"].unique()
    if only is not None:
        order = order.filter(pc.is_in(order, value_set=pa.array(sorted(only), pa.string())))
    cases = {row["case_id"]: row for row in _of_cases(found["cases"], order).to_pylist()}
    prompts = Prompts(evaluation.published(tables.PROMPTS))
    recorded = bool(evaluation.model["recorded"])
    attempts: Shown = partial(_attempts, prompts, recorded)
    plain: Shown = _plain_rows
    metrics: Shown = _metrics
    if written:
        plain, metrics = _written_rows, _written_metrics
        attempts = attempts if recorded else partial(_written_attempts, prompts)
    shown: dict[str, Shown] = {"gold": _as_they_are, "results": _as_they_are, "attempts": attempts, "metrics": metrics}
    shown |= {"validation": plain, "evidence": plain}
    by_case = {name: ByCase(_of_cases(found[name], order), order, how) for name, how in shown.items()}
    for case_id in order.to_pylist():
        rows = {name: source.take(case_id) for name, source in by_case.items()}
        yield case_id, _trace(evaluation, cases[case_id], rows)


def _of_cases(table: pa.Table, order: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table["case_id"], value_set=order))


def _trace(evaluation: Evaluation, case: Row, rows: Mapping[str, list[tuple[Place, Any]]]) -> dict[str, Any]:
    partition, model_version = evaluation.partition, evaluation.partition.model_version
    gold, results = {turn: row for (turn, _), row in rows["gold"]}, [row for _, row in rows["results"]]
    by_turn = {name: _by_turn(found) for name, found in rows.items() if name not in ("gold", "results")}
    return {
        "conversation_id": case["case_id"],
        "suite": partition.suite,
        "model_version": model_version,
        "eval_date": partition.eval_date.isoformat(),
        "simulated": evaluation.simulated,
        "all_right": all(row["correct"] is not False for row in results),
        "source": {"file": case["source_file"], "line": case["source_line"], "hash": case["source_hash"]},
        "cluster": case["cluster"],
        "tags": _value("tags", case["tags"]),
        "features": _value("features", case["features"]),
        "case": _loaded(case["content"]),
        "turns": [_turn(row, gold.get(row["turn_id"], {}), by_turn, model_version) for row in results],
    }


def _by_turn(rows: list[tuple[Place, Any]]) -> dict[Place, list[Any]]:
    found: dict[Place, list[Any]] = {}
    for place, row in rows:
        found.setdefault(place, []).append(row)
    return found


def _turn(result: Row, gold: Row, rows: Mapping[str, Mapping[Place, list[Any]]], model_version: str) -> Row:
    def mine(name: str) -> list[Any]:
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
        "attempts": mine("attempts"),
        "validation": mine("validation"),
        "evidence": mine("evidence"),
        "metrics": dict(mine("metrics")),
    }


def _as_they_are(batch: pa.RecordBatch) -> list[Row]:
    rows: list[Row] = batch.to_pylist()
    return rows


def _plain_rows(batch: pa.RecordBatch) -> list[Row]:
    return [_plain(row) for row in batch.to_pylist()]


def _written_rows(batch: pa.RecordBatch) -> list[Written]:
    return parts(_written_columns(batch), *_OF_ROW)


def _written_columns(batch: pa.RecordBatch) -> dict[str, list[Any]]:
    """Returns the columns of `_plain`, JSON as it will stand within a row."""
    columns: dict[str, list[Any]] = {n: batch[n].to_pylist() for n in batch.schema.names if n not in _PLACE}
    within = _OF_ROW[0] - 1, _OF_ROW[1] + 1
    for name in _JSON & columns.keys():
        # Most are the same as others: an empty list, no metadata.
        texts = {text: part(_loaded(text), *within) for text in set(columns[name])}
        columns[name] = [texts[text] for text in columns[name]]
    return columns


def _attempts(prompts: Prompts, recorded: bool, batch: pa.RecordBatch) -> list[Row]:
    return [_attempt(row, prompts, recorded) for row in batch.to_pylist()]


def _written_attempts(prompts: Prompts, batch: pa.RecordBatch) -> list[Written]:
    columns = _written_columns(batch)
    first = {"number": columns.pop("number"), "prompt": [prompts.text(key) for key in columns["prompt_hash"]]}
    return parts(first | columns, *_OF_ROW)


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


def _metrics(batch: pa.RecordBatch) -> list[tuple[str, Row]]:
    return [(row["metric"], _metric(row)) for row in batch.to_pylist()]


def _written_metrics(batch: pa.RecordBatch) -> list[tuple[str, Written]]:
    columns = {name: batch[name].to_pylist() for name in _OF_METRIC}
    # Nearly all metrics have a value only.
    shown = parts({"value": columns["value"], "version": columns["scorer_version"]}, *_OF_ROW)
    given = zip(*(columns[name] for name in _IF_GIVEN), strict=True)
    for place in [place for place, found in enumerate(given) if any(one is not None for one in found)]:
        shown[place] = part(_metric({name: values[place] for name, values in columns.items()}), *_OF_ROW)
    return list(zip(columns["metric"], shown, strict=True))


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
