"""Cards: rows and queries side by side, and the database that tells queries apart."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from eval_pipeline.core.model import Evidence
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.cards import BesideCard, Card, TableCard
from eval_pipeline.tracks.sql.cards import cell_text, same_value
from eval_pipeline.tracks.sql.cases.source import Shared
from eval_pipeline.tracks.sql.evidence import EQUIVALENCE, EXECUTION, gather
from eval_pipeline.tracks.sql.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.card_lines import card_lines
from eval_pipeline_tests.tracks.sql.helpers import CASES, OSLO, answer, attempt, read

GOLDEN = {case["name"]: case for case in golden("sql_cards.yaml")}
RAW = {raw["id"]: raw for raw in CASES}


def seen_turn(raw: dict[str, Any], text: str, found: Shared) -> Seen:
    """The turn with what the metrics say, as the workbench hands it to the track."""
    case = read(raw, found)
    turn = case.turns[0]
    tried = asyncio.run(attempt(case, text))
    evidence = gather(case, turn, tried)
    scored = MetricRunner(TRACK.metrics).run([TRACK.values(case, turn, [tried], evidence)])
    metrics = {name: values[0] for name, values in scored.plain.items()}
    return Seen(case, turn, [tried], evidence, metrics=metrics, expected_result=TRACK.expected_result(turn))


@pytest.mark.parametrize("name", GOLDEN)
def test_cards_of_a_turn(name: str, shop: Shared) -> None:
    told = GOLDEN[name]
    raw = {**RAW[told["case"]], **({"expected_sql": told["accepted"]} if "accepted" in told else {})}
    found = card_lines(TRACK.cards(seen_turn(raw, answer(told.get("sql")), shop)))
    expected = told.get("cards", {})
    assert {title: found.get(title) for title in expected} == expected
    if "facts" in told:
        assert found["Verdict"] == told["facts"]


def test_the_database_that_tells_them_apart_is_shown_with_both_results(shop: Shared) -> None:
    """Whatever database the ladder finds: it holds a customer of a city with an O that is not Oslo."""
    cards = TRACK.cards(seen_turn(OSLO, answer("SELECT name FROM customers WHERE city LIKE 'O%'"), shop))
    lines = card_lines(cards)
    assert "do they mean the same: refuted{wrong}" in lines["Verdict"]
    assert lines["Rows returned, the same as expected"] == ["name", "Ada", "Cy"]
    (database,) = [card for card in cards if card.title.startswith("The counterexample")]
    assert isinstance(database, BesideCard)
    (customers,) = [card for card in database.cards if card.title == "customers"]
    assert isinstance(customers, TableCard)
    cities = {str(row[1]): str(row[2]) for row in customers.rows}
    others = [name for name, city in cities.items() if city.startswith("O") and city != "Oslo"]
    assert others
    returned = [lines for title, lines in lines.items() if title.startswith("Rows on the counterexample below: Ret")]
    assert any(f"{name}{{extra}}" in line for name in others for line in returned[0])


def test_a_response_that_cannot_be_read_says_why(shop: Shared) -> None:
    found = card_lines(TRACK.cards(seen_turn(OSLO, "no idea", shop)))
    assert found["Verdict"][0].startswith("syntax error: the response holds no JSON")
    assert found["Gold query"] == [OSLO["expected_sql"]]


@pytest.mark.parametrize(
    "text",
    [
        "no idea",
        answer(None),
        answer("SELECT nam FROM customers"),
        answer("DROP TABLE customers"),
        answer("SELECT CAST(name AS INTEGER) FROM customers"),
    ],
)
def test_expected_rows_are_shown_where_the_answer_gave_none(text: str, shop: Shared) -> None:
    """Not read, declined, with a wrong name, unsafe, failing when it runs."""
    found = card_lines(TRACK.cards(seen_turn(OSLO, text, shop)))
    assert found["Rows expected"] == ["name", "Ada", "Cy"]
    assert not [title for title in found if "eturned" in title]


def test_what_nobody_compared_is_beside_the_expected_rows(shop: Shared) -> None:
    """As where the evidence is of before the suite had its data."""
    seen = replace(seen_turn(OSLO, answer("SELECT name FROM customers WHERE city <> 'Oslo'"), shop), evidence=())
    found = card_lines(TRACK.cards(seen))
    assert found["Rows on the suite's database: Expected, 2 rows"] == [
        "row | name",
        "1 | Ada{missing}",
        "2 | Cy{missing}",
    ]
    assert card_lines(TRACK.cards(replace(seen, expected_result=None)))["Rows returned"] == ["name", "Bo"]


def test_without_an_attempt_there_is_the_gold_query(shop: Shared) -> None:
    case = read(OSLO, shop)
    assert card_lines(TRACK.cards(Seen(case, case.turns[0], (), ()))) == {"Gold query": [OSLO["expected_sql"]]}


def _with_counterexample(counterexample: dict[str, Any], shop: Shared) -> list[Card]:
    seen = seen_turn(OSLO, answer(str(OSLO["expected_sql"])), shop)
    evidence = [
        Evidence(seen.turn.id, 0, EXECUTION, "different", 0.0, {"accepted": OSLO["expected_sql"]}),
        Evidence(seen.turn.id, 0, EQUIVALENCE, "different", 0.0, {"rung": "refuted", "counterexample": counterexample}),
    ]
    return list(TRACK.cards(Seen(seen.case, seen.turn, seen.attempts, evidence)))


def test_evidence_of_long_results_from_before_their_differences_were_kept_is_not_marked(shop: Shared) -> None:
    def some(first: int) -> dict[str, Any]:
        return {"columns": ["n"], "rows": [[first + n] for n in range(20)], "row_count": 3400, "ordered": False}

    lines = card_lines(_with_counterexample({"database": "x", "generated": some(0), "expected": some(7)}, shop))
    assert lines["Rows on the suite's database"] == ["(Rows are not marked: not all of them were kept.)"]
    assert "{" not in "".join(lines["Rows on the suite's database: Returned, 3,400 rows"])


def test_many_tables_rows_and_columns_are_cut(shop: Shared) -> None:
    table = {"columns": [f"c{n}" for n in range(30)], "rows": [["x" * 500] * 30] * 50}
    result = {"columns": ["n"], "rows": [], "row_count": 0, "ordered": False}
    told = {"database": "generated", "generated": result, "expected": result}
    tables = {f"t{n}": table for n in range(30)} | {"empty": {"columns": ["n"], "rows": []}}
    cards = _with_counterexample({**told, "tables": tables}, shop)
    (database,) = [card for card in cards if card.title.startswith("The counterexample")]
    assert isinstance(database, BesideCard)
    assert len(database.cards) == 12
    assert "12 of 30 tables with rows shown. Without rows: empty." in database.remark
    first = database.cards[0]
    assert isinstance(first, TableCard)
    assert (len(first.columns), len(first.rows), first.left_out) == (20, 20, 30)
    assert first.remark == "20 of 30 columns shown."
    assert len(str(first.rows[0][0])) == 201


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("30.50", 30.5, True),
        ("30.50", "30.5", True),
        ("007", 7, False),
        ("a", "b", False),
        (None, None, True),
        (1, True, True),
    ],
)
def test_decimals_are_compared_as_numbers(one: Any, other: Any, same: bool) -> None:
    assert same_value(one, other) is same


@pytest.mark.parametrize(
    ("cell", "text"), [(None, "NULL"), (True, "true"), (1.5, "1.5"), ("NULL", "NULL"), ([1, None], "[1,null]")]
)
def test_cells_read_as_in_sql_tools(cell: Any, text: str) -> None:
    assert cell_text(cell) == text
