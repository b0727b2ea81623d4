"""The shipped suite: that its gold is right, its mutants, what explains a wrong answer, what nothing is paid for.

With the campaign of docs/pandas.md: all mutants of the reference code, refuted and named by what they lack.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.operations.suite_work.mutation import equivalent_mutants
from eval_pipeline.stages.checks.ends import check_ends
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline_plugins.tracks.pandas_code.responses.recorded import recorded_response
from eval_pipeline_plugins.tracks.pandas_code.robust.answers import Behaviour, behaviour_of
from eval_pipeline_plugins.tracks.pandas_code.robust.examined import mutants_on_variants, variants_of
from eval_pipeline_plugins.tracks.pandas_code.robust.explaining import explained
from eval_pipeline_plugins.tracks.pandas_code.robust.running import results_of, same
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import VARIANTS, of_kind
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import Kind, Known, Mutant, mutants_of
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import SHIPPED
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, attempt, needs_sandbox, scores_of, unmeasured
from eval_pipeline_tests.tracks.pandas_code.rewrites import rewrites

SAMPLE = SHIPPED / "suites" / "pandas_sample"
BASELINES = SHIPPED / "baselines" / "pandas_sample"
AT_MOST = 0.15
SHARE_REFUTED, SHARE_NAMED = 0.95, 0.9
DRAWN = ("sales_busiest_day", "customers_club_south", "turnover_by_region")
"""Cases that several tests are about, as their variants are made once."""
KNOWN = Known(
    {"t": {"a": "int64", "b": "int64", "s": "str", "day": "datetime64[us]"}}, {"s": ("red", "blue"), "b": ("1", "2")}
)


@pytest.mark.parametrize("entry", golden("pandas_mutants.yaml"), ids=lambda entry: entry["code"])
def test_mutants_by_golden_cases(entry: dict[str, Any]) -> None:
    found = {
        mutant.words: (str(mutant.kind), mutant.dropped, mutant.code) for mutant in mutants_of(entry["code"], KNOWN)
    }
    assert {words: list(told) for words, told in found.items()} == {
        one["words"]: [one["kind"], one.get("dropped", False), one["code"]] for one in entry["mutants"]
    }


def test_mutants_of_one_requirement_are_told_together() -> None:
    found = mutants_of('result = df[df["a"] > 3]["b"].sum()', KNOWN)
    about_a = {mutant.requirement for mutant in found if mutant.kind in (Kind.FILTER, Kind.BOUNDARY, Kind.CONSTANT)}
    assert len(about_a) == 1


def _met(case: Case, code: str) -> dict[str, Any]:
    tried = attempt(case, answer(code))
    with unmeasured():
        evidence = of_kind(TRACK.gather(case, case.turns[0], tried), VARIANTS)
    assert evidence is not None
    told: dict[str, Any] = evidence.details["met"]
    return told


@needs_sandbox
def test_a_dropped_condition_is_named_though_the_given_tables_do_not_tell(sample: dict[str, Case]) -> None:
    """`readings_humid_nights`: the code is written otherwise, has dead code with all conditions, and lacks one."""
    case = sample["readings_humid_nights"]
    code = (
        "if pd is None:\n    df = df[(df['temperature'] < 12)]\n"
        "cold = df.query('temperature < 12')\n"
        "early = cold[cold.taken_at.dt.hour.lt(6)]\nresult = float(np.nanmean(early.humidity))"
    )
    met = _met(case, code)
    assert met["exact"] is True
    assert met["words"] == ["`status == 'ok'` is missing"]
    assert met["kinds"] == ["filter"]
    assert 0 < met["understanding"] == met["coverage"] < 1


@needs_sandbox
def test_what_is_altered_is_covered_and_not_understood(sample: dict[str, Case]) -> None:
    met = _met(sample["sales_web_bulk"], "web = df[df.channel == 'web']\nresult = int((web.quantity > 5).sum())")
    assert met["words"][0] == "`quantity > 5` where the reference has `quantity >= 5`"
    assert met["coverage"] == 1.0 > met["understanding"]


@needs_sandbox
def test_values_that_are_set_against_each_other_occur_together(sample: dict[str, Case]) -> None:
    """`readings_correlation`: two sensors on the same days; rows drawn at random seldom have a day of both."""
    gold = sample["readings_correlation"].turns[0].gold
    assert {one.kind for one in variants_of(gold)} == {"named values"}
    code = str(gold.code)
    turned = behaviour_of(gold, code.replace('daily["S01"].corr(daily["S24"])', 'daily["S24"].corr(daily["S01"])'))
    medians = behaviour_of(gold, code.replace('values="temperature"', 'values="temperature", aggfunc="median"'))
    assert turned is not None and medians is not None
    assert len(turned.right) == 2
    assert all(turned.right)
    assert not any(medians.right)


def _refuted(cases: list[Case], count: int) -> tuple[dict[str, int], list[str]]:
    """Returns how many rewrites a turn give the expected result on the given tables, and those refuted on variants."""
    tried, refuted = {}, []
    for turn in (turn for case in cases for turn in case.turns):
        gold, variants = turn.gold, variants_of(turn.gold)
        texts = rewrites(gold.code, tuple(gold.context.paths), 3 * count, 7)
        expected, given = expected_result(gold), results_of(gold, texts, [{}])
        right = [text for text, (one,) in zip(texts, given, strict=True) if same(gold, one, expected)][:count]
        tried[turn.id] = len(right)
        for text, found in zip(right, results_of(gold, right, [one.tables for one in variants]), strict=True):
            if not all(same(gold, one, variant.expected) for one, variant in zip(found, variants, strict=True)):
                refuted.append(f"{turn.id}:\n{text}")
    return tried, refuted


@pytest.mark.always
@needs_sandbox
def test_another_text_of_the_reference_code_is_not_refuted(sample: dict[str, Case]) -> None:
    tried, refuted = _refuted([sample[name] for name in DRAWN], 3)
    assert refuted == []
    assert set(tried.values()) == {3}


@needs_sandbox
@pytest.mark.soak
def test_twenty_other_texts_of_any_reference_code_are_not_refuted(sample: dict[str, Case]) -> None:
    tried, refuted = _refuted([*sample.values()], 20)
    print(f"{sum(tried.values())} right rewrites of {len(tried)} turns")
    assert refuted == []
    assert len(tried) >= 101
    assert {turn: count for turn, count in tried.items() if count < 20} == {}


@needs_sandbox
def test_a_right_answer_lacks_no_requirement_and_a_mean_for_a_median_does(sample: dict[str, Case]) -> None:
    case = sample["tickets_slowest_topic"]
    gold = case.turns[0].gold
    for text in rewrites(gold.code, tuple(gold.context.paths), 2, 7):
        met = _met(case, text)
        assert (met["understanding"], met["coverage"], met["words"]) == (1.0, 1.0, [])
    means = _met(case, str(gold.code).replace("median", "mean"))
    assert means["kinds"] == ["aggregation"]
    assert means["understanding"] < means["coverage"] == 1.0


def _answers(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (BASELINES / f"{name}.jsonl").read_text().splitlines()]


def test_the_shipped_baselines_are_those_of_the_generator(tmp_path: Path) -> None:
    script = SHIPPED / "generators" / "pandas_sample" / "baselines.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    shipped = {path.name: path.read_text() for path in BASELINES.iterdir()}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == shipped
    assert len(shipped) == 5
    assert all(len(text.splitlines()) == 101 for text in shipped.values())


BASELINE_NAMES = ["zero", "dead_code", "first_mean", "head", "question_numbers"]


def _paid(sample: dict[str, Case], lines: list[dict[str, Any]]) -> dict[str, float]:
    """The answers that more is paid for than may be."""
    said = [(sample[line["case_id"]], line["turn_index"], [recorded_response(line)]) for line in lines]
    overall = [one["overall_score"] for one in scores_of(said)]
    names = [f"{line['case_id']}#{line['turn_index']}" for line in lines]
    return {name: score for name, score in zip(names, overall, strict=True) if score > AT_MOST}


@needs_sandbox
@pytest.mark.parametrize("name", BASELINE_NAMES)
def test_nothing_is_paid_for_an_answer_that_ignores_the_question(sample: dict[str, Case], name: str) -> None:
    assert _paid(sample, [line for line in _answers(name) if line["case_id"] in DRAWN[:2]]) == {}


@needs_sandbox
@pytest.mark.soak
@pytest.mark.parametrize("name", BASELINE_NAMES)
def test_nothing_is_paid_on_any_turn(sample: dict[str, Case], name: str) -> None:
    assert _paid(sample, _answers(name)) == {}


def _is_named(mutant: Mutant, words: Sequence[str]) -> bool:
    """Whether a step concerns the piece of code that the mutant drops or alters."""
    pieces = {mutant.requirement.rsplit(" #", 1)[0], mutant.was.replace("`", "")}
    told = [
        word.rsplit(" where the reference has ", 1)[-1].removesuffix(" is missing").replace("`", "") for word in words
    ]
    return any(piece in one or one in piece for piece in pieces for one in told)


def _tried(cases: list[Case]) -> tuple[list[str], list[str], list[str], int]:
    """Writes each mutant in another way and scores it as an answer.

    Returns:
        Mutants that are refuted, those that are not, those of the refuted ones whose requirement is not named, and how
        many are to be named: those that run on the given tables (others have crashed, which is said instead) and that
        the variants tell from the reference code.
    """
    listed = equivalent_mutants(SAMPLE, "pandas_sample")
    refuted, kept, unnamed, told_apart = [], [], [], 0
    for turn in (turn for case in cases for turn in case.turns):
        gold, variants = turn.gold, variants_of(turn.gold)
        gives = mutants_on_variants(gold)
        tried = [one for one in gives if one.mutant.words not in listed.get(turn.id, ())]
        names = tuple(gold.context.paths)
        codes = [(rewrites(one.mutant.code, names, 1, 11) or [one.mutant.code])[0] for one in tried]
        given = results_of(gold, codes, [{}])
        found = results_of(gold, codes, [one.tables for one in variants]) if variants else [[] for _ in codes]
        expected = expected_result(gold)
        for one, code, on_given, results in zip(tried, codes, given, found, strict=True):
            right = tuple(same(gold, got, variant.expected) for got, variant in zip(results, variants, strict=True))
            name = f"{turn.id}: {one.mutant.words}"
            (kept if same(gold, on_given[0], expected) and all(right) else refuted).append(name)
            if on_given[0] is not None and not all(right):
                told_apart += 1
                behaviour = Behaviour(tuple(results), right, None)
                words = explained(gold, code, on_given[0], behaviour, right=False).words
                if not _is_named(one.mutant, words):
                    unnamed.append(f"{name} -> {words}")
    return refuted, kept, unnamed, told_apart


@needs_sandbox
def test_mutants_of_a_turn_are_refuted_and_named(sample: dict[str, Case]) -> None:
    refuted, kept, unnamed, told_apart = _tried([sample[DRAWN[2]]])
    assert len(refuted) >= SHARE_REFUTED * (len(refuted) + len(kept)), kept
    assert told_apart >= 5
    assert len(unnamed) <= (1 - SHARE_NAMED) * told_apart, unnamed


@needs_sandbox
@pytest.mark.soak
def test_mutants_of_all_turns_are_refuted_and_named(sample: dict[str, Case]) -> None:
    refuted, kept, unnamed, told_apart = _tried([*sample.values()])
    print(f"{len(refuted)} refuted, {len(kept)} not: {kept}")
    print(f"of {told_apart} told apart {len(unnamed)} are not named:", *unnamed, sep="\n")
    assert len(refuted) + len(kept) > 600
    assert len(refuted) >= SHARE_REFUTED * (len(refuted) + len(kept))
    assert len(unnamed) <= (1 - SHARE_NAMED) * told_apart


def _tables(folder: Path) -> dict[str, pd.DataFrame]:
    read = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    return {path.stem: read[path.suffix](path) for path in folder.iterdir()}


def test_the_generator_writes_the_same_rows_again(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(SHIPPED / "generators" / "pandas_sample"), str(tmp_path)], check=True)
    written, shipped = _tables(tmp_path), _tables(SAMPLE / "tables")
    assert written.keys() == shipped.keys()
    for name, frame in written.items():
        pd.testing.assert_frame_equal(frame, shipped[name])


def test_the_tables_have_what_trips_code_up() -> None:
    tables = _tables(SAMPLE / "tables")
    sizes = {name: len(frame) for name, frame in tables.items()}
    assert sum(1_000 <= rows <= 100_000 for rows in sizes.values()) >= 6
    assert sum(path.stat().st_size for path in (SAMPLE / "tables").iterdir()) < 2_000_000
    assert tables["products"]["product_id"].duplicated().sum() == 25
    assert tables["readings"].duplicated().sum() >= 400
    assert 0.1 < tables["sales"]["customer_id"].isna().mean() < 0.2
    assert not set(tables["sales"]["customer_id"].dropna()) <= set(tables["customers"]["customer_id"])
    assert {"n/k"} < set(tables["staff"]["salary"])
    assert {"1", "senior"} < set(tables["staff"]["grade"])
    assert str(tables["tickets"]["opened_at"].dtype).startswith("datetime64")


@needs_sandbox
def test_the_suite_is_as_large_as_promised(sample: dict[str, Case]) -> None:
    turns = [turn for case in sample.values() for turn in case.turns]
    assert len(turns) >= 80
    assert all(turn.gold.code for turn in turns)
    tags = Counter(tag for case in sample.values() for tag in case.tags)
    wanted = "filter top_n bottom_n multi_key join pivot window dates text missing mixed".split()
    assert {tag: tags[tag] for tag in wanted if tags[tag] < 2} == {}
    assert sum(len(case.turns) > 1 for case in sample.values()) >= 4
    assert len({name for case in sample.values() for name in case.context.paths}) >= 6


@needs_sandbox
def test_every_reference_code_gives_a_result_with_rows(sample: dict[str, Case]) -> None:
    assert [problem for case in sample.values() for problem in TRACK.check_gold(case)] == []
    turns = [turn for case in sample.values() for turn in case.turns]
    results = {turn.id: expected_result(turn.gold) for turn in turns}
    assert [name for name, result in results.items() if result["kind"] == "frame" and not result["rows"]] == []


@needs_sandbox
def test_gold_scores_one_and_no_answer_zero(sample: dict[str, Case]) -> None:
    with unmeasured():
        verdict = check_ends(TRACK, Random(5).sample([*sample.values()], 2))
    assert verdict.passed, verdict.facts


@needs_sandbox
def test_the_reference_code_does_what_its_question_asks(sample: dict[str, Case]) -> None:
    """Understanding and coverage of the gold: where the metrics miss something, the question asks for it oddly."""
    drawn = Random(7).sample([case for case in sample.values() if len(case.turns) == 1], 20)
    found = scores_of([(case, 0, [TRACK.oracle(case.turns[0])]) for case in drawn])
    for name in ("quality", "performance", "understanding", "coverage", "overall"):
        assert {one[f"{name}_score"] for one in found} == {1.0}
    for name in ("understanding_score_from_words", "coverage_score_from_words"):
        known = [one[name] for one in found if one[name] is not None]
        assert len(known) > 10
        assert sum(known) / len(known) > 0.9
