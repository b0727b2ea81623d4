"""Scores against golden cases worked by hand, and what has to hold of any target and selection."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import Failed
from eval_pipeline.tracks.sdmx.retrieval import Candidates
from eval_pipeline.tracks.sdmx.scoring import PlaceScore, as_evidence, compare, from_evidence
from eval_pipeline.tracks.sdmx.selection import Selection, merged, selection_from_json, selection_json
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.sdmx.helpers import (
    COUNTRIES,
    INDICATORS,
    attempt_at,
    case_of,
    evidence_of,
    response,
    retriever,
    scores,
)

CATALOGUE = retriever().catalogue
NONE = Candidates({}, ())


def named(name: str) -> Any:
    return pytest.mark.parametrize("row", golden(name), ids=lambda row: row["name"])


def text_of(row: dict[str, Any]) -> str:
    return str(row["response"]) if "response" in row else response(row["selected"])


@named("sdmx_scores.yaml")
def test_scores_are_those_worked_by_hand(row: dict[str, Any]) -> None:
    case = case_of(("which?", row["target"]))
    found = scores(case, case.turns[0], text_of(row))
    assert {name: found[name] for name in row["expected"]} == pytest.approx(row["expected"], abs=1e-12)
    evidence = evidence_of(case, case.turns[0], attempt_at(case, case.turns[0], text_of(row)))
    places = {f"{place.data_set} {place.dimension}": place for place in from_evidence(evidence)}
    for name, expected in row.get("dimensions", {}).items():
        assert [places[name].target, places[name].precision, places[name].recall] == expected


@named("sdmx_responses.yaml")
def test_responses_are_read_or_fail_for_the_right_reason(row: dict[str, Any]) -> None:
    case = case_of(("which?", {}))
    outcome = attempt_at(case, case.turns[0], row["response"]).outcome
    if row["outcome"] == "ran":
        assert not isinstance(outcome, Failed)
        return
    assert isinstance(outcome, Failed)
    assert outcome.error_class == row["outcome"]
    assert row["says"] in outcome.message


PLACES = st.sampled_from([("D:ONE", "INDICATOR"), ("D:ONE", "COUNTRY"), ("D:TWO", "COUNTRY")])
NAMES = {"INDICATOR": INDICATORS, "COUNTRY": COUNTRIES}


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    """Any selection from the small catalogue, with names that are not the catalogue's among them."""
    places = {}
    for place in draw(st.lists(PLACES, unique=True)):
        known = NAMES[place[1]]
        ids = draw(st.lists(st.sampled_from(sorted(known))))
        places[place] = [(id, draw(st.sampled_from([known[id], "another name"]))) for id in ids]
    return merged(places.items())


def by_place(target: Selection, selected: Selection) -> dict[tuple[str, str], PlaceScore]:
    found = compare(target, selected, NONE, CATALOGUE)
    return {(score.data_set, score.dimension): score for score in found}


@given(selections(), selections())
def test_precision_and_recall_lie_between_0_and_1(target: Selection, selected: Selection) -> None:
    for score in by_place(target, selected).values():
        for value in (score.precision, score.recall, score.f1):
            assert value is None or 0 <= value <= 1
        assert (score.recall is None) == (score.target != "given")
        assert (score.precision is None) == (not score.terms)


@given(selections(), selections())
def test_precision_and_recall_swap_with_target_and_selection_where_both_have_terms(
    target: Selection, selected: Selection
) -> None:
    there, back = by_place(target, selected), by_place(selected, target)
    for place, score in there.items():
        if target.places.get(place) and selected.places.get(place):
            assert (score.precision, score.recall) == (back[place].recall, back[place].precision)
            assert score.f1 == back[place].f1


@given(selections(), selections(), st.randoms())
def test_the_order_changes_nothing(target: Selection, selected: Selection, rng: Any) -> None:
    places = list(selected.places.items())
    rng.shuffle(places)
    shuffled = Selection({place: tuple(rng.sample(terms, len(terms))) for place, terms in places})
    for place, score in by_place(target, selected).items():
        other = by_place(target, shuffled)[place]
        assert (score.precision, score.recall, score.target) == (other.precision, other.recall, other.target)
        assert {*score.terms} == {*other.terms}


@given(selections(), selections())
def test_every_term_is_judged_once_and_the_counts_add_up(target: Selection, selected: Selection) -> None:
    judged = by_place(target, selected).values()
    assert sum(score.count("tp") + score.count("fn") for score in judged) == target.terms
    assert sum(score.count("tp") + score.count("fp") for score in judged) == selected.terms


@given(selections(), selections())
def test_evidence_gives_the_scores_back(target: Selection, selected: Selection) -> None:
    found = compare(target, selected, NONE, CATALOGUE)
    assert from_evidence(as_evidence("t", 0, found)) == found


@given(selections())
def test_a_selection_survives_its_json(chosen: Selection) -> None:
    assert selection_from_json(selection_json(chosen)) == chosen
