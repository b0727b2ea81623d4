"""What is not answered or left out, through the stages: coverage, comparisons, gate, store, reports and commands."""

import json
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from eval_pipeline.analysis.baseline import baseline_verdict
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.core.reading.entries import FileEntry
from eval_pipeline.store.coverage import recorded_cases, recorded_coverage
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import COVERAGE, MODEL_COMPARISONS, TRENDS
from eval_pipeline.suites.left_out import LeftOutAtImport, read_left_out, write_left_out, wrong_case
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline_tests.analysis.comparisons.histories import SILENT, answering, night, rows, saying
from eval_pipeline_tests.gold_home import override
from eval_pipeline_tests.support import BROKEN, Lab, Puppet, command, number, response

DAY = night(0)


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def silent(forty: Lab, module_folder: Path) -> Lab:
    """Of 20 conversations `other` has 12 wrong, 6 unanswered, one refused, one unreadable; `puppet` has all right."""
    refused = response("no", call_error=CallErrorKind.REFUSED)
    said: dict[int, Any] = dict.fromkeys(range(12), number(-1)) | dict.fromkeys(range(12, 18), SILENT)

    answer = saying((said | {18: refused, 19: BROKEN}).get)

    def both(lab: Lab) -> None:
        answering(lab, "puppet", saying({}.get), upto="", publish=True)
        answering(lab, "other", answer, upto="", publish=True)

    made = forty.made_once(module_folder / "silent", both)
    Puppet.answer = staticmethod(answer)
    return made


def test_only_what_both_answered_is_broken_and_the_rest_stands_beside_it(silent: Lab) -> None:
    columns = "planned, asked, answered, readable, scored"
    found = silent.sql(f"SELECT model_version, {columns} FROM coverage ORDER BY 1")
    assert found == [("other", 40, 40, 28, 24, 40), ("puppet", 40, 40, 40, 40, 40)]
    of_other = f"SELECT {columns}, turns FROM leaderboard_details('small') WHERE model_version = 'other'"
    assert silent.sql(of_other) == [(40, 40, 28, 24, 40, 40)]
    changes = "SELECT change, answered_b, count(*) FROM compare_details('puppet', 'other', 'small') GROUP BY ALL"
    assert sorted(silent.sql(changes)) == [("broken", True, 28), ("unanswered", False, 12)]
    (row,) = rows(silent, MODEL_COMPARISONS)
    assert (row["model_a"], row["n"], row["clusters"], row["broken"], row["fixed"]) == ("other", 28, 14, 0, 28)
    assert (row["accuracy_a"], row["accuracy_b"], row["verdict"]) == (0.0, 1.0, "b_better")
    assert (row["conservative_n"], row["conservative_fixed"], row["conservative_verdict"]) == (40, 40, "b_better")
    assert (row["unanswered_a"], row["unanswered_b"]) == (12, 0)
    assert [row[f"{word}_a"] for word in columns.split(", ")] == [40, 40, 28, 24, 40]
    assert row["note"] == "other did not answer 12 of 40 turns"
    assert row["latency_ms_difference"] is not None, "a call that failed has no latency, those that both answered do"
    assert not {turn.rpartition("#")[0] for turn in json.loads(row["fixed_turns"])} & {"small/c12", "small/c17"}
    (other,) = [row for row in rows(silent, TRENDS) if row["model_version"] == "other"]
    assert [other[word] for word in ("planned", "asked", "answered", "readable", "n")] == [40, 40, 28, 24, 40]
    said = command("compare", "puppet", "other")
    assert said.code == 0, said.text
    for words in (
        "puppet: planned 40 · asked 40 · answered 40 · readable 40 · scored 40",
        "other: planned 40 · asked 40 · answered 28 · readable 24 · scored 40",
        "28 that both answered",
        "p 0.0001 (exact McNemar test by conversation)",
        "40 turns, those without an answer wrong: 40 broken, 0 fixed",
        "other did not answer 12 of 40 turns",
        "/suites/small/compare?versions=puppet,other&eval_dates=2026-03-01,2026-03-01",
        "28 turns, both answered, only puppet right",
    ):
        assert words in said.out, said.out


