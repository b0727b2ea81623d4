"""`chat_history` with `metrics.json` and `metrics_summary.json`, and the sheet of code."""

import json
from typing import Any

import openpyxl
import pytest

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.paths import report_folder
from eval_pipeline.store.query import run_query
from eval_pipeline.tracks.pandas_code.chat_history import entry, summary
from eval_pipeline.tracks.pandas_code.sheet import SCORES
from eval_pipeline_tests.chains import ran
from eval_pipeline_tests.support import DAY, Lab, Puppet
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, needs_sandbox, stall_lab


@needs_sandbox
def test_a_report_holds_what_the_spec_names_of_each_turn_and_a_sheet_of_code(lab: Lab, puppet: type[Puppet]) -> None:
    """After a KeyError, again a KeyError, then success on one turn: the spec's worked example."""
    stall_lab(lab).versions({"name": "puppet", "provider": "puppet"})
    unknown = answer('result = df.groupby("fruits")["amount"].sum()')
    Puppet.answer = staticmethod(
        lambda call: unknown if call.case_id == "totals" and call.number < 2 else call.gold.oracle()
    )
    lab.evaluate("stall", publish=True)
    ran(lab.workspace(), Partition("stall", "puppet", DAY), "report")
    folder = report_folder(lab.home.reports, Partition("stall", "puppet", DAY))
    (turn,) = json.loads((folder / "chat_history" / "totals" / "metrics.json").read_text())
    assert set(turn) == {
        *("correctness_score", "quality_score", "performance_score", "overall_score"),
        *("prompt_understanding", "requirement_coverage", "error_recovery"),
    }
    understanding, coverage = turn["prompt_understanding"], turn["requirement_coverage"]
    assert understanding["understanding_score"] == pytest.approx(1.0)
    assert set(understanding["details"]) >= {
        *("column_extraction_score", "nl_parsing_score", "statistical_understanding_score"),
        *("extracted_columns", "mentioned_columns", "statistical_operations"),
    }
    assert coverage["coverage_score"] == pytest.approx(1.0)
    assert set(coverage["details"]) == {
        *("filter_conditions_coverage", "groupby_columns_coverage", "sorting_coverage", "join_conditions_coverage"),
        "missing_requirements",
    }
    recovery = turn["error_recovery"]
    assert [one["fix_quality"] for one in recovery.pop("recovery_details")] == [0.1, 1.0]
    assert recovery == {
        "has_error": True,
        "error_message": "KeyError: 'fruits' (line 1)",
        "recovery_attempts_count": 2,
        "recovery_success": True,
        "recovery_success_rate": 0.5,
        "error_fix_quality": pytest.approx(0.55),
        "recovery_score": pytest.approx(0.5483, abs=5e-5),
    }
    assert len(json.loads((folder / "chat_history" / "talk" / "metrics.json").read_text())) == 2
    # The summary counts recovery over turns with an error only.
    whole = json.loads((folder / "metrics_summary.json").read_text())["summary"]
    assert set(whole) == {
        *("average_correctness_score", "average_quality_score", "average_performance_score"),
        *("average_understanding_score", "average_coverage_score", "average_recovery_score", "average_overall_score"),
        *("errors_encountered", "total_recovery_attempts", "successful_recoveries", "recovery_success_rate"),
    }
    assert [whole[name] for name in RECOVERIES] == [1, 2, 1, 1.0, pytest.approx(0.5483, abs=5e-5)]
    assert whole["average_correctness_score"] == 1.0
    one = json.loads((folder / "chat_history" / "talk" / "metrics_summary.json").read_text())["summary"]
    assert (one["average_recovery_score"], one["recovery_success_rate"]) == (None, None)
    # A sheet of code is behind the shared ones, and its query gives its rows.
    book = openpyxl.load_workbook(folder / "report.xlsx")
    assert book.sheetnames[0] == "Overview"
    header, *cells = book["Code"].iter_rows(values_only=True)
    assert header[:5] == ("conversation_id", "turn_idx", "sample", "correct", "overall_score")
    rows = [dict(zip(header, row, strict=True)) for row in cells]
    assert [row["conversation_id"] for row in rows] == ["largest", "talk", "talk", "totals"]
    assert rows[3]["code"].startswith("totals = df.groupby")
    (sql,) = [row[2] for row in book["Queries"].iter_rows(values_only=True) if row[0] == "Code"]
    found = {(row["conversation_id"], row["turn_index"]): row for row in run_query(lab.home.store, sql).to_pylist()}
    for row in rows:
        same = found[row["conversation_id"], row["turn_idx"]]
        for name in (*SCORES, "correct", "failure_mode", "code", "reference_code", "question"):
            assert row[name] == same[name], name
        assert [row["generated ms"], row["reference ms"]] == [same["generated_ms"], same["reference_ms"]]


RECOVERIES = (
    *("errors_encountered", "total_recovery_attempts", "successful_recoveries", "recovery_success_rate"),
    "average_recovery_score",
)


def _entry(error: bool, recovered: bool | None) -> dict[str, Any]:
    scored = {"value": 0.5, "details": None}
    metrics: dict[str, Any] = dict.fromkeys(
        [f"{name}_score" for name in ("correctness", "quality", "performance", "overall", "understanding", "coverage")],
        scored,
    )
    metrics |= dict.fromkeys(("understanding_score_from_words", "coverage_score_from_words"), scored)
    nothing = {"value": None, "details": None}
    metrics |= dict.fromkeys(("recovery_success_rate", "error_fix_quality", "recovery_score"), nothing)
    metrics["has_error"] = {"value": float(error), "details": None}
    metrics["recovery_success"] = {"value": None if recovered is None else float(recovered), "details": None}
    metrics["recovery_attempts_count"] = {"value": 0.0 if recovered is None else 1.0, "details": None}
    return entry(metrics, None)


def test_eight_of_ten_errors_recovered_is_a_rate_of_eight_tenths() -> None:
    entries = [_entry(True, True)] * 8 + [_entry(True, False), _entry(True, None)] + [_entry(False, None)] * 5
    told = summary(entries)["summary"]
    assert told["recovery_success_rate"] == pytest.approx(0.8)
    assert told["errors_encountered"] == 10
    assert told["total_recovery_attempts"] == 9
