"""The track through the whole pipeline: tables, recovery, second runs, reports, packages."""

import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.paths import report_folder
from eval_pipeline.sandbox.layers import MissingPackagesError
from eval_pipeline.store.published.query import run_query
from eval_pipeline_plugins.tracks.pandas_code.analysis import quality
from eval_pipeline_plugins.tracks.pandas_code.metrics import FROM_WORDS
from eval_pipeline_plugins.tracks.pandas_code.shown.chat_history import entry, summary
from eval_pipeline_plugins.tracks.pandas_code.shown.sheet import SCORES
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.chains import ran
from eval_pipeline_tests.sandbox.test_layers import wheel
from eval_pipeline_tests.support import DAY, Lab, Puppet
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, needs_sandbox, scores, stall_lab

PUPPET = {"name": "puppet", "provider": "puppet"}
WRONG = answer('result = df.groupby("fruit")["amount"].max().reset_index()')

pytestmark = needs_sandbox


def _said(answers: dict[tuple[str, int], str]) -> None:
    """Has the puppet give an answer by case and number of the attempt, the gold answer to all else."""
    Puppet.answer = staticmethod(
        lambda call: answers.get((f"{call.case_id}#{call.turn_index}", call.number), call.gold.oracle())
    )


def test_what_was_run_is_on_record_and_runs_again_if_a_table_changes_only(lab: Lab, puppet: type[Puppet]) -> None:
    stall_lab(lab).versions(PUPPET)
    _said({("totals#0", 0): WRONG})
    lab.evaluate("stall", publish=True)
    assert lab.sql(
        "SELECT turn_id, correct, failure_mode, code IS NOT NULL, reference_calls FROM pandas_turns ORDER BY turn_id"
    ) == [
        ("stall/largest#0", True, None, True, 1),
        ("stall/talk#0", True, None, True, 2),
        ("stall/talk#1", True, None, True, 3),
        ("stall/totals#0", False, "missing_sort", True, 4),
    ]
    expected, given = lab.sql("SELECT expected, answer FROM turn_results WHERE turn_id = 'stall/totals#0'")[0]
    assert expected.splitlines()[:2] == [" | fruit | amount", "3 | plum | 20"]
    assert given.splitlines() == ["fruit | amount", "apple | 8", "fig | 9", "pear | 5", "plum | 20"]
    results = "expected_result->>'$.result.kind', returned_result->>'$.result.kind', expected_result = returned_result"
    assert lab.sql(f"SELECT turn_id, {results} FROM answers WHERE case_id = 'totals'") == [
        ("stall/totals#0", "frame", "frame", False)
    ]
    assert lab.one("SELECT count(*) FROM answers WHERE expected_result = returned_result") == 3
    assert lab.sql("SELECT DISTINCT sandbox_tier IS NOT NULL FROM attempts") == [(True,)]
    assert lab.sql("SELECT table_name, rows, json_array_length(columns) FROM pandas_tables ORDER BY ALL") == [
        ("cities", 3, 2),
        ("sold", 6, 4),
    ]
    assert len(list(lab.home.expected.iterdir())) >= 4
    before, asked = lab.record_files(), len(Puppet.asked)
    made = lab.evaluate("stall")
    assert all(result.reused for name, result in made.items() if name != "raw_dataset")
    assert lab.record_files() == before
    table = lab.home.data / "suites" / "stall" / "tables" / "sold.csv"
    table.write_text(table.read_text() + "fig,Oslo,30,2024-03-01\n")
    assert not lab.evaluate("stall", publish=True)["generations"].reused
    assert len(Puppet.asked) == 2 * asked
    assert "fig | 39" in lab.one("SELECT expected FROM turn_results WHERE turn_id = 'stall/totals#0'")


