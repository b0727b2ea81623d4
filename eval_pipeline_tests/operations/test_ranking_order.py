"""The order that `run --until ranked` tells, and which cases it takes for independent."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.analysis.draws.looks import KnownAnswers
from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import UsageError
from eval_pipeline.operations.runs import ranking
from eval_pipeline.operations.runs.ranking import _check_same, _Contender, _text, _verdicts, best_first
from eval_pipeline.workspace.asked.draws import Candidate, Design

NAMES = "abcd"


def contender(name: str, share: float, outcomes: dict[str, float] | None = None, clusters: int = 0) -> Any:
    turns = outcomes or {}
    cases = [
        SimpleNamespace(cluster=str(place % clusters if clusters else place), turns=[SimpleNamespace(id=turn)])
        for place, turn in enumerate(turns)
    ]
    return SimpleNamespace(
        name=name,
        estimate=lambda: (share, share - 0.06, share + 0.06),
        outcomes=lambda look: turns,
        inputs=SimpleNamespace(cases=cases),
        design=SimpleNamespace(schedule=(len(turns),)),
    )


def test_the_order_follows_the_decisions_where_shares_of_different_cases_contradict_them() -> None:
    """`a` was asked a few cases, on which it is better; `b` was asked all, and is better on the rest."""
    asked = [contender("a", 0.79), contender("b", 0.8), contender("c", 0.6)]
    said = _text(asked, {("a", "b"): -1, ("b", "c"): -1})
    assert said == "a 79.0% > b 80.0% > c 60.0%; not told apart: a and c"
    assert _text(asked, {}) == "b 80.0% ≈ a 79.0% ≈ c 60.0%; not told apart: a and b, a and c, b and c"
    assert _text(asked[:2], {("a", "b"): 1}) == "b 80.0% > a 79.0%; every pair is decided"


@given(
    shares=st.fixed_dictionaries(dict.fromkeys(NAMES, st.floats(0, 1))),
    better=st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] < pair[1])),
)
def test_no_decision_is_contradicted(shares: dict[str, float], better: set[tuple[str, str]]) -> None:
    order = best_first(shares, better)
    assert sorted(order) == list(NAMES)
    assert all(order.index(first) < order.index(second) for first, second in better)
    for before, name in pairwise(order):
        if not better:
            assert shares[before] >= shares[name]


def test_decisions_that_form_a_circle_give_some_order() -> None:
    assert sorted(best_first(dict.fromkeys("abc", 0.5), {("a", "b"), ("b", "c"), ("c", "a")})) == ["a", "b", "c"]


@pytest.mark.parametrize(("clusters", "decided"), [(0, True), (3, False)])
def test_cases_of_one_cluster_are_not_independent(clusters: int, decided: bool) -> None:
    """40 differing cases decide, if they are independent; three clusters of them cannot (p = 2 / 2^3)."""
    turns = [f"c{place}#0" for place in range(40)]
    first, second = (dict.fromkeys(turns, outcome) for outcome in (0.0, 1.0))
    pair = [contender("a", 0, first, clusters), contender("b", 1, second, clusters)]
    assert bool(_verdicts(pair, 1, 1, {})) is decided


def test_the_share_of_a_full_evaluation_is_of_the_turns_with_a_verdict() -> None:
    """As in the leaderboard: of three turns one is right, one wrong, and one could not be scored."""
    turns = tuple(f"s/c{place}#0" for place in range(3))
    candidates = tuple(Candidate(turn, (turn,), ("",)) for turn in turns)
    design = Design(Until(ranked=True), 0, (3,), (), None, candidates)
    full = _Contender(SimpleNamespace(), design, known=True, answers=KnownAnswers({turns[0]: 1.0, turns[1]: 0.0}, {}))  # type: ignore[arg-type]
    assert full.estimate()[0] == 0.5


@pytest.mark.parametrize("other", [{"seed": 2}, {"schedule": (2,)}, {"turns": ("s/b#0",)}])
def test_only_those_are_ranked_who_were_drawn_alike(other: dict[str, Any]) -> None:
    def drawn(name: str, turns: tuple[str, ...] = ("s/a#0",), seed: int = 1, schedule: tuple[int, ...] = (1,)) -> Any:
        design = SimpleNamespace(candidates=[SimpleNamespace(turns=turns)], seed=seed, schedule=schedule)
        return SimpleNamespace(name=name, design=design)

    _check_same([drawn("a"), drawn("b")])
    with pytest.raises(UsageError, match="'b' and 'a' were drawn differently"):
        _check_same([drawn("a"), drawn("b", **other)])


def test_only_runs_that_were_begun_for_it_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole evaluation that is there already is ranked as it is; its run ended when it was made."""
    ended: list[str] = []
    monkeypatch.setattr(ranking, "end_run", lambda workspace, place, run_id, status: ended.append(run_id))
    asked: list[Any] = [contender("a", 0.5), contender("b", 0.5)]
    for one, known in zip(asked, (True, False), strict=True):
        one.known, one.advance, one.end = known, lambda look: None, lambda why: None
        one.inputs.place, one.inputs.run = None, SimpleNamespace(run_id=one.name)
    monkeypatch.setattr(ranking, "_verdicts", lambda *told: {("a", "b"): 1})
    assert ranking._decide(SimpleNamespace(), asked, 1, []) == (asked, {("a", "b"): 1})  # type: ignore[arg-type]
    assert ended == ["b"]
