"""Cards: what gold and answer use of the page, their programs and steps, and why an answer is wrong."""

import json
from dataclasses import replace
from typing import Any

import pytest

from eval_pipeline.core.model import Attempt, Case
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.cards import Card, TableCard
from eval_pipeline.tracks.finqa.cards import inlined
from eval_pipeline.tracks.finqa.carried import program_text
from eval_pipeline.tracks.finqa.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.card_lines import card_lines
from eval_pipeline_tests.tracks.finqa.helpers import attempt_at, case_of, gold_turn, raw_case

CASES = {case["name"]: case for case in golden("finqa_cards.yaml")}


def _said(say: list[Any]) -> str:
    steps = [
        {"tool": "compute", "operation": part[0], "args": part[1:]}
        if isinstance(part, list)
        else {"tool": "extract", "value": part}
        for part in say
    ]
    return json.dumps({"plan": steps})


def seen_turn(case: Case, attempts: list[Attempt], index: int, history: str = "gold") -> Seen:
    """The turn with what the metrics say, as the workbench hands it to the track."""
    said = [(turn, [attempt]) for turn, attempt in zip(case.turns, attempts, strict=True)][: index + 1]
    turn, tried = said[-1]
    told = TRACK.conversation_values(case, said, history)[-1]
    scored = MetricRunner(TRACK.metrics).run([{**TRACK.values(case, turn, tried, ()), **told}])
    metrics = {name: found[0] for name, found in scored.plain.items()}
    return Seen(case, turn, tried, TRACK.gather(case, turn, tried[-1]), said[:-1], history, metrics)


@pytest.mark.parametrize("name", CASES)
def test_cards_of_a_conversation(name: str) -> None:
    golden_case = CASES[name]
    case = case_of(*(gold_turn(turn["program"]) for turn in golden_case["turns"]))
    attempts = [attempt_at(case, t, _said(g["say"])) for t, g in zip(case.turns, golden_case["turns"], strict=True)]
    for index, expected in enumerate(golden_case["turns"]):
        found = card_lines(TRACK.cards(seen_turn(case, attempts, index, golden_case["history"])))
        assert {title: found.get(title) for title in expected["cards"]} == expected["cards"]
        assert not found.keys() & set(expected.get("absent", ()))


def test_without_an_attempt_there_is_the_gold() -> None:
    case = case_of(gold_turn("subtract(412.5, 188)"))
    found = card_lines(TRACK.cards(Seen(case, case.turns[0], (), ())))
    assert found["Gold program"] == ["as written: subtract(412.5, 188)"]
    assert found["Table of the document"][1] == "net sales | 412.5{gold} | 188{gold}"


def test_a_recorded_answer_has_no_program() -> None:
    case = case_of(gold_turn("subtract(412.5, 188)"))
    text = TRACK.from_recorded({"answer": 224.5})
    found = card_lines(TRACK.cards(seen_turn(case, [attempt_at(case, case.turns[0], text, recorded=True)], 0)))
    assert "Gold program" in found
    assert "Steps and their values: Answer" not in found


def _one(cards: list[Card], title: str) -> TableCard:
    (card,) = [card for card in cards if card.title == title]
    assert isinstance(card, TableCard)
    return card


def test_of_a_long_and_wide_table_what_is_used_is_shown() -> None:
    table = [["item", *map(str, range(2000, 2040))], *([f"row {n}", *[f"{n}.5"] * 40] for n in range(500))]
    document = {"pre_text": "", "table": table, "post_text": ""}
    case = TRACK.read_case(raw_case(gold_turn("add(499.5, 1)", 500.5), document=document), "suite", "f", 1)
    card = _one(list(TRACK.cards(Seen(case, case.turns[0], (), ()))), "Table of the document")
    assert len(card.rows) == 60
    assert card.left_out == 440
    assert {len(row) for row in (card.columns, *card.rows)} == {20}
    assert card.rows[-1][0] == "row 499"
    assert "20 of 41 columns shown." in card.remark


def test_small_counts_are_not_marked_all_over_the_text() -> None:
    """Other numbers are, wherever they stand."""
    table = [["item", "2020"], ["plants", "3"], ["sales", "77"]]
    document = {"pre_text": "Of 3 plants 2 are new. Sales of 77 grew.", "table": table, "post_text": ""}
    turn = gold_turn("multiply(77, 3)", 231.0)
    case = TRACK.read_case(raw_case(turn, document=document), "suite", "f", 1)
    found = card_lines(TRACK.cards(Seen(case, case.turns[0], (), ())))
    assert found["Sentences of the document with numbers that were used"] == ["Sales of 77{gold} grew."]
    assert found["Numbers used"][2:] == ["77{gold} | sales, 2020; the text", "3{gold} | plants, 2020"]


def test_a_plan_of_many_steps_is_cut() -> None:
    case = case_of(gold_turn("412.5"))
    say = [412.5, *([["add", f"#{n}", "#0"] for n in range(150)])]
    found = card_lines(TRACK.cards(seen_turn(case, [attempt_at(case, case.turns[0], _said(say))], 0)))
    lines = found["Steps and their values: Answer"]
    assert len(lines) == 32
    assert lines[-1] == "and 121"


@pytest.mark.parametrize(
    ("say", "expected"),
    [
        ([5, 3, ["subtract", "#0", "#1"], ["divide", "#2", "#1"]], "subtract(5, 3), divide(#0, 3)"),
        ([5, ["add", "#0", "const_2"]], "add(5, const_2)"),
        ([["add", 1, 2], 7, ["multiply", "#0", "#1"]], "add(1, 2), multiply(#0, 7)"),
        ([5], "5"),
        ([["add", "#1", 2], 7], "add(#1, 2), extract(7)"),
    ],
)
def test_numbers_that_are_read_first_are_put_where_they_are_used(say: list[Any], expected: str) -> None:
    program = TRACK.parse(_said(say), recorded=False).program
    assert program is not None
    assert program_text(inlined(program)) == expected


def test_what_a_model_writes_stays_text() -> None:
    case = case_of(gold_turn("412.5"))
    hostile = "<script>alert(1)</script>\x1b[31m"
    say = json.dumps({"plan": [{"tool": "extract", "value": 412.5, "source": hostile}]})
    found = card_lines(TRACK.cards(seen_turn(case, [attempt_at(case, case.turns[0], say)], 0)))
    assert found["Steps and their values: Answer"][1].endswith(hostile)


def test_the_metrics_need_not_be_known() -> None:
    case = case_of(gold_turn("412.5"))
    seen = seen_turn(case, [attempt_at(case, case.turns[0], _said([1]))], 0)
    assert "What went wrong" not in card_lines(TRACK.cards(replace(seen, metrics={})))
