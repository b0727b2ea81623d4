"""Overrides of the gold: what is checked, and what figures are with and without them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.analysis.aggregates.editions import headline as facts_of
from eval_pipeline.chain.wholeness import why_not_whole
from eval_pipeline.core.errors import InputError
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.headline import headline
from eval_pipeline.reports.contents.gold import edition_rows_told, overridden_text
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.suites.overrides import Override, with_gold
from eval_pipeline.suites.reviews.files import add_review, read_reviews
from eval_pipeline.tracks.capabilities import Audits
from eval_pipeline_tests.chains import ran_of_suite
from eval_pipeline_tests.gold_home import WHO, override
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.suites.reviews.test_review_files import review
from eval_pipeline_tests.support import DAY, SHIPPED, TWO_CASES, Lab, Puppet, number

HERE = Partition("small", "puppet", DAY)


def accuracies(lab: Lab) -> dict[str, tuple[int, float]]:
    rows = lab.sql("SELECT edition, n, mean FROM gold_editions WHERE metric = 'correct'")
    return {edition: (n, mean) for edition, n, mean in rows}


@pytest.fixture
def evaluated(small: Lab, puppet: type[Puppet], module_folder: Path) -> Lab:
    """Right on alpha#0 and beta#0; 58 where the gold of alpha#1 is 57."""
    puppet.answer = staticmethod(
        lambda call: number({"alpha#0": 50, "alpha#1": 58}.get(f"{call.case_id}#{call.turn_index}", 0.84))
    )
    made = small.made_once(module_folder / "evaluated", lambda lab: lab.evaluate())
    puppet.asked.clear()
    return made


@pytest.mark.parametrize("wrong", golden("gold_overrides.yaml"), ids=lambda found: found["name"])
def test_what_is_wrong_is_said_with_file_line_and_field(lab: Lab, wrong: dict[str, Any]) -> None:
    folder = lab.suite()
    (folder / "gold_overrides.yaml").write_text(wrong["text"])
    with pytest.raises(InputError) as caught:
        read_suite(read_header(folder))
    assert all(
        f"small/gold_overrides.yaml:{told}" in str(caught.value) for told in wrong["told"][:1] if told[0].isdigit()
    )
    assert all(told in str(caught.value) for told in wrong["told"])
    assert lab.cli("validate", "--suite", "small").code == 2


def test_it_is_no_file_of_cases(lab: Lab) -> None:
    folder = lab.suite()
    header = {"name": "small", "version": "1", "track": "finqa", "cases": "*.yaml"}
    (folder / "suite.yaml").write_text(yaml.safe_dump(header))
    (folder / "one.yaml").write_text(yaml.safe_dump(TWO_CASES[0]))
    (folder / "gold_overrides.yaml").write_text(yaml.safe_dump([WHO | {"turn": "alpha#0", "action": "excluded"}]))
    assert [case.id for case in read_suite(read_header(folder)).cases] == ["alpha"]


def test_without_overrides_there_is_one_edition(evaluated: Lab) -> None:
    assert accuracies(evaluated) == {"scored": (3, pytest.approx(2 / 3))}
    assert overridden_text(_headline(evaluated).editions) is None


@pytest.mark.parametrize(
    ("entry", "n", "mean"),
    [
        ({"action": "both", "gold": {"program": "add(50, 8)", "answer": 58}}, 3, 1.0),
        ({"action": "both", "gold": {"program": "add(50, 9)", "answer": 59}}, 3, 2 / 3),
        ({"turn": "alpha#0", "action": "excluded"}, 2, 0.5),
    ],
)
def test_figures_with_and_without(
    evaluated: Lab, puppet: type[Puppet], entry: dict[str, Any], n: int, mean: float
) -> None:
    override(evaluated, {"turn": "alpha#1", **entry})
    evaluated.evaluate()
    assert not puppet.asked, "nobody is asked again"
    assert accuracies(evaluated) == {"scored": (n, pytest.approx(mean)), "published": (3, pytest.approx(2 / 3))}
    assert evaluated.one("SELECT mean FROM statistics WHERE metric = 'correct' AND split = 'all'") == pytest.approx(
        mean
    )
    assert evaluated.one("SELECT n FROM statistics WHERE metric = 'correct' AND split = 'all'") == n
    kept = evaluated.sql(
        "SELECT mean, gold_edition FROM superseded_statistics WHERE metric = 'correct' AND split = 'all'"
    )
    assert [(pytest.approx(value), name) for value, name in kept] == [(2 / 3, "1")] or mean == pytest.approx(2 / 3)


