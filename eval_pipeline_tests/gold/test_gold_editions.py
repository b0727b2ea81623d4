"""Editions of the gold: old answers scored under both without a call, and figures that say which one they show."""

from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.rescoring import rescore
from eval_pipeline_tests.chains import ran_of_suite
from eval_pipeline_tests.gold_home import override
from eval_pipeline_tests.support import DAY, TWO_CASES, Lab, Puppet, case, number

VERSIONS = ({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "puppet", "model": "second"})
HERE = Partition("small", "puppet", DAY)
CORRECTED = case("alpha", ("50", 50.0), ("add(50, 8)", 58.0), tags=["easy"])


@pytest.fixture
def evaluated(small: Lab, puppet: type[Puppet], module_folder: Path) -> Lab:
    """58 where the gold of alpha#1 is 57."""
    said = {"alpha#0": 50, "alpha#1": 58}
    puppet.answer = staticmethod(lambda call: number(said.get(f"{call.case_id}#{call.turn_index}", 0.84)))
    made = small.made_once(module_folder / "evaluated", lambda lab: lab.evaluate(publish=True))
    puppet.asked.clear()
    return made


def editions(lab: Lab) -> tuple[Any, ...]:
    return lab.sql("SELECT data_edition, data_hash, gold_edition, gold_hash FROM suite_editions")[0]


def test_data_set_and_gold_have_a_name_and_a_hash_each(evaluated: Lab) -> None:
    data, data_hash, gold, gold_hash = editions(evaluated)
    assert (data, gold) == ("1", "1") and len(data_hash) == len(gold_hash) == 32
    evaluated.suite("small", [CORRECTED, TWO_CASES[1]], version="2", gold_version="2026-11 reviewed")
    evaluated.evaluate(publish=True)
    assert editions(evaluated)[:3] == ("2", data_hash, "2026-11 reviewed")
    assert editions(evaluated)[3] != gold_hash
    asked = case("alpha", ("50", 50.0), ("add(50, 8)", 58.0), tags=["easy"])
    asked["turns"][0]["question"] = "another?"
    evaluated.suite("small", [asked, TWO_CASES[1]])
    ran_of_suite(evaluated.workspace(), "small", "raw_dataset", "cases", "comparison_published")
    assert editions(evaluated)[1] != data_hash


def test_a_changed_gold_is_scored_again_without_a_call_and_both_editions_stay(
    evaluated: Lab, puppet: type[Puppet]
) -> None:
    before = editions(evaluated)[3]
    evaluated.suite("small", [CORRECTED, TWO_CASES[1]], gold_version="reviewed")
    found = rescore(evaluated.workspace(), [HERE])[0]
    assert not found.problem and not puppet.asked
    assert (found.before, found.after) == (pytest.approx(2 / 3), 1.0)
    query = "metric = 'correct' AND split = 'all'"
    kept = evaluated.sql(f"SELECT mean, gold_edition, gold_hash FROM superseded_statistics WHERE {query}")
    assert kept == [(pytest.approx(2 / 3), "1", before)]
    shown = evaluated.sql("SELECT mean, name, gold_hash FROM gold_editions WHERE metric = 'correct'")
    assert shown == [(1.0, "reviewed", editions(evaluated)[3])]


def test_a_changed_question_is_not_scored_by_old_answers(evaluated: Lab, puppet: type[Puppet]) -> None:
    asked = case("alpha", ("50", 50.0), ("add(50, 7)", 57.0), tags=["easy"])
    asked["turns"][1]["question"] = "another?"
    evaluated.suite("small", [asked, TWO_CASES[1]])
    found = rescore(evaluated.workspace(), [HERE])[0]
    assert (
        "its questions or their gold have changed since; `eval-pipeline run` evaluates them anew" in found.problem
        and found.after is None
    )
    assert not puppet.asked
    assert evaluated.one("SELECT count(*) FROM attempts WHERE call_error IS NOT NULL") == 0


def test_overrides_are_rescored_without_a_call(evaluated: Lab, puppet: type[Puppet]) -> None:
    override(evaluated, {"turn": "alpha#1", "action": "corrected", "gold": {"program": "58", "answer": 58}})
    found = rescore(evaluated.workspace(), [HERE])[0]
    assert (found.before, found.after, found.problem) == (pytest.approx(2 / 3), 1.0, "") and not puppet.asked
    rows = evaluated.sql("SELECT edition, mean FROM gold_editions WHERE metric = 'correct' ORDER BY edition")
    assert rows == [("published", pytest.approx(2 / 3)), ("scored", 1.0)]


@pytest.mark.usefixtures("puppet")
def test_two_editions_are_not_compared(evaluated: Lab) -> None:
    evaluated.versions(*VERSIONS)
    override(evaluated, {"turn": "alpha#1", "action": "excluded"})
    evaluated.evaluate(version="second", publish=True)
    said = evaluated.cli("compare", "puppet", "second", "--suite", "small")
    assert said.code == 1, said.text
    assert "edition of the gold (they differ in " in said.out and "eval-pipeline rescore" in said.out
    rescore(evaluated.workspace(), [HERE])[0]
    assert "not compared" not in evaluated.cli("compare", "puppet", "second", "--suite", "small").out


@pytest.mark.always
def test_evaluations_by_another_gold_of_the_files_are_not_compared(evaluated: Lab, puppet: type[Puppet]) -> None:
    evaluated.versions(*VERSIONS)
    evaluated.suite("small", [CORRECTED, TWO_CASES[1]])
    evaluated.evaluate(version="second", publish=True)
    said = evaluated.cli("compare", "puppet", "second", "--suite", "small")
    assert said.code == 1 and "edition of the gold (they differ in gold)" in said.out, said.text


def test_a_suite_that_has_grown_is_compared_on_what_it_had(evaluated: Lab, puppet: type[Puppet]) -> None:
    evaluated.versions(*VERSIONS)
    evaluated.suite("small", [*TWO_CASES, case("gamma", ("1", 1.0))])
    evaluated.evaluate(version="second", publish=True)
    said = evaluated.cli("compare", "puppet", "second", "--suite", "small")
    assert said.code == 0 and "common turns  3" in said.out, said.text
