"""The track through the whole pipeline: tables, recovery, second runs, the tier that ran."""

import pytest

from eval_pipeline.tracks.pandas_code.analysis import quality
from eval_pipeline_tests.support import Lab, Puppet
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, needs_sandbox, stall_lab

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
        ("stall/totals#0", "frame", "frame", False),
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