def test_a_model_that_does_not_answer_is_not_worse_where_it_does_but_does_not_pass_the_gate(forty: Lab) -> None:
    answering(forty, "puppet", saying({}.get))
    answering(forty, "other", saying(lambda case: SILENT if case < 12 else None))
    (row,) = rows(forty, MODEL_COMPARISONS)
    assert (row["difference"], row["verdict"], row["conservative_verdict"]) == (0.0, "not_significant", "b_better")
    assert "the figures disagree" in row["note"]
    told = baseline_verdict(forty.workspace(), Partition("small", "other", DAY), "puppet")
    assert "worse than puppet on 40 turns: −60 points" in told
    assert "other did not answer 24 of 40 turns" in told


def test_where_nothing_was_answered_by_both_there_is_no_verdict(forty: Lab) -> None:
    answering(forty, "puppet", saying({}.get))
    answering(forty, "other", lambda _: SILENT)
    (row,) = rows(forty, MODEL_COMPARISONS)
    assert (row["n"], row["verdict"], row["p_value"], row["difference"]) == (0, None, None, None)
    assert row["reason"] == "no turn was answered by both"
    assert (row["conservative_difference"], row["conservative_verdict"]) == (1.0, "b_better")
    said = command("compare", "puppet", "other")
    assert said.code == 0, said.text
    assert "no test       no turn was answered by both" in said.out


def test_page_workbook_and_files_tell_it(silent: Lab) -> None:
    said = command("run", "--suite", "small", "--model-version", "other", "--eval-date", DAY.isoformat())
    gaps = "of 40 planned turns, 12 had no response and 4 had a response that could not be read; 16 count as wrong"
    assert f"coverage: other: {gaps}" in said.out
    folder = silent.home.reports / "small" / "other" / DAY.isoformat()
    page = (folder / "report.html").read_text()
    assert f"COVERAGE: {gaps}" in page
    for word in ("planned", "asked", "answered", "readable", "scored"):
        assert f'<th scope="col">{word}</th>' in page
    overview = [[*row] for row in load_workbook(folder / "report.xlsx")["Overview"].iter_rows(values_only=True)]
    assert ["turns", 40, 40, 28, 24, 40] in [row[:6] for row in overview]
    assert json.loads((folder / "statistics.json").read_text())["coverage"] == {
        "planned": 40, "asked": 40, "answered": 28, "readable": 24, "scored": 40,
    }  # fmt: skip
    side_by_side = silent.home.reports / "compare" / "small" / DAY.isoformat()
    assert "other did not answer 12 of 40 turns" in (side_by_side / "report.html").read_text()
    book = load_workbook(side_by_side / "report.xlsx")
    standings = [[*row] for row in book["Overview"].iter_rows(values_only=True)]
    assert [40, 40, 28, 24, 40] in [row[2:7] for row in standings]


def test_the_budget_leaves_turns_out_and_they_are_not_scored(small: Lab) -> None:
    price = {"input": 1, "output": 1}
    small.versions({"name": "puppet", "provider": "puppet", "price": price, "max_cost_usd": 1e-9})
    small.evaluate()
    found = recorded_coverage(small.workspace().record, small.inputs().place)
    assert found.text() == "planned 3 · asked 0 · answered 0 · readable 0 · scored 0"
    assert found.gaps() == "of 3 planned turns, 3 were not asked"


def test_samples_are_counted_each(small: Lab) -> None:
    small.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": 2})
    Puppet.answer = staticmethod(lambda call: SILENT if call.sample else call.gold.oracle())
    small.evaluate()
    found = recorded_coverage(small.workspace().record, small.inputs().place)
    assert (found.planned, found.asked, found.answered, found.scored) == (6, 6, 3, 6)


