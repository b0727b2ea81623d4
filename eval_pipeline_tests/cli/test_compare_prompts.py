"""The story of a prompt: a changed sentence is told at the end of the run, and `compare` names it."""

import json

import pytest

from eval_pipeline.providers.base import Call
from eval_pipeline_tests.support import Lab, Puppet, number

DAYS = ("2026-03-01", "2026-03-02")


@pytest.fixture
def obedient(small: Lab) -> Lab:
    """The model says 1 where the prompt tells it to, and else what is right."""
    Puppet.answer = staticmethod(lambda call: _obeying(call))
    return small


def _obeying(call: Call) -> str:
    return number(1) if "Say 1." in call.prompt.text() else call.gold.oracle()


def test_a_changed_sentence_is_told_at_the_end_of_the_run_and_by_compare(obedient: Lab) -> None:
    both = ("--model-version", "puppet", "--model-version", "puppet+terse")
    for day, sentence in zip(DAYS, ("Be brief. Be right.", "Be brief. Say 1."), strict=True):
        obedient.suite(prompts={"terse": {"instructions": sentence}})
        said = obedient.cli("run", "--suite", "small", "--no-report", "--eval-date", day, *both)
        assert ("before:" in said.out) == (day == DAYS[1])
    (line,) = [line for line in said.out.splitlines() if "puppet+terse: 100% → " in line]
    assert line.startswith(f"before:   small, puppet+terse: 100% → 0% since {DAYS[0]}; prompt changed; ")
    assert "; 3 broken, 0 fixed, not significant: " in line
    assert line.endswith("eval-pipeline compare puppet+terse@before puppet+terse --suite small")

    found = obedient.cli("compare", "puppet+terse@before", "puppet+terse", "--format", "json")
    (row,) = json.loads(found.out)
    assert (row["causes"], row["fixed"], row["accuracy_b"]) == ("prompt changed", 0, 0.0)
    assert (row["name_a"], row["name_b"]) == tuple(f"puppet+terse ({day})" for day in DAYS)
    changes = [line.strip() for line in row["prompt_difference"].splitlines() if line[0] in "+-"]
    assert changes == ["-  Be right.", "+  Say 1."]

    matrix = obedient.cli("compare", "--matrix", "--format", "markdown").out
    assert "| model version | `suite's own` | `terse` |" in matrix
    assert "100%<br>1% to 100%" in matrix


def test_before_may_be_of_the_same_date(obedient: Lab) -> None:
    """The evaluation before the newest is then an earlier one of its date; going back asks nobody."""
    run = ("run", "--suite", "small", "--no-report", "--eval-date", DAYS[0], "--model-version", "puppet+terse")
    for sentence in ("Be right.", "Say 1.", "Be right."):
        obedient.suite(prompts={"terse": {"instructions": sentence}})
        said = obedient.cli(*run)
        assert ("; prompt changed; 3 broken, 0 fixed" in said.out) == (sentence == "Say 1.")
        if sentence == "Say 1.":
            (row,) = json.loads(obedient.cli("compare", "puppet+terse@before", "puppet+terse", "--format", "json").out)
            assert (row["causes"], row["accuracy_a"], row["accuracy_b"]) == ("prompt changed", 1.0, 0.0)
    assert len(Puppet.asked) == 6
    assert obedient.sql("SELECT newest, accuracy FROM evaluations ORDER BY newest") == [(False, 0.0), (True, 1.0)]