def test_a_conversation_shows_results_and_errors_and_is_linted_at_once(
    lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(quality, "_ruff", lambda folder, lint=quality._ruff: (calls.append(folder), lint(folder))[1])
    stall_lab(lab).versions({**PUPPET, "history": "own"})
    said = {"largest#0": "import os\nresult = 1", "talk#0": "result = 41", "totals#0": "x = df['fruits']\nresult = 1"}
    _said({(turn, 0): answer(code) for turn, code in said.items()} | {("talk#1", n): "I cannot." for n in range(3)})
    lab.evaluate("stall", upto="turn_metrics")
    rows = lab.sql("SELECT turn_id, details->>'$.findings[0].rule' FROM evidence WHERE kind = 'quality' ORDER BY 1")
    assert rows == [("stall/largest#0", "F401"), ("stall/talk#0", None), ("stall/totals#0", None)]
    assert len(calls) == 1

    place = "WHERE turn_id = 'stall/totals#0'"
    assert lab.sql(f"SELECT number, outcome, error_class FROM attempts {place} ORDER BY number") == [
        (0, "failed", "column_error"),
        (1, "ran", None),
    ]
    columns = "turn_results.correct, first_attempt_correct, recovery_score, recovery_attempts_count"
    assert lab.sql(f"SELECT {columns} FROM turn_results JOIN pandas_turns USING (turn_id) {place}") == [
        (True, False, pytest.approx(0.5 + 0.3 + 0.2 / 3), 1)
    ]
    (again,) = [call for call in Puppet.asked if (call.case_id, call.number) == ("totals", 1)]
    assert "KeyError: 'fruits' (line 1)" in again.prompt.messages[-1].text
    assert lab.one(f"SELECT recovery_score FROM pandas_turns {place.replace('totals', 'largest')}") is None

    second = next(call for call in Puppet.asked if (call.case_id, call.turn_index) == ("talk", 1))
    asked = second.prompt.messages[-1].text
    assert asked.startswith("Earlier question: How many sales were made in Oslo?\nIts result:\n41\n\nJoin sold and")
    tables = second.prompt.messages[1].text
    assert "sold: 6 rows\n- fruit (str): e.g. apple, pear, plum\n- city (str): e.g. Oslo" in tables
    assert "17% missing" in tables


WITH_PACKAGE = {
    "id": "one",
    "tables": "sold",
    "turns": [{"question": "Sum?", "code": "import tinypack\nresult = df.amount.sum() + tinypack.ANSWER"}],
}


@pytest.mark.always
@needs_sandbox
def test_packages_are_installed_by_their_command_only(lab: Lab, tmp_path: Path) -> None:
    stall_lab(lab, WITH_PACKAGE, packages="packages.txt", timed_runs=1)
    folder = lab.home.data / "suites" / "stall"
    (folder / "packages.txt").write_text(wheel(tmp_path / "wheels"))
    shared = TRACK.read_shared(folder, {"packages": "packages.txt", "timed_runs": 1})
    case = TRACK.read_case(WITH_PACKAGE, "stall", "cases.yaml", 1, shared)
    with pytest.raises(MissingPackagesError, match="`eval-pipeline packages install --suite stall` does that"):
        TRACK.check_gold(case)
    for told in ("tinypack==1.0 installed", "tinypack==1.0 were installed before"):
        ran = lab.cli("packages", "install", "--suite", "stall", "--wheels", str(tmp_path / "wheels"))
        assert ran.code == 0 and told in ran.text, ran.text
    assert TRACK.check_gold(case) == []
    found = scores(case, answer("from tinypack import ANSWER\nresult = df['amount'].sum() + ANSWER"), measured=True)
    assert (found["result_match"], found["performance_score"]) == (True, 1.0)


@pytest.mark.always
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
    words = [understanding["understanding_score_from_words"], coverage["coverage_score_from_words"]]
    assert [set(part["details"]) for part in (understanding, coverage)] == [{"missing_requirements"}] * 2
    assert set(words[0]["details"]) >= {
        *("column_extraction_score", "nl_parsing_score", "statistical_understanding_score"),
        *("extracted_columns", "mentioned_columns", "statistical_operations"),
    }
    assert coverage["coverage_score"] == pytest.approx(1.0)
    assert set(words[1]["details"]) == {
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
    # What words alone tell is in one table, which says so, and nowhere else.
    told = [(sheet.title, cell) for sheet in book for row in sheet.iter_rows(values_only=True) for cell in row]
    assert "overall_score" in {cell for _, cell in told}
    assert [sheet for sheet, cell in told if str(cell).endswith("_from_words")] == ["Overview"] * 3
    page = (folder / "report.html").read_text()
    assert page.count(">overall_score_from_words<") == 1 and FROM_WORDS in page
    header, *cells = book["Code"].iter_rows(values_only=True)
    assert header[:5] == ("conversation_id", "turn_idx", "sample", "correct", "overall_score")
    rows = [dict(zip(header, row, strict=True)) for row in cells]
    assert [row["conversation_id"] for row in rows] == ["largest", "talk", "talk", "totals"]
    assert rows[3]["code"].startswith("totals = df.groupby")
    (sql,) = [row[2] for row in book["Queries"].iter_rows(values_only=True) if row[0] == "Code"]
    found = {(row["conversation_id"], row["turn_idx"]): row for row in run_query(lab.home.store, sql).to_pylist()}
    for row in rows:
        same = found[row["conversation_id"], row["turn_idx"]]
        for name in (*SCORES, "correct", "failure_mode", "code", "reference_code", "question"):
            assert row[name] == same[name], name
        assert [row["generated ms"], row["reference ms"]] == [same["generated ms"], same["reference ms"]]


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
