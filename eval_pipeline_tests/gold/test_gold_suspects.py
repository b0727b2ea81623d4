"""Turns whose gold is doubted: by itself, by models that agree, by the oracle; in store, page and workbook."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation
from eval_pipeline.analysis.gold import answers
from eval_pipeline.analysis.gold.answers import voices
from eval_pipeline.analysis.gold.suspects import suspect_rows
from eval_pipeline.core.model import Partition
from eval_pipeline.stages.checks.verdicts import check_gold
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline_tests import outside
from eval_pipeline_tests.chains import checked, ran_of_suite
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, number

TURNS = 40
WRONG_GOLD = (3, 11, 29)
"""Turns that the suite has -1 for; every model version knows that 7 is right."""


def cases() -> list[dict[str, Any]]:
    return [
        case(f"case{i:02}", ("-1" if i in WRONG_GOLD else str(i), -1.0 if i in WRONG_GOLD else i)) for i in range(TURNS)
    ]


def answering(wrong: Mapping[int, float]) -> Any:
    """What a model version says: the truth but for some turns."""
    return staticmethod(
        lambda call: number(
            wrong.get(int(call.case_id[4:]), 7.0 if int(call.case_id[4:]) in WRONG_GOLD else int(call.case_id[4:]))
        )
    )


@pytest.fixture
def evaluated(lab: Lab, puppet: type[Puppet], module_folder: Path) -> Lab:
    made = lab.made_once(module_folder / "evaluated", evaluate_four)
    puppet.reset()
    return made


def evaluate_four(lab: Lab) -> None:
    """Three model versions that make a few mistakes, each its own, and one that both of the first two make."""
    lab.suite("small", cases())
    names = ("first", "second", "third")
    lab.versions(
        *({"name": name, "provider": "puppet", "model": name} for name in names), {"name": "gold", "provider": "oracle"}
    )
    mistakes = ({5: 99.0, 6: 98.0, 20: 55.0}, {8: 97.0, 9: 96.0, 20: 55.2}, {11: 1000.0, 12: 95.0, 20: 54.0})
    for name, wrong in zip(names, mistakes, strict=True):
        Puppet.answer = answering(wrong)
        lab.evaluate(version=name)
    lab.evaluate(version="gold")
    ran_of_suite(lab.workspace(), "small", "gold_suspects")


@pytest.mark.always
def test_planted_wrong_gold_is_at_the_top(evaluated: Lab) -> None:
    rows = evaluated.sql(
        "SELECT case_id, reason, agreed_answer, model_versions, for_gold, answered, score > 0.5, override "
        "FROM gold_suspects ORDER BY score DESC, turn_id"
    )
    assert rows[:3] == [
        ("case03", "agreement", "7", 3, 0, 3, True, None),
        ("case29", "agreement", "7", 3, 0, 3, True, None),
        ("case11", "agreement", "7", 2, 0, 3, True, None),
    ]
    # 55 and 55.2 are one answer by the track's own rule; 54 is not within 1% of it.
    assert rows[3:] == [("case20", "agreement", "55", 2, 0, 3, True, None)]
    evidence = evaluated.one("SELECT evidence FROM gold_suspects WHERE case_id = 'case11'")
    assert evidence == "2 of 3 model versions that answered say 7 (first, second), 0 agree with the gold's -1"


def test_it_is_made_once_and_again_when_an_evaluation_changes(evaluated: Lab, puppet: type[Puppet]) -> None:
    assert ran_of_suite(evaluated.workspace(), "small", "gold_suspects").reused
    puppet.answer = answering({})
    evaluated.evaluate(version="first", epoch="again")
    assert not ran_of_suite(evaluated.workspace(), "small", "gold_suspects").reused
    assert evaluated.sql("SELECT count(*) FROM gold_suspects WHERE case_id = 'case20'") == [(0,)]


def test_page_and_workbook_of_the_suite_list_them(evaluated: Lab) -> None:
    from openpyxl import load_workbook

    workspace = evaluated.workspace()
    folder = ran_of_suite(
        workspace, "small", "model_comparisons", "trends", "comparison_published", "comparison_report"
    )
    page = folder.facts["page"].read_text()
    assert "Suspected gold: 4 turns to look at" in page and "say 7 (first, second, third)" in page
    sheet = load_workbook(folder.facts["folder"] / "report.xlsx")["Gold"]
    assert {"small/case03#0", "small/case20#0"} <= {row[0].value for row in sheet.iter_rows()}


def test_page_and_workbook_of_an_evaluation_list_them(evaluated: Lab) -> None:
    from openpyxl import load_workbook

    report = evaluated.stage("report", evaluated.inputs(version="first"))
    assert "Suspected gold: 4 turns to look at" in report.facts["page"].read_text()
    sheet = load_workbook(report.facts["workbook"])["Gold"]
    assert "small/case11#0" in {row[0].value for row in sheet.iter_rows()}


def test_printed_against_executed_answer(lab: Lab) -> None:
    """A rounding, a percentage as a share, another quantity, and the other sign."""
    found = case("printed", ("0.25", 0.25), ("0.4898", 0.4898), ("332", 332.0), ("-2.1", -2.1), ("0.25", 0.25))
    for turn, printed in zip(found["turns"], ("25%", "48.9%", "432", "2.1", "0.2500"), strict=True):
        turn["printed"] = printed
    lab.suite("small", [found])
    lab.versions({"name": "puppet", "provider": "oracle"})
    ran_of_suite(lab.workspace(), "small", "raw_dataset", "cases", "gold_suspects")
    rows = lab.sql("SELECT turn_index, reason, score, model_versions FROM gold_suspects ORDER BY turn_index")
    assert rows == [(1, "contradiction", 0.2, 0), (2, "contradiction", 0.6, 0), (3, "contradiction", 0.3, 0)]
    verdict = checked(check_gold, lab.workspace(), "small")
    assert not verdict.passed and verdict.facts["contradictions"] == 3
    assert verdict.text == "the gold of 3 of 5 turns contradicts itself; table gold_suspects lists them"


def test_validate_counts_and_lists_them_and_does_not_say_that_all_gold_holds(lab: Lab) -> None:
    found = case("printed", ("332", 332.0), ("12", 12.0))
    found["turns"][0]["printed"] = "432"
    lab.suite("small", [found])
    lab.versions({"name": "puppet", "provider": "oracle"})
    said = lab.cli("validate", "--suite", "small")
    assert said.code == 0, said.text
    assert "the gold of 1 of 2 turns contradicts itself" in said.out and "all 2 turns holds" not in said.text
    assert "small/printed#0: the program '332' gives 332, the printed answer is 432: they differ by 23.1%" in said.err


def test_the_oracle_failing_a_strict_metric_is_a_reason(lab: Lab) -> None:
    found = case("printed", ("332", 332.0), ("12", 12.0))
    found["turns"][0]["printed"] = "432"
    lab.suite("small", [found])
    lab.versions({"name": "gold", "provider": "oracle"})
    lab.evaluate(version="gold")
    ran_of_suite(lab.workspace(), "small", "gold_suspects")
    rows = lab.sql("SELECT turn_index, reason, evidence FROM gold_suspects WHERE reason = 'oracle'")
    assert rows == [(0, "oracle", "the gold's own answer fails exact_match")]
    (both,) = lab.sql("SELECT DISTINCT turn_score FROM gold_suspects")
    assert both[0] == pytest.approx(1 - 0.4 * 0.8)


def test_what_any_sample_of_the_oracle_fails_counts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.suite("small", [case("plain", ("332", 332.0))])
    lab.versions({"name": "gold", "provider": "oracle", "samples_per_turn": 2})
    lab.evaluate(version="gold")
    read = Record.read

    def failing(self: Record, table: Table, key: RecordKey, columns: Sequence[str] | None = None) -> pa.Table:
        found = read(self, table, key, columns)
        for name, values in {"exact_match": [False, True], "program_match": [True, False]}.items():
            if columns and "exact_match" in columns:
                found = found.set_column(found.column_names.index(name), name, pa.array(values))
        return found

    monkeypatch.setattr(Record, "read", failing)
    (row,) = suspect_rows(lab.inputs())
    assert row["evidence"] == "the gold's own answer fails exact_match, program_match"


@outside.needs(outside.FINQA)
def test_on_the_public_sample_every_turn_that_both_runs_miss_alike_is_offered(lab: Lab) -> None:
    """The list holds what a reader would find by hand: both wrong, the same answer by the rule of `numerical_match`."""
    from eval_pipeline_plugins.tracks.finqa.programs.matching import answers_match

    source = outside.FINQA / "convfinqa_dev_sample.json"
    assert lab.cli("import", "convfinqa", str(source), "--suite", "sample").code == 0
    for run in "ab":
        file = str(outside.FINQA / f"predictions_claude-sonnet-4-6_run_{run}.jsonl")
        assert lab.cli("import", "predictions", file, "--suite", "sample", "--model-version", run).code == 0
        lab.evaluate("sample", run, publish=True)
    ran_of_suite(lab.workspace(), "sample", "gold_suspects", "comparison_published")
    rows = lab.sql(
        "SELECT a.turn_id, a.result::VARCHAR, b.result::VARCHAR FROM attempts a JOIN attempts b USING (turn_id) "
        "JOIN turn_results s ON s.turn_id = a.turn_id AND s.model_version = 'a' "
        "JOIN turn_results t ON t.turn_id = a.turn_id AND t.model_version = 'b' "
        "WHERE a.model_version = 'a' AND b.model_version = 'b' AND NOT s.correct AND NOT t.correct"
    )
    import json

    both = [(turn, *(json.loads(text).get("value") for text in told)) for turn, *told in rows if None not in told]
    alike = {turn for turn, a, b in both if a is not None and b is not None and answers_match(a, b)}
    listed = {turn for (turn,) in lab.sql("SELECT turn_id FROM gold_suspects WHERE reason = 'agreement'")}
    # What differs only in percent or fraction is one row.
    ((evidence, decided),) = lab.sql("SELECT evidence, override FROM gold_suspects WHERE reason = 'printing'")
    assert decided is None and len(alike - listed) <= int(evidence.split()[0]) < 30
    assert len(alike & listed) >= 50
    assert lab.one("SELECT count(*) FROM gold_suspects WHERE reason = 'contradiction'") == 16
    top = lab.sql("SELECT turn_id FROM gold_suspects ORDER BY turn_score DESC, turn_id LIMIT 1")
    assert top == [("sample/Double_ETR/2011/page_341.pdf#3",)]  # the program adds dollars where 3.5% is printed


@pytest.mark.parametrize(
    ("there", "heard"),
    [
        (["model", "model", "simulated", "oracle"], ["model", "model"]),
        (["model", "simulated", "simulated", "oracle"], ["simulated", "simulated"]),
        (["oracle", "oracle"], []),
    ],
)
def test_stand_ins_are_heard_only_where_there_are_not_two_models(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, there: list[str], heard: list[str]
) -> None:
    monkeypatch.setattr(answers, "knows_gold", lambda _, evaluated: evaluated.partition.model_version == "oracle")
    found = [CompleteEvaluation(Partition("small", kind, DAY), kind != "model", "full", "", "", {}) for kind in there]
    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet"})
    assert [one.partition.model_version for one in voices(lab.inputs(), found)] == heard
