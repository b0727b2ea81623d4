"""Why cases are left out of an evaluation: a part of the suite, the budget, overrides, or by an importer."""

import json
from pathlib import Path

import pytest

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.left_out import CaseCounts
from eval_pipeline.store.coverage import recorded_cases
from eval_pipeline.suites.entries import Entry
from eval_pipeline.suites.left_out import LeftOutAtImport, read_left_out, write_left_out, wrong_case
from eval_pipeline.workspace.scope import Scope
from eval_pipeline_tests.gold_home import override
from eval_pipeline_tests.support import Lab, Puppet


@pytest.fixture
def small(lab: Lab, puppet: type[Puppet]) -> Lab:
    """Two cases in finqa, alpha with two turns and beta with one."""
    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet"})
    return lab


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
    entry = Entry({"id": "a"}, "s/a.yaml", 3, None)
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