@pytest.mark.always
def test_either_gold_is_right_where_both_are_accepted(evaluated: Lab, puppet: type[Puppet]) -> None:
    """The published one stays right: alpha#0 was answered by it."""
    override(evaluated, {"turn": "alpha#0", "action": "both", "gold": {"program": "51", "answer": 51}})
    evaluated.evaluate()
    rows = dict(evaluated.sql("SELECT turn_index, (correct, expected) FROM turn_results WHERE case_id = 'alpha'"))
    assert rows[0] == {"correct": True, "expected": "50"} or rows[0] == (True, "50")


def test_the_override_and_who_made_it_are_in_the_store(evaluated: Lab) -> None:
    override(evaluated, {"turn": "alpha#1", "action": "corrected", "gold": {"program": "58", "answer": 58}})
    evaluated.evaluate(publish=True)
    query = "SELECT turn_id, action, who, why, published, overridden, source_line FROM gold_overrides"
    assert evaluated.sql(query) == [("small/alpha#1", "corrected", "A. Reviewer", "looked it up", "57", "58", 1)]
    name, published, scored, turns = evaluated.sql(
        "SELECT gold_edition, published_hash, gold_hash, overridden_turns FROM suite_editions"
    )[0]
    assert (name, turns) == ("1 with 1 override", 1) and published != scored


def _headline(lab: Lab) -> Any:
    inputs = lab.inputs()
    return headline(inputs.workspace, inputs.place)


SENTENCE = "the gold of 1 turn is overridden, 1 of them excluded: accuracy 100% with, 67% without"


@pytest.mark.always
def test_never_silently(evaluated: Lab) -> None:
    """Headline, page, workbook, `statistics.json` and `validate` say that a turn is overridden and what it changes."""
    from openpyxl import load_workbook

    override(evaluated, {"turn": "alpha#1", "action": "excluded"})
    evaluated.evaluate()
    editions = _headline(evaluated).editions
    assert overridden_text(editions) == SENTENCE == overridden_text(edition_rows_told(facts_of(editions)))
    report = evaluated.stage("report")
    page = report.facts["page"].read_text()
    assert f"OVERRIDDEN GOLD: {SENTENCE}" in page and "looked it up" in page and "A. Reviewer" in page
    assert "1 with 1 override" in page
    book = load_workbook(report.facts["workbook"])
    cells = {cell.value for name in ("Overview", "Gold") for row in book[name].iter_rows() for cell in row}
    assert {f"OVERRIDDEN GOLD: {SENTENCE}", "looked it up", "small/alpha#1"} <= cells
    told = json.loads((Path(report.facts["folder"]) / "statistics.json").read_text())["gold_editions"]
    assert {row["edition"] for row in told} == {"scored", "published"}
    said = evaluated.cli("validate", "--suite", "small").out
    assert "that of 1 is overridden" in said and "small/alpha#1: excluded by A. Reviewer: looked it up" in said


def test_an_excluded_turn_is_in_no_count_of_how_far_turns_got_and_run_says_it(evaluated: Lab) -> None:
    """Else the turns that count as wrong without an answer would not add up."""
    override(evaluated, {"turn": "alpha#1", "action": "excluded"})
    evaluated.evaluate()
    assert evaluated.sql("SELECT planned, asked, answered, readable, scored FROM coverage") == [(2, 2, 2, 2, 2)]
    said = evaluated.cli("run", "--suite", "small", "--eval-date", "2026-03-01", "--no-report")
    assert f"small, puppet: {SENTENCE}." in said.err, said.text


