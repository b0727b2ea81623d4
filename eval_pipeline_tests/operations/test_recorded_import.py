"""Recorded answers: whose field is ours, which turn is meant, and what a run will be able to read."""

import re
from typing import Any

import pytest

from eval_pipeline.operations.recorded.mapping import FieldMapping, nearest
from eval_pipeline.operations.recorded.reading import read_back
from eval_pipeline.operations.recorded.rows import FIELD_NAMES
from eval_pipeline.stages.attempts.ask import CUT_OFF_THINKING
from eval_pipeline.suites.cases import read_cases
from eval_pipeline.suites.headers import read_header
from eval_pipeline_plugins.tracks.finqa.responses.recorded import AS_WRITTEN, REASONING
from eval_pipeline_tests.operations.imports import imported
from eval_pipeline_tests.support import SHIPPED, Lab

ANSWERS: tuple[dict[str, Any], ...] = (
    {"record_id": "alpha", "turn": 0, "answer": "50"},
    {"record_id": "alpha", "turn": 1, "answer": "57"},
    {"record_id": "beta", "turn": 0, "answer": "0.84"},
)
MAPPED = ("--map", "case_id=record_id", "--map", "turn_index=turn")


def test_nested_fields_are_named_by_their_path(home: Lab) -> None:
    rows = tuple({"meta": {"id": row["record_id"], "i": row["turn"]}, "out": [row["answer"]]} for row in ANSWERS)
    mapped = ("--map", "case_id=meta.id", "--map", "turn_index=meta.i", "--map", "answer=out.0")
    assert "3 of 3 readable" in imported(home, rows, *mapped)


def test_a_turn_may_be_named_by_its_id(home: Lab) -> None:
    rows = tuple({"t": f"{row['record_id']}#{row['turn']}", "answer": row["answer"]} for row in ANSWERS)
    assert "3 predictions imported" in imported(home, rows, "--map", "turn_id=t")
    unknown = [{"t": "alpha#12", "answer": "1"}]
    assert "did you mean 'alpha#1'?" in imported(home, unknown, "--map", "turn_id=t", code=2)


def test_a_case_of_one_turn_needs_no_index(home: Lab) -> None:
    assert "1 predictions imported" in imported(home, [{"case_id": "beta", "answer": "0.84"}])
    several = imported(home, [{"case_id": "alpha", "answer": "50"}], code=2)
    assert "turn_index: case 'alpha' has 2 turns, and which one this answers is not told: --map turn_index" in several
    assert "the suite has no case 'bet'; did you mean 'beta'?" in imported(home, [{"case_id": "bet"}], code=2)


def test_an_unknown_field_is_told_with_the_nearest_name_and_how_to_map_it(home: Lab) -> None:
    said = imported(home, ({"case_id": "alpha", "turn_index": 0, "anser": "50"},), code=2)
    assert "anser: unknown field; did you mean 'answer'? (--map OURS=anser says what it is" in said
    said = imported(home, ANSWERS, code=2)
    assert "record_id: unknown field; did you mean 'case_id'?" in said
    assert "case_id: is missing" in said


def test_fields_that_mean_nothing_here_are_left_out_by_name_or_all(home: Lab) -> None:
    rows = tuple({**row, "note": "x", "grade": 1} for row in ANSWERS)
    said = imported(home, rows, *MAPPED, "--ignore", "note", code=2)
    assert "grade: unknown field" in said
    assert "note: unknown" not in said
    assert "3 predictions" in imported(home, rows, *MAPPED, "--ignore", "*")


@pytest.mark.parametrize(
    ("mapped", "told"),
    [
        ("case_id=recordid", "nothing in the file has a field 'recordid'; did you mean 'record_id'?"),
        ("record_id=case_id", "'record_id' is not a known field; our name stands on the left: --map case_id=record_id"),
        ("case_id", "expected OURS=THEIRS"),
        ("case_id=", "expected OURS=THEIRS"),
        ("case_id=record_id --map case_id=turn", "'case_id' is mapped twice"),
    ],
)
def test_a_wrong_mapping_is_one_sentence(home: Lab, mapped: str, told: str) -> None:
    assert told in imported(home, ANSWERS, *f"--map {mapped}".split(), code=2)


def test_what_is_mapped_goes_before_what_has_our_name() -> None:
    row = {"case_id": "theirs", "id": "ours"}
    assert FieldMapping.of(["case_id=id"]).applied(row, row) == {"case_id": "ours"}
    # Their field may have one of our names and mean another thing.
    swapped = {"answer": "alpha", "case_id": "50"}
    assert FieldMapping.of(["case_id=answer", "answer=case_id"]).applied(swapped, swapped) == {
        "case_id": "alpha",
        "answer": "50",
    }


