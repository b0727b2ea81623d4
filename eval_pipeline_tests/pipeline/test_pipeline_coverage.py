"""Two recorded runs of a real model, of which one lacks a conversation: what headline and comparison say of it."""

import json
from pathlib import Path

import pytest

from eval_pipeline_tests import outside
from eval_pipeline_tests.support import Lab, built_once, surroundings

pytestmark = outside.needs(outside.FINQA)

LEFT_OUT = "Single_ETR/2008/page_355.pdf-4"
"""A conversation of four turns that both runs have right."""
DAY = "2026-03-01"


def build(folder: Path) -> None:
    lab = Lab.at(folder)
    (lab.home.data / "model_versions.yaml").write_text("model_versions: []\n")
    lines = (outside.FINQA / "predictions_claude-sonnet-4-6_run_b.jsonl").read_text().splitlines(keepends=True)
    short = folder / "b.jsonl"
    short.write_text("".join(line for line in lines if json.loads(line)["case_id"] != LEFT_OUT))
    files = {"a": outside.FINQA / "predictions_claude-sonnet-4-6_run_a.jsonl", "b": short}
    commands = [["import", "convfinqa", str(outside.FINQA / "convfinqa_dev_sample.json"), "--suite", "sample"]]
    for name, file in files.items():
        commands.append(["import", "predictions", str(file), "--suite", "sample", "--model-version", name])
    versions = [f"--model-version={name}" for name in files]
    commands.append(["run", "--suite", "sample", *versions, "--eval-date", DAY, "--no-report"])
    commands.append(["compare", "a", "b"])
    with surroundings(lab):
        said = [lab.cli(*arguments) for arguments in commands]
    assert [found.code for found in said] == [0] * len(commands), "".join(found.text for found in said)
    for name, found in (("headline", said[-2]), ("compared", said[-1])):
        (folder / name).write_text(found.out)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab.at(built_once(tmp_path_factory, "coverage", build))


def said(lab: Lab, name: str) -> str:
    return (lab.home.root.parent / name).read_text()


def test_the_headline_says_how_far_the_turns_got(sample: Lab) -> None:
    found = said(sample, "headline")
    assert "coverage: a: planned 423 · asked 423 · answered 423 · readable 423 · scored 423" in found
    assert "coverage: b: planned 423 · asked 419 · answered 419 · readable 418 · scored 423" in found
    assert (
        "of 423 planned turns, 4 were not asked and 1 had a response that could not be read; 5 count as wrong" in found
    )


def test_turns_that_were_never_answered_are_not_broken(sample: Lab) -> None:
    ((n, broken, fixed, turns, difference, p, exact),) = sample.sql(
        "SELECT n, broken, fixed, broken_turns, difference, p_value, p_exact FROM model_comparisons"
    )
    assert (n, broken, fixed) == (419, 7, 2)
    assert LEFT_OUT not in turns
    assert difference == pytest.approx(-5 / 419)
    assert p == exact == pytest.approx(0.1875)
    ((n, broken, unanswered, difference, p, word),) = sample.sql(
        "SELECT conservative_n, conservative_broken, unanswered_b, conservative_difference, conservative_p_value, "
        "verdict FROM model_comparisons"
    )
    assert (n, broken, unanswered, word) == (423, 11, 4, "not_significant")
    assert difference == pytest.approx(-9 / 423)
    assert p == pytest.approx(0.09375)


def test_compare_says_so_too(sample: Lab) -> None:
    found = said(sample, "compared")
    for words in (
        "a: planned 423 · asked 423 · answered 423 · readable 423 · scored 423",
        "b: planned 423 · asked 419 · answered 419 · readable 418 · scored 423",
        "419 that both answered",
        "difference    -0.0119",
        "conservative  423 turns, those without an answer wrong: 11 broken, 2 fixed",
        "difference  -0.0213",
        "b did not answer 4 of 423 turns",
    ):
        assert words in found, found
    assert found.count("    sample/") == 9


def test_the_leaderboard_and_the_paired_look_have_it(sample: Lab) -> None:
    query = (
        "SELECT model_version, planned, asked, answered, readable, scored FROM leaderboard_details('sample') ORDER BY 1"
    )
    assert sample.sql(query) == [("a", 423, 423, 423, 423, 423), ("b", 423, 419, 419, 418, 423)]
    changes = dict(sample.sql("SELECT change, count(*) FROM compare('a', 'b', 'sample') GROUP BY 1"))
    assert (changes["broken"], changes["fixed"], changes["unanswered"]) == (7, 2, 4)
