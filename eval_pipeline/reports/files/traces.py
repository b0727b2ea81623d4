"""Writes `traces/<conversation>.json`: everything about one conversation."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.ids import trace_id
from eval_pipeline.core.provenance import FIELDS, PROVENANCE, UNKNOWN
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.json_text import part, parts, readable_json
from eval_pipeline.reports.places.paths import trace_file
from eval_pipeline.store import tables

_DEPTH = 5
_OF_ROW = 1, 4
"""Depth that remains for a row of a turn, and its level: in a list of a turn, in the list of turns, in the trace."""
_BATCH = 500
_PLACE = frozenset({"suite", "model_version", "eval_date", "turn_id", "case_id", "turn_index", "sample"})
_JSON = frozenset(
    {"artefact", "result", "metadata", "details", "checks", "errors", "gold", "tags", "features", "expected_result"}
)
_RESULT = (
    *("question", "expected", "answer", "correct", "first_attempt_correct", "score", "outcome", "error_class"),
    *("input_tokens", "output_tokens", "tokens", "usd", "latency_ms", "complexity"),
)
_IF_GIVEN = ("label", "reason", "details", "error")
_OF_METRIC = ("metric", "value", *_IF_GIVEN, "scorer_version")
_PROVENANCE = [name for name in FIELDS if name != "prompt"]


Place = tuple[str, int]
"""Turn id and sample."""
Shown = Callable[[pa.RecordBatch], Sequence[Any]]
"""Returns what is shown of each row."""
Columns = dict[str, list[Any]]


class TraceForm(NamedTuple):
    """The form in which rows of a turn are given.

    Attributes:
        value: converts a JSON value within a row.
        rows: makes rows of columns.
    """

    value: Callable[[Any], Any]
    rows: Callable[[Columns], list[Any]]


_VALUES = TraceForm(
    lambda value: value,
    lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
)
_WRITTEN = TraceForm(
    lambda value: part(value, _OF_ROW[0] - 1, _OF_ROW[1] + 1), lambda columns: parts(columns, *_OF_ROW)
)
"""JSON text as it will stand in the file; made by column, it takes a fraction of the time."""


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

    def take(self, case_id: str) -> dict[Place, list[Any]]:
        """Returns what is shown of a case's rows, by their place, in the table's order."""
        taken: dict[Place, list[Any]] = {}
        while self._next is not None and self._next[0] == case_id:
            taken.setdefault(self._next[1], []).append(self._next[2])
            self._next = next(self._rows, None)
        return taken


def _rows(table: pa.Table, shown: Shown) -> Iterator[tuple[str, Place, Any]]:
    for batch in table.to_batches(max_chunksize=_BATCH):
        samples = batch["sample"].to_pylist() if "sample" in batch.schema.names else [0] * len(batch)
        places = zip(batch["turn_id"].to_pylist(), samples, strict=True)
        yield from zip(batch["case_id"].to_pylist(), places, shown(batch), strict=True)


def write_traces(evaluation: Evaluation, folder: Path) -> None:
    """Writes one file for each evaluated conversation."""
    (folder / "traces").mkdir(exist_ok=True)
    for case_id, trace in _traces(evaluation, None, _WRITTEN):
        (folder / trace_file(case_id)).write_bytes(readable_json(trace, _DEPTH).encode())


def traces(evaluation: Evaluation, only: Collection[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the conversations one at a time in the order of the results: all, or those whose ids are in `only`."""
    return _traces(evaluation, only, _VALUES)


