"""The recorded runs of a real model on the real sample: the figures that the project promises, read with SQL.

And of one that lacks a conversation: what headline and comparison say of it.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from eval_pipeline_tests import outside
from eval_pipeline_tests.support import SHIPPED, Lab, built_once, surroundings

pytestmark = outside.needs(outside.FINQA)

A, B, SHORT = "sonnet-a", "sonnet-b", "sonnet-short"
LEFT_OUT = "Single_ETR/2008/page_355.pdf-4"
"""A conversation of four turns that both runs have right; the short run is B without it."""
DAY = "2026-03-01"
RUNS = [outside.FINQA / f"predictions_claude-sonnet-4-6_run_{letter}.jsonl" for letter in "ab"]


def build(folder: Path) -> None:
    lab = Lab.at(folder)
    (lab.home.data / "model_versions.yaml").write_text((SHIPPED / "model_versions.yaml").read_text())
    short = folder / "short.jsonl"
    lines = RUNS[1].read_text().splitlines(keepends=True)
    short.write_text("".join(line for line in lines if json.loads(line)["case_id"] != LEFT_OUT))
    with surroundings(lab):
        commands = [["import", "convfinqa", str(outside.FINQA / "convfinqa_dev_sample.json"), "--suite", "sample"]]
        for name, file in ((A, RUNS[0]), (B, RUNS[1]), (SHORT, short)):
            priced = ["--priced-as", "claude-sonnet-4-6"]
            commands.append(["import", "predictions", str(file), "--suite", "sample", "--model-version", name, *priced])
        versions = [f"--model-version={name}" for name in (A, B, SHORT, "oracle", "null")]
        commands.append(["run", "--suite", "sample", *versions, "--eval-date", DAY, "--no-report"])
        commands.append(["compare", A, SHORT])
        said = [lab.cli(*arguments) for arguments in commands]
    assert [found.code for found in said] == [0] * len(commands), "".join(found.text for found in said)
    for name, found in (("imported", said[0]), ("headline", said[-2]), ("compared", said[-1])):
        (folder / name).write_text(found.out)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab.at(built_once(tmp_path_factory, "acceptance", build))


def said(lab: Lab, name: str) -> str:
    return (lab.home.root.parent / name).read_text()


def test_the_sample_is_imported_whole(sample: Lab) -> None:
    assert sample.sql("SELECT count(*), sum(turns) FROM cases WHERE suite = 'sample'") == [(119, 423)]
    assert sample.sql("SELECT count(*), count(gold_problem) FROM turns WHERE suite = 'sample'") == [(423, 0)]
    assert "119 cases with 423 turns imported" in said(sample, "imported")


def test_run_a_has_the_figures_that_are_promised(sample: Lab) -> None:
    ((turns, right),) = sample.sql(
        f"SELECT count(*), count(*) FILTER (numerical_match) FROM finqa_turns WHERE model_version = '{A}'"
    )
    assert (turns, right) == (423, 346)
    rows = sample.sql(
        f"SELECT n, round(mean, 4), low < mean AND mean < high FROM statistics WHERE model_version = '{A}' "
        "AND metric IN ('numerical_match', 'correct') AND split = 'all'"
    )
    assert rows == [(423, 0.8180, True)] * 2
    ((good, conversations, tokens, per_success, usd),) = sample.sql(
        "SELECT successful_conversations, conversations, tokens_total, tokens_per_success, usd_total "
        f"FROM cost_per_correct_answer WHERE model_version = '{A}'"
    )
    assert (good, conversations, tokens) == (85, 119, 1_484_860)
    assert round(per_success, 1) == 17_468.9
    assert round(usd, 2) == 5.37


def test_the_published_figures_are_those_of_the_turns(sample: Lab) -> None:
    """The same figures from the finest tables there are, so that no aggregate can be right by accident."""
    ((tokens, usd),) = sample.sql(
        f"SELECT sum(input_tokens + output_tokens), sum(usd) FROM attempts WHERE model_version = '{A}'"
    )
    assert tokens == 1_484_860
    assert round(usd, 2) == 5.37
    ((conversations, good),) = sample.sql(
        "SELECT count(*), count(*) FILTER (whole) FROM "
        f"(SELECT bool_and(correct) AS whole FROM turn_results WHERE model_version = '{A}' GROUP BY case_id)"
    )
    assert (conversations, good) == (119, 85)
    assert sample.one(f"SELECT count(*) FROM errors WHERE model_version = '{A}'") == 423 - 346


def test_run_b_and_the_ends_of_the_scale(sample: Lab) -> None:
    rows = sample.sql(
        "SELECT model_version, round(mean, 4) FROM statistics WHERE metric = 'correct' AND split = 'all' ORDER BY 1"
    )
    assert rows == [("null", 0.0), ("oracle", 1.0), (A, 0.8180), (B, 0.8061), (SHORT, 0.7967)]
    found = dict(sample.sql("SELECT model_version, accuracy FROM leaderboard('sample')"))
    assert found["oracle"] == 1.0
    assert sample.sql("SELECT DISTINCT failure_mode FROM errors WHERE model_version = 'null'") == [("no_answer",)]


def test_a_paired_look_agrees_with_the_two_accuracies(sample: Lab) -> None:
    rows = sample.sql(f"SELECT turn_id, correct_a, correct_b, change FROM compare('{A}', '{B}', 'sample')")
    assert len(rows) == len({row[0] for row in rows}) == 423
    changes = Counter(change for *_, change in rows)
    kinds = {(True, True): "same", (False, False): "same", (True, False): "broken", (False, True): "fixed"}
    assert all(kinds[a, b] == change for _, a, b, change in rows)
    right_a, right_b = (sum(bool(row[column]) for row in rows) for column in (1, 2))
    assert (right_a, right_b) == (346, 341)
    assert changes["broken"] - changes["fixed"] == 346 - 341
    assert changes["fixed"] > 0  # two runs of one model differ both ways


def test_the_two_runs_do_not_differ_significantly(sample: Lab) -> None:
    ((n, a, b, difference, low, high, verdict, least),) = sample.sql(
        "SELECT n, round(accuracy_a, 4), round(accuracy_b, 4), round(difference, 4), low_corrected, high_corrected, "
        f"verdict, minimum_detectable_difference FROM model_comparisons WHERE model_a = '{A}' AND model_b = '{B}'"
    )
    assert (n, a, b, difference) == (423, 0.8180, 0.8061, -0.0118)
    assert verdict == "not_significant"
    assert low < difference < 0 < high
    assert abs(difference) < least < 0.03


def test_the_discordant_turns_are_those_of_the_turns_themselves(sample: Lab) -> None:
    listed = sample.sql(
        "SELECT 'broken', unnest(broken_turns::VARCHAR[]) FROM model_comparisons "
        f"WHERE model_a = '{A}' AND model_b = '{B}' UNION ALL "
        "SELECT 'fixed', unnest(fixed_turns::VARCHAR[]) FROM model_comparisons "
        f"WHERE model_a = '{A}' AND model_b = '{B}'"
    )
    changed = sample.sql(f"SELECT change, turn_id FROM compare('{A}', '{B}', 'sample') WHERE change <> 'same'")
    assert sorted(listed) == sorted(changed)
    assert Counter(change for change, _ in listed) == {"broken": 7, "fixed": 2}


def test_every_model_version_starts_a_series(sample: Lab) -> None:
    rows = sample.sql("SELECT model_version, verdict, n FROM trends ORDER BY 1")
    assert rows == [(name, "start", 423) for name in ("null", "oracle", A, B, SHORT)]


def test_nothing_was_asked_of_any_model(sample: Lab) -> None:
    assert sample.sql("SELECT DISTINCT simulated, recorded FROM model_versions WHERE provider = 'recorded'") == [
        (False, True)
    ]
    assert sample.one(f"SELECT count(*) FROM attempts WHERE model_version = '{A}' AND number > 0") == 0


@pytest.mark.always
def test_the_headline_says_how_far_the_turns_got(sample: Lab) -> None:
    found = said(sample, "headline")
    assert f"coverage: {A}:" not in found, "nothing is missing"
    lacks = "of 423 planned turns, 4 were not asked and 1 had a response that could not be read; 5 count as wrong"
    assert f"coverage: {SHORT}: {lacks}" in found
    assert "planned 423" not in found, "told once"


def test_turns_that_were_never_answered_are_not_broken(sample: Lab) -> None:
    pair = f"FROM model_comparisons WHERE model_a = '{A}' AND model_b = '{SHORT}'"
    ((n, broken, fixed, turns, difference, p, exact),) = sample.sql(
        f"SELECT n, broken, fixed, broken_turns, difference, p_value, p_exact {pair}"
    )
    assert (n, broken, fixed) == (419, 7, 2)
    assert LEFT_OUT not in turns
    assert difference == pytest.approx(-5 / 419)
    assert p == exact == pytest.approx(0.1875)
    ((n, broken, unanswered, difference, p, word),) = sample.sql(
        "SELECT conservative_n, conservative_broken, unanswered_b, conservative_difference, conservative_p_value, "
        f"verdict {pair}"
    )
    assert (n, broken, unanswered, word) == (423, 11, 4, "not_significant")
    assert difference == pytest.approx(-9 / 423)
    assert p == pytest.approx(0.09375)


def test_compare_says_so_too(sample: Lab) -> None:
    found = said(sample, "compared")
    for words in (
        f"{A}: planned 423 · asked 423 · answered 423 · readable 423 · scored 423",
        f"{SHORT}: planned 423 · asked 419 · answered 419 · readable 418 · scored 423",
        "419 that both answered",
        "difference    −1.2 points [−2.7 to +0.4]",
        "not significant",
        "smallest true difference",
        "conservative  423 turns, those without an answer wrong: 11 broken, 2 fixed",
        "difference  −2.1 points [−4.4 to +0.3]",
        f"{SHORT} did not answer 4 of 423 turns",
    ):
        assert words in found, found
    assert found.count("    sample/") == 9


def test_the_leaderboard_and_the_paired_look_have_it(sample: Lab) -> None:
    query = "SELECT model_version, planned, asked, answered, readable, scored FROM leaderboard_details('sample')"
    found = {name: counts for name, *counts in sample.sql(query)}
    assert found[A] == [423, 423, 423, 423, 423]
    assert found[SHORT] == [423, 419, 419, 418, 423]
    changes = dict(sample.sql(f"SELECT change, count(*) FROM compare('{A}', '{SHORT}', 'sample') GROUP BY 1"))
    assert (changes["broken"], changes["fixed"], changes["unanswered"]) == (7, 2, 4)
