"""Cards: the selection by data set and dimension, and codes that there are not."""

import pytest

from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.cards import TableCard
from eval_pipeline.tracks.sdmx.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.card_lines import card_lines
from eval_pipeline_tests.tracks.sdmx.helpers import attempt_at, case_of, evidence_of, response

GOLDEN = {case["name"]: case for case in golden("sdmx_cards.yaml")}


def seen_turn(target: dict, text: str) -> Seen:
    case = case_of(("what?", target))
    turn = case.turns[0]
    tried = attempt_at(case, turn, text)
    return Seen(case, turn, [tried], evidence_of(case, turn, tried))


@pytest.mark.parametrize("name", GOLDEN)
def test_cards_of_a_turn(name: str) -> None:
    told = GOLDEN[name]
    found = card_lines(TRACK.cards(seen_turn(told["target"], response(told["selected"]))))
    assert {title: found.get(title) for title in told["cards"]} == told["cards"]
    assert not found.keys() & set(told.get("absent", ()))
    # dicts know their order: what is wrong comes first
    assert [title for title in found if title in told["cards"]] == list(told["cards"])


def test_a_response_that_cannot_be_read_says_why() -> None:
    found = card_lines(TRACK.cards(seen_turn({"D:ONE COUNTRY": ["EST"]}, "no idea")))
    (line,) = found["Why there is no selection"]
    assert line.startswith("error: the response holds no JSON")
    assert line.endswith("{wrong}")
    assert "What was to be selected" in found


def test_without_an_attempt_there_is_the_target() -> None:
    case = case_of(("what?", {"D:ONE COUNTRY": ["EST"]}))
    found = card_lines(TRACK.cards(Seen(case, case.turns[0], (), ())))
    assert found["What was to be selected"][1:] == ["D:ONE | COUNTRY | EST | Estonia"]


def test_a_long_selection_is_cut_with_what_is_wrong_in_it() -> None:
    many = [{"id": f"X{n}", "name": "x"} for n in range(500)]
    cards = TRACK.cards(seen_turn({"D:ONE COUNTRY": ["EST"]}, response({"D:ONE COUNTRY": ["EST", *many]})))
    (table,) = [card for card in cards if card.title == "The selection, which did not run"]
    assert isinstance(table, TableCard)
    assert (len(table.rows), table.left_out) == (30, 471)
    assert table.remark.endswith("500 of 501 codes.")


def test_what_a_model_writes_stays_text() -> None:
    hostile = "<script>alert(1)</script>"
    text = response({f"{hostile} {hostile}": [{"id": hostile, "name": hostile}]})
    found = card_lines(TRACK.cards(seen_turn({"D:ONE COUNTRY": ["EST"]}, text)))
    assert f"{hostile}: not in the catalogue{{extra}}" in found["Data sets"]
