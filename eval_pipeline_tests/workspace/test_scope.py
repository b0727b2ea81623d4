"""Which part of a suite a run covers."""

from collections.abc import Sequence
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.analysis.baseline import newest_partition
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Case, Partition
from eval_pipeline.workspace.asked.scope import FULL, Scope
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.support import Lab, case


def cases_of(count: int) -> list[Case]:
    raw = [case(f"c{i}", *[("50", 50.0)] * (1 + i % 3), tags=["even" if i % 2 == 0 else "odd"]) for i in range(count)]
    return [TRACK.read_case(found, "small", "file", 1) for found in raw]


CASES = cases_of(12)
IDS = [found.id for found in CASES]


def chosen(scope: Scope, cases: Sequence[Case] = CASES, failed: set[str] | None = None) -> list[str]:
    return [found.id for found in scope.select(cases, failed)]


@given(size=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_a_sample_is_whole_conversations_in_order_the_same_each_time(size: int, seed: int) -> None:
    scope = Scope(size, seed)
    found = chosen(scope)
    assert found == chosen(scope)
    assert len(found) == min(size, len(CASES))
    assert found == [name for name in IDS if name in found]
    whole = {case.id: case for case in CASES}
    assert all(picked is whole[picked.id] for picked in scope.select(CASES))


def test_another_seed_draws_other_conversations() -> None:
    assert len({tuple(chosen(Scope(4, seed))) for seed in range(20)}) > 5


def test_every_conversation_is_drawn_as_often_as_the_others() -> None:
    counts = dict.fromkeys(IDS, 0)
    for seed in range(600):
        for name in chosen(Scope(3, seed)):
            counts[name] += 1
    assert all(100 < count < 200 for count in counts.values()), counts  # 150 ± 4.7 standard deviations


def test_conditions_are_combined() -> None:
    assert chosen(Scope(cases=("c3", "c4"))) == ["c3", "c4"]
    assert chosen(Scope(tags=("odd",))) == IDS[1::2]
    assert chosen(Scope(tags=("odd", "even"))) == IDS
    assert chosen(Scope(cases=("c3", "c4"), tags=("odd",))) == ["c3"]
    assert chosen(Scope(failed=True), failed={"c7", "c2"}) == ["c2", "c7"]
    assert chosen(Scope(failed=True), failed=set()) == []
    assert set(chosen(Scope(2, 1, tags=("odd",)))) < set(IDS[1::2])


@pytest.mark.parametrize(
    ("scope", "sentence"),
    [
        (Scope(cases=("c3", "zz")), "no case 'zz'"),
        (Scope(tags=("prime",)), "no case has the tag 'prime'; tags: even, odd"),
        (Scope(failed=True), "--failed needs an earlier evaluation"),
    ],
)
def test_what_the_suite_lacks_is_refused(scope: Scope, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        scope.select(CASES)


scopes = st.builds(
    Scope,
    st.none() | st.integers(1, 50),
    st.integers(0, 9),
    st.lists(st.sampled_from(IDS), max_size=3, unique=True).map(tuple),
    st.lists(st.sampled_from(["odd", "even"]), max_size=2, unique=True).map(tuple),
    st.booleans(),
)


@given(scopes)
def test_a_scope_comes_back_from_its_label(scope: Scope) -> None:
    back = Scope.from_label(scope.label())
    assert back.is_full == scope.is_full
    assert (scope.label() == FULL) == scope.is_full
    assert chosen(back, failed={"c1", "c2"}) == chosen(scope, failed={"c1", "c2"})
    if not scope.is_full:
        assert back == scope


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        ("nonsense", "'nonsense' is not a scope; expected 'full' or conditions as JSON"),
        ("[1]", "is not a scope"),
        ("null", "is not a scope"),
        ('{"sample": 5}', "no condition 'sample'; conditions: sample_size, seed, cases, tags, failed"),
        ('{"cases": "alpha"}', 'cases is "alpha"; expected a list of texts'),
        ('{"tags": [1]}', r"tags is \[1\]; expected a list of texts"),
        ('{"sample_size": "5"}', 'sample_size is "5"; expected a whole number'),
        ('{"sample_size": true}', "sample_size is true; expected a whole number"),
        ('{"failed": 1}', "failed is 1; expected true or false"),
        ('{"sample_size": 0}', "at least one conversation, found sample_size 0"),
        ('{"sample_size": -1}', "at least one conversation, found sample_size -1"),
    ],
)
def test_a_label_that_is_no_scope_is_refused_in_a_sentence(label: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as told:
        Scope.from_label(label)
    assert "\n" not in str(told.value)


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one conversation"):
        Scope(sample_size=0)


def test_the_newest_partition_is_a_full_one_where_there_is_one(small: Lab) -> None:
    small.evaluate(day=date(2026, 3, 2), scope=Scope(cases=("alpha",)))
    small.evaluate(day=date(2026, 3, 3), scope=Scope(cases=("beta",)))
    assert newest_partition(small.workspace(), "small", "puppet") == Partition("small", "puppet", date(2026, 3, 3))
    small.evaluate(day=date(2026, 3, 1))
    assert newest_partition(small.workspace(), "small", "puppet") == Partition("small", "puppet", date(2026, 3, 1))