def test_nothing_is_near_to_everything() -> None:
    assert nearest("zzzzqqq", FIELD_NAMES) == ""


def test_every_answer_is_read_and_the_columns_told_null_are_null(home: Lab) -> None:
    rows = (*ANSWERS[:2], {**ANSWERS[2], "answer": "roughly a lot"})
    said = imported(home, rows, *MAPPED)
    assert "2 of 3 readable" in said
    assert "1 like this: beta#0 'roughly a lot': the answer is read as no number, and the expected one is" in said
    assert f"NULL for all answers, since no calculation was recorded: {', '.join(AS_WRITTEN)}" in said
    home.evaluate(version="old")
    nulls = home.sql("SELECT metric FROM metrics GROUP BY metric HAVING count(value) = 0 AND count(label) = 0")
    assert {(name,) for name in AS_WRITTEN} <= {*nulls}


def test_columns_are_scored_where_there_is_a_calculation(home: Lab) -> None:
    said = imported(home, (*ANSWERS[:2], {**ANSWERS[2], "calculation": "(50 - 8) / 50"}), *MAPPED)
    assert "3 of 3 readable" in said
    assert "NULL for 2 answers, since no calculation was recorded" in said
    home.evaluate(version="old")
    found = home.sql("SELECT DISTINCT metric FROM metrics WHERE turn_id = 'small/beta#0' AND value IS NOT NULL")
    assert set(REASONING) <= {name for (name,) in found}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ((3, 3, 3), ""),
        ((3, None, 3), "NULL for the whole evaluation, since 1 of 3 answers does not tell its tokens: tokens in all"),
        ((None, None, None), "NULL for the whole evaluation, since 3 of 3 answers do not tell their tokens"),
    ],
)
def test_that_totals_of_tokens_will_be_missing_is_told(home: Lab, told: tuple[int | None, ...], said: str) -> None:
    rows = tuple({**row, "input_tokens": 7, "output_tokens": n} for row, n in zip(ANSWERS, told, strict=True))
    found = imported(home, rows, *MAPPED)
    assert (said in found) if said else ("whole evaluation" not in found)
    home.evaluate(version="old")
    total = home.one("SELECT tokens_total FROM cost_per_correct_answer")
    assert total == (None if None in told else 30)


def test_a_failed_call_has_no_tokens_to_tell(home: Lab) -> None:
    rows = tuple({**row, "input_tokens": 7, "output_tokens": 3} for row in ANSWERS[:2])
    failed = {"record_id": "beta", "turn": 0, "error": "timed out"}
    assert "whole evaluation" not in imported(home, (*rows, failed), *MAPPED)
    home.evaluate(version="old")
    assert home.one("SELECT tokens_total FROM cost_per_correct_answer") == 20


def test_a_wrong_import_is_taken_out_and_made_again_under_its_name(home: Lab) -> None:
    imported(home, tuple({**row, "answer": "1"} for row in ANSWERS), *MAPPED)
    said = imported(home, ANSWERS, *MAPPED, code=2)
    command = re.search(r"eval-pipeline (remove .*)", " ".join(said.split()))
    assert command, said
    gone = home.cli(*command[1].split(), "--yes")
    assert gone.code == 0, gone.text
    assert "3 of 3 readable" in imported(home, ANSWERS, *MAPPED)
    home.evaluate(version="old")
    assert home.one("SELECT count(*) FROM turn_results WHERE correct") == 3


def test_a_file_of_which_nothing_can_be_read_is_not_imported(home: Lab) -> None:
    """So that the right file can be imported under the same name."""
    rows = tuple({**row, "answer": None, "response": "I see."} for row in ANSWERS)
    said = imported(home, rows, *MAPPED, code=2)
    assert "not one of 3 answers can be read, e.g. alpha#0 'I see.'" in said
    assert "--map response=FIELD" in said
    assert "old" not in home.workspace().model_versions
    assert "3 of 3 readable" in imported(home, ANSWERS, *MAPPED)


