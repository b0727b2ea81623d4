"""The track through the whole pipeline: tables, recovery, second runs, the tier that ran."""

import subprocess
import sys

import pytest

from eval_pipeline.tracks.pandas_code.analysis import quality
from eval_pipeline_tests.support import Lab, Puppet
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, needs_sandbox, stall_lab

PUPPET = {"name": "puppet", "provider": "puppet"}
WRONG = answer('result = df.groupby("fruit")["amount"].max().reset_index()')
UNKNOWN = answer('result = df.groupby("fruits")["amount"].sum()')

pytestmark = needs_sandbox


def _said(answers: dict[tuple[str, int], str]) -> None:
    """Has the puppet give an answer by case and number of the attempt, the gold answer to all else."""
    Puppet.answer = staticmethod(
        lambda call: answers.get((f"{call.case_id}#{call.turn_index}", call.number), call.gold.oracle())
    )


def test_gold_scores_one_and_nothing_scores_zero(lab: Lab) -> None:
    stall_lab(lab)
    lab.versions({"name": "oracle", "provider": "oracle"}, {"name": "null", "provider": "null"})
    for version, correct in (("oracle", True), ("null", False)):
        lab.evaluate("stall", version, publish=True)
        rows = lab.sql(f"SELECT correct, correctness_score FROM pandas_turns WHERE model_version = '{version}'")
        assert rows == [(correct, float(correct))] * 4


def test_what_was_run_is_on_record(lab: Lab, puppet: type[Puppet]) -> None:
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
        ("stall/totals#0", "frame", "frame", False),
    ]
    assert lab.one("SELECT count(*) FROM answers WHERE expected_result = returned_result") == 3
    assert lab.sql("SELECT DISTINCT sandbox_tier IS NOT NULL FROM attempts") == [(True,)]
    assert lab.sql("SELECT table_name, rows, json_array_length(columns) FROM pandas_tables ORDER BY ALL") == [
        ("cities", 3, 2),
        ("sold", 6, 4),
    ]


def test_one_call_of_the_linter_finds_for_each_turn_what_is_in_its_code(
    lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(quality, "_ruff", lambda folder, lint=quality._ruff: (calls.append(folder), lint(folder))[1])
    stall_lab(lab).versions(PUPPET)
    unused, no_code, unwritten = answer("import os\nresult = 1"), "I cannot say.", answer("x = 1\nresult = y")
    _said({("largest#0", 0): unused, ("totals#0", 0): unwritten, **{("talk#1", n): no_code for n in range(3)}})
    lab.evaluate("stall", publish=True)
    rows = lab.sql("SELECT turn_id, details->>'$.findings[0].rule' FROM evidence WHERE kind = 'quality' ORDER BY 1")
    assert rows == [("stall/largest#0", "F401"), ("stall/talk#0", None), ("stall/totals#0", None)]
    assert len(calls) == 1


def test_an_unknown_column_is_recovered_from(lab: Lab, puppet: type[Puppet]) -> None:
    stall_lab(lab).versions(PUPPET)
    _said({("totals#0", 0): UNKNOWN})
    lab.evaluate("stall", publish=True)
    place = "WHERE turn_id = 'stall/totals#0'"
    assert lab.sql(f"SELECT number, outcome, error_class FROM attempts {place} ORDER BY number") == [
        (0, "failed", "column_error"),
        (1, "ran", None),
    ]
    ((correct, first, score, count),) = lab.sql(
        "SELECT r.correct, first_attempt_correct, recovery_score, recovery_attempts_count FROM turn_results AS r "
        f"JOIN pandas_turns AS t USING (turn_id) {place}"
    )
    assert (correct, first, count) == (True, False, 1)
    assert abs(score - (0.5 + 0.3 + 0.2 / 3)) < 1e-9
    (call,) = [call for call in Puppet.asked if call.number == 1]
    assert "KeyError: 'fruits' (line 1)" in call.prompt.messages[-1].text
    assert lab.sql(f"SELECT recovery_score FROM pandas_turns {place.replace('=', '<>')}") == [(None,)] * 3


def test_a_conversation_shows_the_results_before(lab: Lab, puppet: type[Puppet]) -> None:
    stall_lab(lab).versions({**PUPPET, "history": "own"})
    _said({("talk#0", 0): answer("result = 41")})
    lab.evaluate("stall")
    (second,) = [call for call in Puppet.asked if (call.case_id, call.turn_index) == ("talk", 1)]
    asked = second.prompt.messages[-1].text
    assert asked == (
        "Earlier question: How many sales were made in Oslo?\nIts result:\n41\n\n"
        "Join sold and cities on city, and count them per country."
    )
    tables = second.prompt.messages[1].text
    assert (
        "sold: 6 rows\n- fruit (str): e.g. apple, pear, plum\n- city (str): e.g. Oslo, Bergen, Lund; 17% missing"
        in tables
    )


def test_a_second_run_runs_nothing_again(lab: Lab, puppet: type[Puppet]) -> None:
    stall_lab(lab).versions(PUPPET)
    lab.evaluate("stall")
    expected = sorted((lab.home.expected).iterdir())
    assert len(expected) == 4
    before = lab.record_files()
    made = lab.evaluate("stall")
    assert all(result.reused for name, result in made.items() if name != "raw_dataset")
    assert lab.record_files() == before


def test_a_changed_table_asks_again(lab: Lab, puppet: type[Puppet]) -> None:
    stall_lab(lab).versions(PUPPET)
    lab.evaluate("stall")
    asked = len(Puppet.asked)
    table = lab.home.data / "suites" / "stall" / "tables" / "sold.csv"
    table.write_text(table.read_text() + "fig,Oslo,30,2024-03-01\n")
    made = lab.evaluate("stall")
    assert not made["generations"].reused
    assert len(Puppet.asked) == 2 * asked
    assert "fig | 39" in lab.one("SELECT expected FROM turn_results WHERE turn_id = 'stall/totals#0'")


def test_the_pipeline_imports_no_pandas_for_other_tracks() -> None:
    code = (
        "import sys, eval_pipeline.stages.generate, eval_pipeline.stages.score, eval_pipeline.tracks.pandas_code.track;"
        "from eval_pipeline.workspace.track_tables import track_tables; track_tables(); print('pandas' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
