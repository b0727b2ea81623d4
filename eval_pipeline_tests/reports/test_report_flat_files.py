"""Summary, turns, validation, errors, statistics and traces against the record."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from evaluations import HOSTILE_ID, HOSTILE_QUESTION, Made

from eval_pipeline.reports.files.csv_cells import harmless, harmless_text
from eval_pipeline.reports.files.statistics_json import statistics
from eval_pipeline.reports.places.paths import trace_file
from eval_pipeline.reports.profile import mean_name
from eval_pipeline.store import tables
from eval_pipeline.store.record import RecordKey
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import ROOT

Rows = list[dict[str, Any]]


def read(folder: Path, name: str) -> Rows:
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


@pytest.fixture(scope="module")
def results(weak: Made) -> Rows:
    return weak.workspace.record.read(tables.TURN_RESULTS, RecordKey.of(weak.partition)).to_pylist()


def test_turns_and_errors_are_those_of_the_record_with_every_metric_and_column(
    weak: Made, folder: Path, results: Rows
) -> None:
    turns = read(folder, "turns")
    assert [row["turn_id"] for row in turns] == [row["turn_id"] for row in results]
    assert [row["turn_idx"] for row in turns] == [row["turn_index"] for row in results]
    assert [row["correct"] for row in turns] == [row["numerical_match"] for row in turns]
    wanted = {metric.name for metric in weak.evaluation.profile.metrics}
    wanted |= {"ground_truth_program", "tokens", "latency_ms", "question", "expected", "answer", "conversation_id"}
    assert wanted <= turns[0].keys()
    with (folder / "errors.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header[:12] == [
        "trace_id", "conversation_id", "turn_idx", "question", "expected_answer", "error_type", "error_message",
        "has_type2_question", "has_non_numeric_values", "plan_steps", "operations_per_turn", "error_context",
    ]  # fmt: skip
    failed = [row["turn_id"] for row in results if not row["correct"]]
    assert [row[0] for row in rows] == [f"{turn}@weak" for turn in failed]
    assert all(json.loads(row[11])["trace_id"] == row[0] for row in rows)
    assert {row[5] for row in rows} >= {"wrong_answer", "value_error"}


def test_summary_has_a_row_a_conversation_with_means(folder: Path) -> None:
    turns, summary = read(folder, "turns"), read(folder, "summary")
    named = {
        "numerical_accuracy": "numerical_match",
        "soft_match_accuracy": "soft_match",
        "unit_agnostic_accuracy": "unit_agnostic_match",
        "sign_agnostic_accuracy": "sign_agnostic_match",
        "general_accuracy": "general_match",
        "avg_logic_recall": "logic_recall",
        "avg_operations_per_turn": "operations_per_turn",
    }
    assert [row["conversation_id"] for row in summary] == list(dict.fromkeys(row["conversation_id"] for row in turns))
    for row in summary:
        mine = [turn for turn in turns if turn["conversation_id"] == row["conversation_id"]]
        assert (row["turns"], row["correct_turns"]) == (len(mine), sum(turn["correct"] for turn in mine))
        assert row["all_right"] == all(turn["correct"] for turn in mine)
        assert row["tokens"] == sum(turn["tokens"] for turn in mine)
        assert row["usd"] is None
        assert row["has_type2_question"] == mine[0]["has_type2_question"]
        for mean, metric in named.items():
            values = [turn[metric] for turn in mine if turn[metric] is not None]
            assert row[mean] == (pytest.approx(sum(values) / len(values)) if values else None)
    assert {"has_duplicate_columns", "has_non_numeric_values"} <= summary[0].keys()


@pytest.mark.parametrize("name", ["summary", "turns", "validation", "errors"])
def test_csv_and_parquet_hold_the_same(folder: Path, name: str) -> None:
    with (folder / f"{name}.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    wanted = read(folder, name)
    assert len(found) == len(wanted) > 0
    assert list(found[0]) == list(wanted[0])
    for row, other in zip(found, wanted, strict=True):
        for column, value in other.items():
            text = row[column]
            if value is None:
                assert text == ""
            elif isinstance(value, bool):
                assert text == str(value).lower()
            elif isinstance(value, float):
                assert float(text) == value
            else:
                assert text == harmless_text(str(value))


def test_hostile_texts_are_no_formula_in_csv_and_no_path_of_a_trace(folder: Path) -> None:
    with (folder / "turns.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert f"'{HOSTILE_QUESTION}" in cells
    assert HOSTILE_QUESTION not in cells
    assert HOSTILE_QUESTION in [row["question"] for row in read(folder, "turns")], "Parquet has it as it is"
    path = folder / trace_file(HOSTILE_ID)
    assert path.parent == folder / "traces"
    trace = json.loads(path.read_text())
    assert (trace["conversation_id"], trace["turns"][0]["question"]) == (HOSTILE_ID, HOSTILE_QUESTION)


@pytest.mark.parametrize("entry", golden("csv_cells.yaml"), ids=lambda entry: repr(entry["text"]))
def test_texts_in_cells(entry: dict[str, str]) -> None:
    assert harmless_text(entry["text"]) == entry["cell"]
    table = harmless(pa.table({"text": [None, entry["text"], "plain"], "number": [1, 2, 3]}))
    assert table["text"].to_pylist() == [None, entry["cell"], "plain"]


def test_statistics_have_the_named_fields_and_each_its_uncertainty_or_a_reason(folder: Path, results: Rows) -> None:
    found = json.loads((folder / "statistics.json").read_text(), parse_constant=pytest.fail)
    correct = [row["correct"] for row in results]
    assert found["accuracy"] == found["numerical_accuracy"] == pytest.approx(sum(correct) / len(correct))
    for field in ("soft_match_accuracy", "unit_agnostic_accuracy", "sign_agnostic_accuracy", "avg_logic_recall"):
        assert 0 < found[field] <= 1
    assert found["avg_operations_per_turn"] > 0
    assert found["cost_per_correct_answer"] == found["cost"]["tokens_per_success"] > 0
    by_turn = found["accuracy_by_turn_number"]
    for index, share in by_turn.items():
        there = [row["correct"] for row in results if row["turn_index"] == int(index)]
        assert share == pytest.approx(sum(there) / len(there))
    assert list(by_turn) == sorted(by_turn, key=int) == list(found["avg_operations_by_turn"])
    assert found["simulated"] is True
    assert (found["scope"], found["eval_date"], found["suite_version"]) == ("full", "2026-01-05", "3")
    assert found["turns"] == found["turns_planned"] == len(results)
    assert found["usd_per_correct_answer"] is None
    assert found["cost"]["usd_reason"]
    assert "eval_pipeline" in found["software"]
    for metric, row in found["overall"].items():
        assert None not in (row["n"], row["clusters"]), metric
        complete = None not in (row["mean"], row["se"], row["low"], row["high"])
        assert complete or row["reason"], metric
    groups = json.loads((folder / found["splits_in"]).read_text(), parse_constant=pytest.fail)
    assert {"tag", "has_type2_question", "turn_number", "operations", "error_class"} <= groups["splits"].keys()
    assert groups["eval_date"] == found["eval_date"]
    assert "splits" not in found, "a reader of the former field fails rather than finds nothing"


def test_the_guide_names_every_field_of_statistics(weak: Made) -> None:
    """Fields that the form `avg_<metric>` and the like gives are named by it."""
    guide = (ROOT / "docs" / "reports.md").read_text().partition("### statistics.json")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", guide))
    by_form = {mean_name(metric.name, metric.kind) for metric in weak.evaluation.profile.averaged}
    assert statistics(weak.evaluation).keys() <= named | by_form


def test_traces_hold_everything_about_a_conversation(weak: Made, folder: Path, results: Rows) -> None:
    record, key = weak.workspace.record, RecordKey.of(weak.partition)
    attempts = record.read(tables.GENERATIONS, key).num_rows + record.read(tables.RECOVERY_ATTEMPTS, key).num_rows
    traces = [json.loads(path.read_text()) for path in (folder / "traces").iterdir()]
    turns = [turn for trace in traces for turn in trace["turns"]]
    assert sorted(turn["turn_id"] for turn in turns) == sorted(row["turn_id"] for row in results)
    assert sum(len(turn["attempts"]) for turn in turns) == attempts > len(turns)
    metrics = {metric.name for metric in weak.evaluation.profile.metrics}
    scored = record.read(tables.METRICS, key).filter(pc.field("metric") == "numerical_match")
    (version,) = set(scored["scorer_version"].to_pylist())
    assert re.fullmatch("[0-9a-f]{16}", version)
    for trace in traces:
        assert trace["all_right"] == all(turn["correct"] for turn in trace["turns"])
        assert trace["case"]["document"]["table"]
        assert [turn["turn_idx"] for turn in trace["turns"]] == list(range(len(trace["turns"])))
        for turn in trace["turns"]:
            assert turn["trace_id"] == f"{turn['turn_id']}@weak"
            assert turn["metrics"].keys() == metrics
            assert turn["metrics"]["numerical_match"] == {"value": float(turn["correct"]), "version": version}
            assert turn["evidence"][0]["kind"] == "value"
            assert turn["validation"][0]["verdict"] in ("valid", "suspicious", "invalid")
            assert turn["gold"]["program"]
            assert [attempt["number"] for attempt in turn["attempts"]] == list(range(len(turn["attempts"])))
            for attempt in turn["attempts"]:
                assert turn["question"].strip() in attempt["prompt"]
                assert attempt["outcome"] == "ran" or attempt["error_message"]