def _traces(
    evaluation: Evaluation, only: Collection[str] | None, form: TraceForm
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the conversations, with the rows of their turns in a form."""
    found = {
        "cases": evaluation.read(tables.CASES),
        "gold": evaluation.read(tables.TURNS),
        "results": evaluation.results,
        "attempts": evaluation.published(tables.ATTEMPTS),
        "validation": evaluation.read(tables.VALIDATION),
        "evidence": evaluation.published(tables.ALL_EVIDENCE),
        "metrics": evaluation.read(tables.METRICS).select([*_OF_METRIC, "case_id", "turn_id", "sample"]),
    }
    order = found["results"]["case_id"].unique()
    if only is not None:
        order = order.filter(pc.is_in(order, value_set=pa.array(sorted(only), pa.string())))
    cases = {row["case_id"]: row for row in _of_cases(found["cases"], order).to_pylist()}
    said = evaluation.published(tables.PROMPTS)
    prompts = dict(zip(said["prompt_hash"].to_pylist(), said["text"], strict=True))
    shown: dict[str, Shown] = {
        **dict.fromkeys(("gold", "results"), pa.RecordBatch.to_pylist),
        **dict.fromkeys(("validation", "evidence"), lambda batch: form.rows(_columns(batch, form))),
        "attempts": partial(_attempts, prompts, bool(evaluation.model["recorded"]), form),
        "metrics": partial(_metrics, form),
    }
    by_case = {name: ByCase(_of_cases(found[name], order), order, how) for name, how in shown.items()}
    for case_id in order.to_pylist():
        rows = {name: source.take(case_id) for name, source in by_case.items()}
        yield case_id, _trace(evaluation, cases[case_id], rows)


def _of_cases(table: pa.Table, order: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table["case_id"], value_set=order))


def _trace(evaluation: Evaluation, case: Row, rows: Mapping[str, Mapping[Place, list[Any]]]) -> dict[str, Any]:
    partition, model_version = evaluation.partition, evaluation.partition.model_version
    gold = {turn: row for (turn, _), (row,) in rows["gold"].items()}
    results = [row for (row,) in rows["results"].values()]
    return {
        "conversation_id": case["case_id"],
        "suite": partition.suite,
        "model_version": model_version,
        "eval_date": partition.eval_date.isoformat(),
        "simulated": evaluation.simulated,
        "all_right": all(row["correct"] is not False for row in results),
        "source": {"file": case["source_file"], "line": case["source_line"], "hash": case["source_hash"]},
        "cluster": case["cluster"],
        "tags": _loaded(case["tags"]),
        "features": _loaded(case["features"]),
        "case": _loaded(case["content"]),
        "turns": [_turn(row, gold.get(row["turn_id"], {}), rows, model_version) for row in results],
    }


def _turn(result: Row, gold: Row, rows: Mapping[str, Mapping[Place, list[Any]]], model_version: str) -> Row:
    place = result["turn_id"], result["sample"]
    return {
        "trace_id": trace_id(result["turn_id"], model_version),
        "turn_id": result["turn_id"],
        "turn_idx": result["turn_index"],
        "sample": result["sample"],
        **{name: result[name] for name in _RESULT},
        "expected_printed": gold.get("expected_printed"),
        "gold": _loaded(gold.get("gold")),
        "gold_problem": gold.get("gold_problem"),
        "expected_result": _loaded(gold.get("expected_result")),
        **{name: rows[name].get(place, []) for name in ("attempts", "validation", "evidence")},
        "metrics": dict(rows["metrics"].get(place, [])),
    }


def _columns(batch: pa.RecordBatch, form: TraceForm) -> Columns:
    """Returns what is shown of rows, by column."""
    columns: Columns = {n: batch[n].to_pylist() for n in batch.schema.names if n not in _PLACE}
    for name in _JSON & columns.keys():
        # Most are the same as others: an empty list, no metadata.
        values = {text: form.value(_loaded(text)) for text in set(columns[name])}
        columns[name] = [values[text] for text in columns[name]]
    return columns


def _attempts(prompts: Mapping[str, pa.Scalar], recorded: bool, form: TraceForm, batch: pa.RecordBatch) -> list[Any]:
    columns = _columns(batch, form)
    asked = [prompts[key].as_py() if key in prompts else None for key in columns["prompt_hash"]]
    told: Columns = {}
    if recorded:
        # For older imports the record holds the prompt that would have been sent, and the date on which the file was
        # read.
        known = [(_loaded(text) or {}).get(PROVENANCE) for text in batch["metadata"].to_pylist()]
        asked = [UNKNOWN if one is None else text for one, text in zip(known, asked, strict=True)]
        told[PROVENANCE] = [{name: (one or {}).get(name, UNKNOWN) for name in _PROVENANCE} for one in known]
        columns["asked_on"] = [
            None if one is None else day for one, day in zip(known, columns["asked_on"], strict=True)
        ]
    return form.rows({"number": columns.pop("number"), "prompt": asked, **told, **columns})


def _metrics(form: TraceForm, batch: pa.RecordBatch) -> list[tuple[str, Any]]:
    """Returns name and row of each metric: value and version, and label, reason, details and error if there are any."""
    columns = {name: batch[name].to_pylist() for name in _OF_METRIC}
    # Nearly all metrics have a value only.
    shown = form.rows({"value": columns["value"], "version": columns["scorer_version"]})
    given = zip(*(columns[name] for name in _IF_GIVEN), strict=True)
    for place in [place for place, found in enumerate(given) if any(one is not None for one in found)]:
        told = {name: values[place] for name, values in columns.items() if values[place] is not None}
        said = {name: _loaded(told[name]) if name in _JSON else told[name] for name in _IF_GIVEN if name in told}
        row = {"value": told.get("value"), **said, "version": told["scorer_version"]}
        (shown[place],) = form.rows({name: [value] for name, value in row.items()})
    return list(zip(columns["metric"], shown, strict=True))


def _loaded(text: str | None) -> Any:
    """Returns the JSON value in a text, or the text itself if it is not JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
