"""The ladder on the VeriEQL sample: a short form for every day, all 234 pairs in the soak run."""

from collections import Counter

import pytest

from eval_pipeline.sql_equivalence import Equivalence, check
from eval_pipeline_tests import outside
from eval_pipeline_tests.sql_equivalence.constraints import broken_constraints
from eval_pipeline_tests.sql_equivalence.verieql import REALLY_DIFFERENT, SAMPLE, LabelledPair, pairs

pytestmark = outside.needs(SAMPLE)
CANNOT_RUN = ("cannot run", "out of time")
Found = list[tuple[LabelledPair, Equivalence]]


def checked(chosen: list[LabelledPair]) -> Found:
    return [(pair, check(pair.other, pair.one, pair.schema)) for pair in chosen]


def assert_no_false_verdict(found: Found) -> None:
    for pair, told in found:
        if pair.label == "not_equivalent":
            assert told.verdict != "equivalent", pair.id
        if pair.label.startswith("equivalent_") and told.verdict == "different":
            assert pair.id in REALLY_DIFFERENT, (pair.id, told.evidence)
        assert not told.evidence.get("contradicted_proof"), pair.id


def assert_counterexamples_keep_the_constraints(found: Found) -> None:
    for pair, told in found:
        if (shown := told.evidence.get("counterexample")) is not None:
            rows = {name: table["rows"] for name, table in shown["tables"].items()}
            assert not broken_constraints(pair.schema, rows), pair.id


def deterministic_and_runnable(found: Found) -> Found:
    return [
        (pair, told)
        for pair, told in found
        if not told.evidence["reason"].startswith((*CANNOT_RUN, "not deterministic"))
    ]


def test_negatives_are_refuted_and_a_sample_of_positives_is_not():
    everything = pairs()
    negatives = [pair for pair in everything if pair.label == "not_equivalent"]
    positives = [pair for pair in everything if pair.label.startswith("equivalent_")]
    found = checked(negatives + positives[::27])
    assert_no_false_verdict(found)
    assert_counterexamples_keep_the_constraints(found)
    refutable = [told for pair, told in deterministic_and_runnable(found) if pair.label == "not_equivalent"]
    assert len(refutable) >= 9
    assert sum(told.verdict != "different" for told in refutable) <= 1


def test_the_list_of_pairs_that_really_differ_is_up_to_date():
    listed = [pair for pair in pairs() if pair.id in REALLY_DIFFERENT]
    assert {pair.id for pair, told in checked(listed) if told.verdict == "different"} == set(REALLY_DIFFERENT)


@pytest.mark.soak
def test_all_pairs_are_judged_without_a_false_verdict():
    found = checked(pairs())
    assert_no_false_verdict(found)
    assert_counterexamples_keep_the_constraints(found)
    runnable = [(pair, told) for pair, told in found if not told.evidence["reason"].startswith(CANNOT_RUN)]
    positives = [told for pair, told in runnable if pair.label.startswith("equivalent_")]
    right = sum(told.value == 1.0 for told in positives)
    print(f"\n{len(runnable)} of {len(found)} pairs run in DuckDB")
    print(f"{right} of {len(positives)} runnable positives are equivalent or agreed")
    for label in sorted({pair.label for pair, _ in found}):
        print(label, dict(Counter(told.rung for pair, told in found if pair.label == label)))
    for pair, told in found:
        if told.verdict == "undecided":
            error = (told.evidence["error"] or "").splitlines()[:1]
            print(pair.id, pair.label, told.evidence["reason"], *error)
    refutable = [told for pair, told in deterministic_and_runnable(found) if pair.label == "not_equivalent"]
    assert sum(told.verdict != "different" for told in refutable) <= 1
    assert right >= 2 / 3 * len(positives)
