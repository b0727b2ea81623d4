"""What was said is scored: the whole track against the seed's arithmetic, on selections with unknown terms."""

import json
from random import Random
from typing import Any

from eval_pipeline.core.model import Ran
from eval_pipeline_tests.tracks.sdmx.helpers import (
    COUNTRIES,
    INDICATORS,
    attempt_at,
    case_of,
    evidence_of,
    measured,
    response,
    selection,
)

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
    from eval_pipeline.tracks.sdmx.track import TRACK

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
