"""The campaign of docs/pandas.md: all mutants of the sample's reference code, refuted and named by what they lack."""

from collections import defaultdict
from collections.abc import Iterator
from random import Random

import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.operations.mutation import equivalent_mutants
from eval_pipeline.suites import read_header, read_suite
from eval_pipeline.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline.tracks.pandas_code.robust.answers import Behaviour
from eval_pipeline.tracks.pandas_code.robust.examined import mutants_on_variants, variants_of
from eval_pipeline.tracks.pandas_code.robust.explaining import explained
from eval_pipeline.tracks.pandas_code.robust.running import results_of, same
from eval_pipeline_tests.support import SHIPPED, Lab, built_once, surroundings
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox
from eval_pipeline_tests.tracks.pandas_code.rewrites import rewrites

pytestmark = needs_sandbox
SAMPLE = SHIPPED / "suites" / "pandas_sample"
SHARE_REFUTED, SHARE_NAMED = 0.95, 0.9


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab.at(built_once(tmp_path_factory, "pandas-sample", lambda folder: None))
    with surroundings(lab):
        yield lab


@pytest.fixture(scope="module")
def cases(home: Lab) -> dict[str, Case]:
    return {case.id: case for case in read_suite(read_header(SAMPLE)).cases}


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
        requirements = defaultdict(set)  # mutants at several places may have the same words
        for one in gives:
            requirements[one.mutant.words].add(one.mutant.requirement)
        tried = [one for one in gives if one.mutant.words not in listed.get(turn.id, ())]
        names = tuple(gold.context.paths)
        codes = [(rewrites(one.mutant.code, names, 1, 11) or [one.mutant.code])[0] for one in tried]
        given = results_of(gold, codes, [{}])
        found = results_of(gold, codes, [one.tables for one in variants]) if variants else [[] for _ in codes]
        expected = expected_result(gold)
        for one, on_given, results in zip(tried, given, found, strict=True):
            right = tuple(same(gold, got, variant.expected) for got, variant in zip(results, variants, strict=True))
            name = f"{turn.id}: {one.mutant.words}"
            (kept if same(gold, on_given[0], expected) and all(right) else refuted).append(name)
            if on_given[0] is not None and not all(right):
                told_apart += 1
                words = explained(gold, Behaviour(tuple(results), right, None)).words
                if one.mutant.requirement not in set().union(*(requirements[word] for word in words)):
                    unnamed.append(f"{name} -> {words}")
    return refuted, kept, unnamed, told_apart


def test_mutants_of_a_few_turns_are_refuted_and_named(cases: dict[str, Case]) -> None:
    drawn = [cases[name] for name in Random(5).sample(sorted(cases), 2)]
    refuted, kept, unnamed, told_apart = _tried(drawn)
    assert len(refuted) >= SHARE_REFUTED * (len(refuted) + len(kept)), kept
    assert told_apart >= 5
    assert len(unnamed) <= (1 - SHARE_NAMED) * told_apart, unnamed


@pytest.mark.soak
def test_mutants_of_all_turns_are_refuted_and_named(cases: dict[str, Case]) -> None:
    refuted, kept, unnamed, told_apart = _tried([*cases.values()])
    print(f"{len(refuted)} refuted, {len(kept)} not: {kept}")
    print(f"of {told_apart} told apart {len(unnamed)} are not named:", *unnamed, sep="\n")
    assert len(refuted) + len(kept) > 600
    assert len(refuted) >= SHARE_REFUTED * (len(refuted) + len(kept))
    assert len(unnamed) <= (1 - SHARE_NAMED) * told_apart