@pytest.mark.parametrize(
    "suite", ["finqa_sample", "pandas_sample", "sdmx_sample", "sql_sample", "tickets_sample", "invoices_sample"]
)
def test_right_answers_of_every_track_are_readable_and_no_answers_are_not(suite: str) -> None:
    found = read_header(SHIPPED / "suites" / suite)
    track, cases = found.track(), read_cases(found)
    turns = [(case.id, turn) for case in cases for turn in case.turns]
    right = [{"case_id": case, "turn_index": turn.index, "text": track.oracle(turn)} for case, turn in turns]
    read = read_back(track, cases, right)
    assert (read.readable, read.unread) == (len(turns), ())
    worse = [{**row, "text": text} for row, text in zip(right, ["", "<think>so", "{"], strict=False)] + right[3:]
    read = read_back(track, cases, worse)
    assert read.readable == len(turns) - 3
    assert sum(kind.count for kind in read.unread) == 3
    assert next(read.sentences()) == f"{len(turns) - 3:,} of {len(turns):,} readable"


@pytest.mark.parametrize(
    ("suite", "text", "reason", "metrics"),
    [
        ("sql_sample", "SELECT 1", "no confidence was recorded", ("confidence", "confidence_calibration")),
        (
            "pandas_sample",
            "@mean[3]",
            "the prediction is an answer without code",
            (
                *("quality_score", "understanding_score_from_words", "coverage_score_from_words"),
                *("understanding_score", "coverage_score", "performance_score"),
            ),
        ),
    ],
)
def test_what_else_is_not_scored_is_told(suite: str, text: str, reason: str, metrics: tuple[str, ...]) -> None:
    found = read_header(SHIPPED / "suites" / suite)
    cases = read_cases(found)
    read = read_back(found.track(), cases, [{"case_id": cases[0].id, "turn_index": 0, "text": text}])
    assert dict(read.missing_columns) == {reason: (metrics, 1)}


@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_a_byte_order_mark_changes_nothing_in_how_answers_are_read(before: str) -> None:
    found = read_header(SHIPPED / "suites" / "tickets_sample")
    track, cases = found.track(), read_cases(found)
    right = track.oracle(cases[0].turns[0])

    def why(text: str) -> list[str]:
        read = read_back(track, cases, [{"case_id": cases[0].id, "turn_index": 0, "text": before + text}])
        return [kind.reason for kind in read.unread]

    assert why(right) == why(f"<think>so</think>{right}") == []
    assert why("<think>so") == [CUT_OFF_THINKING]


def test_a_field_with_a_name_of_ours_can_be_left_out(home: Lab) -> None:
    rows = tuple({**row, "said": row["answer"], "answer": "nonsense"} for row in ANSWERS)
    mapped = (*MAPPED, "--map", "response=said")
    assert "found response and answer" in imported(home, rows, *mapped, code=2)
    assert "3 of 3 readable" in imported(home, rows, *mapped, "--ignore", "answer")


def test_what_is_wrong_on_every_line_is_told_of_the_first_ones(home: Lab) -> None:
    rows = tuple({"case_id": "alpa", "turn_index": k, "answer": "50"} for k in range(300))
    said = imported(home, rows, code=2)
    assert said.count("the suite has no case 'alpa'") == 20
    assert "and 280 more, 300 in all" in said


def test_lines_that_are_no_json_are_all_told(home: Lab) -> None:
    file = home.home.root.parent / "broken.jsonl"
    file.write_text('{"a": \n[1]\n\n"x"\n')
    said = imported(home, file, code=2)
    assert [f"broken.jsonl:{line}:" in said for line in (1, 2, 4)] == [True] * 3


COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"case_id": "alpa"}, "case_id: the suite has no case 'alpa'; did you mean 'alpha'?"),
        ({"sample": 100}, "sample: expected a number below 100, found 100"),
        *(
            ({name: count}, f"{name}: expected a number of at most 1000000000000, found {count}")
            for name in COUNTS
            for count in (10**12 + 1, 9 * 10**18, 10**19)
        ),
    ],
)
def test_what_cannot_be_is_told_with_its_line(home: Lab, changed: dict[str, Any], told: str) -> None:
    said = imported(home, [{"case_id": "alpha", "turn_index": 0, "answer": "50"} | changed], code=2)
    assert f"rows.jsonl:1: {told}" in said
    assert "old" not in home.workspace().model_versions


def test_the_most_tokens_of_many_answers_add_up(home: Lab) -> None:
    rows = tuple({**row, **dict.fromkeys(COUNTS[:2], 10**12)} for row in ANSWERS)
    imported(home, rows, *MAPPED)
    home.evaluate(version="old")
    assert home.one("SELECT tokens_total FROM cost_per_correct_answer") == 6 * 10**12