def test_every_turn_but_the_excluded_ones_is_scored_once(evaluated: Lab) -> None:
    """And an evaluation that was scored before the override is still whole: it is published as it is."""
    override(evaluated, {"turn": "alpha#1", "action": "excluded"})
    ran_of_suite(evaluated.workspace(), "small", "raw_dataset", "cases")
    assert why_not_whole(evaluated.workspace(), HERE) is None
    evaluated.evaluate()
    assert why_not_whole(evaluated.workspace(), HERE) is None
    override(evaluated, {"turn": "beta#0", "action": "excluded"})
    ran_of_suite(evaluated.workspace(), "small", "raw_dataset", "cases")
    assert why_not_whole(evaluated.workspace(), HERE) is None


def test_a_decided_turn_is_not_offered_again(evaluated: Lab) -> None:
    override(evaluated, {"turn": "alpha#1", "action": "excluded"})
    evaluated.evaluate()
    ran_of_suite(evaluated.workspace(), "small", "gold_suspects")
    assert evaluated.sql("SELECT * FROM gold_suspects WHERE override IS NULL") == []


CHANGES = {
    "finqa_sample": {"program": "1", "answer": 1},
    "sql_sample": {"expected_sql": "SELECT 4711", "expected_tables": None},
    "pandas_sample": {"code": "result = 4711", "expected": None},
    "sdmx_sample": {"target": {"indicator_selection": []}},
    "tickets_sample": {"answer": "complaint"},
    "invoices_sample": {
        "answer": {"supplier": "A", "number": "1", "purchase_order": None, "lines": []}
        | {"date": "2000-01-01", "currency": "EUR", "total": 4711}
    },
}


@pytest.mark.parametrize("suite", CHANGES)
def test_every_track_can_be_overridden(suite: str) -> None:
    """The gold of one turn of a shipped suite is replaced, and nothing else of its case."""
    source = read_header(SHIPPED / "suites" / suite)
    track, found = source.track(), read_suite(source)
    assert isinstance(track, Audits)
    case, content = next(
        (case, content)
        for case, content in zip(found.cases, found.contents, strict=True)
        if not track.gold_is_empty(case.turns[-1])
    )
    index = len(case.turns) - 1
    made = Override(case.turns[index].id, case.id, index, "corrected", "A", "B", CHANGES[suite], 1)
    other = track.read_case(with_gold(track, parse_json(content), made), suite, "f", 1, found.shared)
    assert track.gold_json(other.turns[index]) != track.gold_json(case.turns[index])
    assert [turn.question for turn in other.turns] == [turn.question for turn in case.turns]
    assert [track.gold_json(turn) for turn in other.turns[:-1]] == [track.gold_json(turn) for turn in case.turns[:-1]]
    assert track.context_json(other) == track.context_json(case)


@pytest.mark.always
def test_importing_a_data_set_again_keeps_its_overrides_and_reviews(lab: Lab, tmp_path: Path) -> None:
    raw = {
        "id": "Single_ACME/2020/page_7.pdf-1",
        "doc": {"pre_text": "", "post_text": "", "table": {"2020": {"revenue": 120.0}, "2019": {"revenue": 100.0}}},
        "dialogue": {
            "conv_questions": ["what was revenue?"], "conv_answers": ["120"], "turn_program": ["120"],
            "executed_answers": [120.0],
        },
    }  # fmt: skip
    source = tmp_path / "small.json"
    source.write_text(json.dumps({"dev": [raw]}))
    assert lab.cli("import", "convfinqa", str(source), "--suite", "acme").code == 0
    path = lab.home.imported_suites / "acme" / "gold_overrides.yaml"
    path.write_text(yaml.safe_dump([WHO | {"turn": f"{raw['id']}#0", "action": "excluded"}]))
    add_review(path.parent, said := review())
    assert lab.cli("import", "convfinqa", str(source), "--suite", "acme").code == 0
    assert "excluded" in path.read_text()
    assert read_reviews(path.parent).reviews == (said,)
