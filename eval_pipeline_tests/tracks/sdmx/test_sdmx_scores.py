"""Scores against golden cases worked by hand, and what has to hold of any target and selection."""

import json
from collections.abc import Mapping
from datetime import date
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import Failed, Partition, Ran
from eval_pipeline.reports.queries import RecordQueries
from eval_pipeline.store.tables import CASES, arrow_schema
from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import (
    Catalogue,
    CodeList,
    Conventions,
    DataSet,
    Dimension,
    Term,
)
from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore, as_evidence, compare, from_evidence
from eval_pipeline_plugins.tracks.sdmx.responses.selection import Selection, merged, selection_from_json, selection_json
from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Candidates, Retriever
from eval_pipeline_plugins.tracks.sdmx.sheets.places import BY, COUNTS, counts_query, tags_query
from eval_pipeline_plugins.tracks.sdmx.tables import DIMENSIONS
from eval_pipeline_plugins.tracks.sdmx.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.sdmx.helpers import (
    COUNTRIES,
    INDICATORS,
    attempt_at,
    case_of,
    evidence_of,
    measured,
    raw_case,
    response,
    retriever,
    scores,
    selection,
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
        assert isinstance(outcome, Ran)
        places = selection_from_json(outcome.value).places
        found = {" ".join(place): [id for id, _ in terms] for place, terms in places.items()}
        assert found == row.get("reads", {})
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


@given(selections(), selections(), st.randoms())
def test_what_holds_of_any_target_and_selection(target: Selection, selected: Selection, rng: Any) -> None:
    there, back = by_place(target, selected), by_place(selected, target)
    for place, score in there.items():
        for value in (score.precision, score.recall, score.f1):
            assert value is None or 0 <= value <= 1
        assert (score.recall is None) == (score.target != "given")
        assert (score.precision is None) == (not score.terms)
        if target.places.get(place) and selected.places.get(place):
            assert (score.precision, score.recall) == (back[place].recall, back[place].precision)
            assert score.f1 == back[place].f1
    assert sum(score.count("tp") + score.count("fn") for score in there.values()) == target.terms
    assert sum(score.count("tp") + score.count("fp") for score in there.values()) == selected.terms
    found = compare(target, selected, NONE, CATALOGUE)
    assert from_evidence(as_evidence("t", 0, found)) == found
    assert selection_from_json(selection_json(selected)) == selected
    places = list(selected.places.items())
    rng.shuffle(places)
    shuffled = Selection({place: tuple(rng.sample(terms, len(terms))) for place, terms in places})
    for place, other in by_place(target, shuffled).items():
        score = there[place]
        assert (score.precision, score.recall, score.target) == (other.precision, other.recall, other.target)
        assert {*score.terms} == {*other.terms}


PLACED = golden("sdmx_places.yaml")["cases"]
COLUMNS = ("turn_id", "dataset_id", "dimension", "true_positives", "false_positives", "false_negatives")


PLACE = Partition("s", "m", date(2026, 1, 1))


def queried(sql: str, case: dict[str, Any], tags: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The rows of a query over these dimensions and cases."""
    key = {"suite": PLACE.suite, "model_version": PLACE.model_version, "eval_date": PLACE.eval_date}
    found = [dict(zip(COLUMNS, row, strict=True)) for row in case["rows"]]
    rows = {
        DIMENSIONS: [key | row | {"sample": 0, "case_id": row["turn_id"].partition("#")[0]} for row in found],
        CASES: [{"suite": PLACE.suite, "case_id": name, "tags": text} for name, text in (tags or {}).items()],
    }
    read = {table: pa.Table.from_pylist(mine, arrow_schema(table)) for table, mine in rows.items()}
    return RecordQueries(rows, read.__getitem__).rows(sql)


@pytest.mark.parametrize("case", PLACED, ids=lambda case: case["name"])
def test_counts_by_place(case: dict[str, Any]) -> None:
    for by in BY:
        if by in case:
            found = queried(counts_query(PLACE, by), case)
            assert {row["place"]: {what: row[what] for what in COUNTS} for row in found} == case[by]


def test_a_case_with_two_tags_is_counted_under_both() -> None:
    tags = {"a": '["x"]', "b": '["x", "y"]', "c": "[]", "d": '["y"]'}
    found = queried(tags_query(PLACE), PLACED[0], tags)
    assert {(row["dimension"], row["tag"]): (row["right"], row["turns"]) for row in found} == {
        ("COUNTRY", "x"): (1, 2),
        ("COUNTRY", "y"): (0, 2),
    }


KNOWN = {"D:ONE INDICATOR": INDICATORS, "D:ONE COUNTRY": COUNTRIES, "D:TWO COUNTRY": COUNTRIES}
UNKNOWN = ["D:ONE TIME_PERIOD", "D:ONES COUNTRY", "X:NONE COUNTRY", "D:TWO INDICATOR"]

Terms = dict[str, set[tuple[str, str]]]


def reference(target: Terms, said: Terms) -> dict[str, float | None]:
    """The seed's arithmetic: sets of (id, name) in each data set and dimension, nothing else is known."""
    precisions, recalls = [], []
    counts = {"true_positives": 0, "false_positives": 0, "false_negatives": 0}
    for place in target.keys() | said.keys():
        wanted, chosen = target.get(place, set()), said.get(place, set())
        if not wanted and not chosen:
            continue
        right = len(wanted & chosen)
        counts["true_positives"] += right
        counts["false_positives"] += len(chosen - wanted)
        counts["false_negatives"] += len(wanted - chosen)
        precisions.append(right / len(chosen) if chosen else 0.0)
        if wanted:
            recalls.append(right / len(wanted))
    nothing = not precisions
    return {
        **counts,
        "macro_precision": 1.0 if nothing else sum(precisions) / len(precisions),
        "macro_recall": sum(recalls) / len(recalls) if recalls else 1.0 if nothing else None,
    }


def pairs(written: dict[str, Any]) -> Terms:
    return {" ".join(place): set(terms) for place, terms in selection(written).places.items()}


def drawn(rng: Random, *, known: bool) -> dict[str, Any]:
    places = rng.sample(list(KNOWN), rng.randint(0, 3)) + ([] if known else rng.sample(UNKNOWN, rng.randint(0, 2)))
    found = {}
    for place in places:
        ids: list[Any] = rng.sample(list(KNOWN.get(place, COUNTRIES)), rng.randint(0, 3))
        if not known:
            invented = [{"id": f"NO_{number}", "name": "invented"} for number in range(rng.randint(0, 2))]
            renamed = [{"id": id, "name": "another name"} for id in rng.sample(list(COUNTRIES), rng.randint(0, 1))]
            ids += invented + renamed
        if ids:
            found[place] = ids
    return found


def test_the_seeds_arithmetic_holds_for_200_selections_with_unknown_terms() -> None:
    rng = Random(21)
    valid = 0
    for _ in range(200):
        target, said = drawn(rng, known=True), drawn(rng, known=False)
        case = case_of(("which?", target))
        attempt = attempt_at(case, case.turns[0], response(said))
        found = measured(case, case.turns[0], attempt)
        expected = reference(pairs(target), pairs(said))
        if said or target or isinstance(attempt.outcome, Ran):
            assert {name: found[name] for name in expected} == expected
        assert found["valid_selection"] == isinstance(attempt.outcome, Ran)
        if found["valid_selection"]:
            valid += 1
            assert found["macro_precision_if_valid"] == found["macro_precision"]
        else:
            nothing = reference(pairs(target), {})
            assert found["macro_recall_if_valid"] == (nothing["macro_recall"] if target else None)
            assert found["macro_precision_if_valid"] == 0
    assert 20 < valid < 180


def test_each_term_says_what_the_catalogue_lacks() -> None:
    case = case_of(("which?", {"D:ONE COUNTRY": ["MEX"]}))
    said = {
        "D:ONE COUNTRY": ["MEX", {"id": "NO", "name": "x"}, {"id": "ARG", "name": "x"}],
        "D:ONE TIME": [{"id": "2020", "name": ""}],
        "D:ONES COUNTRY": ["MEX"],
    }
    turn = case.turns[0]
    attempt = attempt_at(case, turn, response(said))
    rows = TRACK.table_rows(case, turn, [attempt], evidence_of(case, turn, attempt))["sdmx_terms"]
    assert [(row["id"], row["verdict"], row["valid"], row["doubt"]) for row in rows] == [
        ("MEX", "tp", True, None),
        ("NO", "fp", False, "unknown_code"),
        ("ARG", "fp", True, "other_name"),
        ("2020", "fp", False, "unknown_dimension"),
        ("MEX", "fp", False, "unknown_data_set"),
    ]
    row = TRACK.turn_row(case, turn, [attempt])
    assert row["selection"] is None
    assert json.dumps(row["said"]).count("dimension_name") == 3


def test_four_right_terms_count_beside_an_invented_code_a_time_and_a_version() -> None:
    wanted = {"D:ONE INDICATOR": ["GDP", "POP"], "D:ONE COUNTRY": ["MEX"], "D:TWO COUNTRY": ["EST"]}
    said = {
        "D:ONE INDICATOR": ["GDP", "POP", {"id": "GDP_X", "name": "invented"}],
        "D:ONE COUNTRY": ["MEX"],
        "D:TWO(1.0) COUNTRY": ["EST"],
        "D:ONE TIME_PERIOD": [{"id": "2020", "name": "2020"}],
    }
    case = case_of(("which?", wanted))
    found = measured(case, case.turns[0], attempt_at(case, case.turns[0], response(said)))
    counts = {name: found[name] for name in ("true_positives", "false_positives", "false_negatives")}
    assert counts == {"true_positives": 4, "false_positives": 2, "false_negatives": 0}
    assert (found["valid_selection"], found["macro_recall"], found["exact_selection"]) == (False, 1.0, False)


def with_alternatives(*targets: Mapping[str, Any]) -> dict[str, Any]:
    raw = raw_case(("which?", targets[0]))
    others = [selection_json(selection(target)) for target in targets[1:]]
    raw["conversation"][0]["target"]["alternatives"] = others
    return raw


def test_any_accepted_target_will_do_and_the_closest_one_is_scored() -> None:
    first, second = {"D:ONE COUNTRY": ["MEX"], "D:ONE INDICATOR": ["GDP"]}, {"D:TWO COUNTRY": ["MEX", "ARG"]}
    case = TRACK.read_case(with_alternatives(first, second), "suite", "cases/one.yaml", 1, retriever())
    turn = case.turns[0]
    for said, exact, used, recall in (
        (first, True, 0, 1.0),
        (second, True, 1, 1.0),
        ({"D:TWO COUNTRY": ["MEX"]}, False, 1, 0.5),
        ({"D:ONE COUNTRY": ["MEX"]}, False, 0, 0.5),
        ({}, False, 0, 0.0),
    ):
        attempt = attempt_at(case, turn, response(said))
        found = measured(case, turn, attempt)
        row = TRACK.turn_row(case, turn, [attempt])
        assert (found["exact_selection"], row["target_used"], found["macro_recall"]) == (exact, used, recall), said
        assert row["accepted_targets"] == 2
        assert row["target"] == selection_json(selection((first, second)[used]))["indicator_selection"]
    assert "\nor\n" in TRACK.expected_text(turn)
    assert len(TRACK.gold_json(turn)["alternatives"]) == 1
    assert TRACK.read_case({**raw_case(("which?", first))}, "s", "c", 1, retriever()).turns[0].gold.alternatives == ()


def test_wrong_alternatives_and_targets_out_of_scope_are_told() -> None:
    wrong = {"D:TWO COUNTRY": [{"id": "XX", "name": "x"}]}
    with pytest.raises(CaseError) as caught:
        TRACK.read_case(with_alternatives({"D:ONE COUNTRY": ["MEX"]}, wrong), "s", "c", 1, retriever())
    (problem,) = caught.value.problems
    assert problem[0][:5] == ("conversation", 0, "target", "alternatives", 0)
    raw = raw_case(("which?", {"D:ONE COUNTRY": ["MEX"]}))
    raw["conversation"][0]["target"]["is_out_of_scope"] = True
    with pytest.raises(CaseError, match="out of scope has no indicator_selection"):
        TRACK.read_case(raw, "s", "c", 1, retriever())


CODES = {"_T": "Total", "S1": "Total economy", "M": "Men"}


def totals(*names: str) -> Retriever:
    codes = CodeList("A:CL(1.0)", tuple(Term(id, name) for id, name in CODES.items()))
    dimensions = {id: Dimension(id, id, codes) for id in ("SEX", "SECTOR", "INDICATOR", "AGE")}
    conventions = Conventions(totals=frozenset(names)) if names else Conventions()
    held = DataSet("A:B", "a", "", "1.0", dimensions)
    return Retriever(Catalogue({"A:B": held}, conventions=conventions), 20, 20)


def measured_there(target: Mapping[str, Any], said: Mapping[str, Any], held: Retriever) -> dict[str, Any]:
    def written(found: Mapping[str, Any]) -> dict[str, Any]:
        return {f"A:B {place}": [{"id": id, "name": CODES[id]} for id in ids.split()] for place, ids in found.items()}

    case = TRACK.read_case(raw_case(("which?", written(target))), "suite", "cases/one.yaml", 1, held)
    return scores(case, case.turns[0], response(written(said)))


@pytest.mark.parametrize(
    ("target", "said", "names", "plain", "without"),
    [
        ({"INDICATOR": "M", "SEX": "_T"}, {"INDICATOR": "M"}, (), (False, 0.5, 0.5), (True, 1.0, 1.0)),
        ({"INDICATOR": "M"}, {"INDICATOR": "M", "SECTOR": "S1"}, (), (False, 0.5, 1.0), (True, 1.0, 1.0)),
        ({"INDICATOR": "M", "SEX": "_T"}, {"INDICATOR": "M", "SEX": "M"}, (), (False, 0.5, 0.5), (False, 0.5, 0.5)),
        ({"INDICATOR": "M", "SEX": "_T M"}, {"INDICATOR": "M"}, (), (False, 0.5, 0.5), (False, 0.5, 0.5)),
        ({"INDICATOR": "M"}, {"INDICATOR": "M", "SECTOR": "S1"}, ("_T",), (False, 0.5, 1.0), (False, 0.5, 1.0)),
        ({"INDICATOR": "M"}, {"INDICATOR": "M", "AGE": "M"}, ("AGE/M",), (False, 0.5, 1.0), (True, 1.0, 1.0)),
        ({"SEX": "_T"}, {}, (), (False, 0.0, 0.0), (True, 1.0, 1.0)),
    ],
)
def test_redundant_totals_are_reported_with_and_without(
    target: Mapping[str, Any],
    said: Mapping[str, Any],
    names: tuple[str, ...],
    plain: tuple[bool, float, float],
    without: tuple[bool, float, float],
) -> None:
    found = measured_there(target, said, totals(*names))
    assert (found["exact_selection"], found["macro_precision"], found["macro_recall"]) == plain
    of = ("exact_without_totals", "macro_precision_without_totals", "macro_recall_without_totals")
    assert tuple(found[name] for name in of) == without


@pytest.mark.parametrize(
    ("target", "said", "expected"),
    [
        # INDICATOR and SEX as in the target, AGE pinned beyond it: soft leaves it out, hard counts it.
        ({"INDICATOR": "M", "SEX": "M"}, {"INDICATOR": "M", "SEX": "M", "AGE": "M"}, (1.0, 1.0, 1.0, 2 / 3)),
        # one of two terms of SEX is wrong: half the credit, or none.
        ({"INDICATOR": "M", "SEX": "M"}, {"INDICATOR": "M", "SEX": "M S1"}, (1.0, 1.0, 0.75, 0.5)),
        ({"INDICATOR": "M _T", "SEX": "M"}, {"INDICATOR": "M"}, (0.5, 0.0, 1.0, 1.0)),
        ({"SEX": "M"}, {}, (None, 0.0, None, None)),
        ({}, {"SEX": "M"}, (None, None, 0.0, 0.0)),
    ],
)
def test_recall_of_indicators_and_the_two_precisions(
    target: Mapping[str, Any], said: Mapping[str, Any], expected: tuple[float | None, ...]
) -> None:
    found = measured_there(target, said, totals())
    assert tuple(found[n] for n in ("indicator_recall", "other_recall", "soft_precision", "hard_precision")) == expected