def test_evaluations_of_yesterday_without_the_table_are_published_compared_and_made_whole_by_a_run(silent: Lab) -> None:
    record = silent.workspace().record
    for name in ("puppet", "other"):
        record.remove(COVERAGE, RecordKey.of(Partition("small", name, DAY)))
    assert command("publish").code == 0
    assert silent.sql("SELECT model_version, answered, scored FROM leaderboard_details('small') ORDER BY 1") == [
        ("other", None, 40), ("puppet", None, 40),
    ]  # fmt: skip
    said = command("compare", "puppet", "other")
    assert said.code == 0, said.text
    assert "other: not on record" in said.out
    assert "28 that both answered" in said.out, "which turns were answered the attempts say"
    asked = len(Puppet.asked)
    # A report of one that lacks it is still written, when another one is compared with it.
    assert command("report", "--suite", "small", "--model-version", "puppet").code == 0
    day = ("--eval-date", DAY.isoformat())
    done = command("run", "--suite", "small", "--model-version", "other", *day)
    assert "coverage: other: of 40 planned turns, 12 had no response and 4 had" in done.out, done.text
    assert "other: not on record" not in command("compare", "puppet", "other").out
    again = [call for call in Puppet.asked[asked:] if call.case_id not in {f"c{n}" for n in range(12, 19)}]
    assert again == [], "nobody is asked but for what got no response"


def counted(lab: Lab, scope: Scope | None = None) -> CaseCounts:
    lab.evaluate(scope=scope)
    return recorded_cases(lab.workspace().record, lab.inputs().place)


def test_a_part_what_was_left_out_and_the_budget_are_told_with_the_count(small: Lab) -> None:
    part = counted(small, Scope(cases=("alpha",)))
    assert part.text() == "1 of 2 cases; 1 left out because only a part of the suite was asked for"
    assert counted(small).text() == "all 2 cases"
    folder = small.home.data / "suites" / "small"
    write_left_out(folder, [LeftOutAtImport(case_id="gamma", why="gamma#0: 1 / 0 is nothing")])
    said = "2 of 3 cases; 1 left out because its gold did not hold when it was imported (gamma#0: 1 / 0 is nothing)"
    assert counted(small).text() == said


def test_the_budget_is_named(small: Lab) -> None:
    price = {"input": 1, "output": 1}
    small.versions({"name": "puppet", "provider": "puppet", "price": price, "max_cost_usd": 1e-9})
    assert counted(small).text() == "0 of 2 cases; 2 left out because the budget did not allow asking them"


def test_a_case_whose_turns_are_all_excluded_is_told_and_one_that_keeps_a_turn_counts(small: Lab) -> None:
    override(small, *({"turn": turn, "action": "excluded"} for turn in ("alpha#0", "beta#0")))
    found = counted(small)
    assert (found.cases, found.in_suite) == (1, 2)
    (cause,) = found.left_out
    assert (cause.cause, cause.cases) == ("excluded", 1)
    assert cause.examples[0].startswith("beta: ")


def test_a_wrong_field_and_a_wrong_line_are_named_with_their_place(tmp_path: Path) -> None:
    entry = FileEntry({"id": "a"}, "s/a.yaml", 3, None)
    problems = [Problem("s/a.yaml", 5, "conversation.0.target.dataset_id.3", "is missing"), Problem("", 1, "", "")]
    told = wrong_case(entry, problems)
    assert told.why == "s/a.yaml:5: dataset_id: is missing (and 1 more problem of this case)"
    assert wrong_case(entry, [Problem("s/a.yaml", 1, "id", "is missing")]).why == "s/a.yaml:1: id: is missing"
    folder = tmp_path / "suite"
    folder.mkdir()
    lines = [{"case_id": "a", "why": "b"}, {"case_id": 3, "why": "b"}]
    (folder / "left_out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError, match=r"^suite/left_out.jsonl:2: case_id: expected a text"):
        list(read_left_out(folder))
    (folder / "left_out.jsonl").write_text("{")
    with pytest.raises(InputError, match=r"^suite/left_out.jsonl:1: not a JSON object"):
        list(read_left_out(folder))
