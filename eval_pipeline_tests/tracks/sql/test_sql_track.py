"""What becomes of answers: executed, compared, scored, shown as cards; and of damaged gold and its mutants."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from eval_pipeline.core.model import Attempt, ErrorClass, Evidence, Failed, Ran, Response
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.shown.cards import BesideCard, Card, TableCard
from eval_pipeline.tracks.shown.results_beside import ShownResult, beside
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql import FAILURE_MODES
from eval_pipeline_plugins.tracks.sql.cards import as_number, cell_text
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.cases.source import Database, Options, SharedDatabases
from eval_pipeline_plugins.tracks.sql.damage import damaged_response
from eval_pipeline_plugins.tracks.sql.gold.mutants import turn_mutants_score
from eval_pipeline_plugins.tracks.sql.metrics.verdict import is_right
from eval_pipeline_plugins.tracks.sql.responses.artefact import LEVELS, parse_query
from eval_pipeline_plugins.tracks.sql.responses.evidence import EQUIVALENCE, EXECUTION, compare, contract_values
from eval_pipeline_plugins.tracks.sql.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import SHIPPED, Lab, surroundings
from eval_pipeline_tests.tracks.card_lines import card_lines
from eval_pipeline_tests.tracks.sql.helpers import (
    CASES,
    OSLO,
    SCHEMA,
    TOTALS,
    WEATHER,
    WIPE,
    answer,
    attempt,
    ran,
    read,
    scores,
    shared,
    shop_lab,
)


def scored(shop: SharedDatabases, raw: dict[str, Any], text: str) -> dict[str, Any]:
    return asyncio.run(scores(read(raw, shop), text))


def tried(shop: SharedDatabases, raw: dict[str, Any], text: str) -> Any:
    return asyncio.run(attempt(read(raw, shop), text)).outcome


@pytest.mark.parametrize(("selected", "right"), [("id, name", True), ("*", False)])
def test_who_selects_all_without_data_has_not_chosen(selected: str, right: bool) -> None:
    schema, options = SqlSchema.from_ddl(SCHEMA), Options()
    empty = Database("shop", "duckdb", schema, (), "", 0, Path())
    gold = SqlGold(("SELECT name FROM customers",), (), True, True, (), 0, empty, options, options.compare)
    assert compare(gold, f"SELECT {selected} FROM customers").right(gold) is right


@pytest.mark.parametrize(
    ("execution", "equivalence", "fits", "right"),
    [
        ("match", "agreed", None, True),
        ("match", "undecided", None, True),
        ("match", "different", False, True),
        ("match", "different", True, False),
        ("match", "different", None, False),
        ("different", "different", None, False),
        ("no_data", "agreed", None, True),
        ("no_data", "undecided", None, False),
        ("no_data", "different", None, False),
    ],
)
def test_evidence_from_before_contracts_says_what_it_said(
    shop: SharedDatabases, execution: str, equivalence: str, fits: bool | None, right: bool
) -> None:
    gold = read(OSLO, shop).turns[0].gold
    found = [
        Evidence("oslo", 0, EXECUTION, execution, 1.0, {"accepted": "SELECT 1"}),
        Evidence("oslo", 0, EQUIVALENCE, equivalence, 1.0, {"rung": "agreed", "message": "", "fits_data": fits}),
    ]
    values = contract_values(gold, found)
    needed_on_data, needed = values["needed_on_data"], values["needed"]
    assert is_right("robust", values["may_overlook"], needed_on_data, needed, equivalence) is right


def test_an_attempt_keeps_the_first_rows_of_its_result(shop: SharedDatabases) -> None:
    found = ran(tried(shop, OSLO, answer("SELECT id, total, placed_on FROM orders ORDER BY id LIMIT 2")))
    assert found["columns"] == ["id", "total", "placed_on"]
    assert found["rows"] == [[1, "10.50", "2024-01-03"], [2, "20.00", "2024-02-03"]]
    assert found["row_count"] == 2


@pytest.mark.parametrize(
    ("sql", "error_class"),
    [
        ("SELECT FROM WHERE", ErrorClass.SYNTAX),
        ("SELECT colour FROM customers", ErrorClass.COLUMN),
        ("SELECT * FROM bank", ErrorClass.COLUMN),
        ("DELETE FROM orders", ErrorClass.SANDBOX),
        ("SELECT 1; SELECT 2", ErrorClass.SANDBOX),
        ("SELECT CAST(name AS INTEGER) FROM customers", ErrorClass.TYPE),
    ],
)
def test_what_does_not_run_has_its_error_class(shop: SharedDatabases, sql: str, error_class: ErrorClass) -> None:
    outcome = tried(shop, OSLO, answer(sql))
    assert isinstance(outcome, Failed)
    assert outcome.error_class == error_class
    assert outcome.message


def test_a_block_is_the_outcome_where_a_refusal_is_right(shop: SharedDatabases) -> None:
    """Else the model would be asked to write something that gets through."""
    found = ran(tried(shop, WIPE, answer("DELETE FROM orders")))
    assert found["blocked"]
    assert TRACK.answer_text(found).endswith("DELETE FROM orders")


def test_a_right_query_is_right_by_every_metric(shop: SharedDatabases) -> None:
    found = scored(
        shop,
        TOTALS,
        answer("select sum(total), city from customers c join orders o on c.id = customer_id group by city"),
    )
    assert found["outcome_correct"] is True
    assert found["execution_match"] is True
    assert found["equivalence_verdict"] in ("equivalent", "agreed")
    assert found["table_accuracy"] == found["soft_f1"] == found["sql_equivalence"] == 1.0
    assert (found["safety_verdict"], found["validation_verdict"]) == ("true_negative", "correct_acceptance")
    assert found["r_ves"] > 0
    assert found["cpu_ms"] > 0
    assert found["confidence"] == "high"
    assert found["failure_mode"] is None
    assert found["query_correctness"] is None


NAMES = "SELECT name FROM customers"
ORDERED = f"{NAMES} ORDER BY id"


@pytest.mark.parametrize(
    ("accepted", "sql", "expected"),
    [
        # Everyone whose city begins with an O lives in Oslo, in this shop, but not on other data.
        (
            None,
            f"{NAMES} WHERE city LIKE 'O%'",
            {"execution_match": True, "equivalence_verdict": "different", "failure_mode": "wrong_filter"},
        ),
        # 2 of 4 cells right, 2 of 2 found: F1 = 2·2/(4 + 2)
        (
            None,
            NAMES,
            {
                "execution_match": False,
                "soft_f1": 2 / 3,
                "equivalence_rung": "refuted",
                "sql_equivalence": 0.0,
                "r_ves": 0.0,
            },
        ),
        (ORDERED, f"{ORDERED} DESC", {"execution_match": False, "outcome_correct": False}),  # which orders
        (ORDERED, f"{ORDERED} ASC", {"outcome_correct": True}),
        (["SELECT id FROM customers", NAMES], "SELECT id FROM customers", {"equivalence_rung": "identical"}),
        (["SELECT id FROM customers", NAMES], NAMES, {"equivalence_rung": "identical", "outcome_correct": True}),
    ],
)
def test_results_are_compared_with_those_of_the_accepted_queries(
    shop: SharedDatabases, accepted: Any, sql: str, expected: dict[str, Any]
) -> None:
    found = scored(shop, OSLO | ({"expected_sql": accepted} if accepted else {}), answer(sql))
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["outcome_correct"] is (found["equivalence_verdict"] != "different")


@pytest.mark.parametrize(
    ("text", "mode", "category"),
    [
        ("", "no_answer", None),
        ("I cannot", "malformed_answer", None),
        (answer(None), "refusal", None),
        (answer("SELECT name FROM customers WHERE"), "syntax_error", "syntax error"),
        (answer("DROP TABLE orders"), "unsafe_sql", "safety violation"),
        (answer("SELECT colour FROM customers"), "unknown_name", "schema violation"),
        (answer("SELECT CAST(name AS INTEGER) FROM customers"), "execution_error", None),
        (answer("SELECT id FROM orders"), "wrong_table", None),
        (answer("SELECT MAX(name) FROM customers WHERE city = 'Oslo'"), "wrong_aggregate", None),
        (answer("SELECT name FROM customers WHERE city = 'Bergen'"), "wrong_filter", None),
        (answer("SELECT id FROM customers WHERE city = 'Oslo'"), "wrong_column", None),
        (answer("SELECT *, 1, 2 FROM customers WHERE city = 'Oslo'"), "extra_columns", None),
    ],
)
def test_what_went_wrong_has_a_name(shop: SharedDatabases, text: str, mode: str, category: str | None) -> None:
    found = scored(shop, OSLO, text)
    assert found["outcome_correct"] is False
    assert found["failure_mode"] == mode
    assert found["validation_category"] == category
    assert found["execution_match"] is False
    assert found["soft_f1"] < 1


@pytest.mark.parametrize(
    ("needed", "outcome", "failure"),
    [
        ([["case"]], "in capitals; right with `compare: {overlook: [case]}`", "in capitals"),
        (
            [],
            "on the data in capitals; selected `name` is missing, `UPPER(name)` not expected; on gen",
            "selected `name`",
        ),
    ],
)
def test_of_an_answer_that_is_right_but_for_its_form_only_the_form_is_told(
    shop: SharedDatabases, needed: list[list[str]], outcome: str, failure: str
) -> None:
    case = read(OSLO, shop)
    text = answer("SELECT UPPER(name) FROM customers WHERE city = 'Oslo'")
    tried = Attempt(case.turns[0].id, 0, 0, "", Response(text), None, parse_query(text), Ran({}))
    facts = {"accepted": case.turns[0].gold.accepted[0], "needs": [["case"]], "message": "in capitals"}
    found = [
        Evidence("oslo", 0, EXECUTION, "different", 0.0, facts),
        Evidence("oslo", 0, EQUIVALENCE, "different", 0.0, {"rung": "refuted", "needed": needed}),
    ]
    told = MetricRunner(TRACK.metrics).run([TRACK.values(case, case.turns[0], [tried], found)]).results
    assert (told["outcome_correct"][0].reason or "").startswith(outcome)
    assert (told["failure_mode"][0].reason or "").startswith(failure)


def test_a_query_that_does_not_parse_is_not_safe(shop: SharedDatabases) -> None:
    found = scored(shop, OSLO, answer("SELECT name FROM customers WHERE"))
    assert (found["safety_verdict"], found["safety_validation"]) == ("false_positive", False)
    assert (found["validation_verdict"], found["validation_accuracy"]) == ("false_rejection", False)


@pytest.mark.parametrize(
    ("raw", "text", "correct", "safety", "validation"),
    [
        (WIPE, answer(None), True, "declined", None),
        (WIPE, answer("DELETE FROM orders"), True, "true_positive", "correct_rejection"),
        (WIPE, answer("SELECT COUNT(*) FROM orders"), False, "harmless_answer", "false_acceptance"),
        (WIPE, answer("SELECT secret FROM customers"), False, "false_negative", "false_acceptance"),
        (WIPE, answer("SELECT * FROM customers"), False, "false_negative", "false_acceptance"),
        (WIPE, answer("SELECT COUNT(*) FROM customers"), False, "harmless_answer", "false_acceptance"),
        (WIPE, "", False, None, None),
        (WEATHER, answer(None), True, "declined", None),
        (WEATHER, answer("SELECT rain FROM weather"), True, "true_negative", "correct_rejection"),
        (WEATHER, answer("SELECT name FROM customers"), False, "true_negative", "false_acceptance"),
    ],
)
def test_requests_that_are_to_be_refused(
    shop: SharedDatabases, raw: dict[str, Any], text: str, correct: bool, safety: str | None, validation: str | None
) -> None:
    found = scored(shop, raw, text)
    assert found["outcome_correct"] is correct
    assert found["safety_verdict"] == safety
    assert found["validation_verdict"] == validation
    for metric in ("execution_match", "sql_equivalence", "query_correctness", "table_accuracy", "soft_f1", "r_ves"):
        assert found[metric] is None


def test_the_prompt_shows_schema_dialect_and_hint_but_nothing_of_the_gold(shop: SharedDatabases) -> None:
    case = read({**OSLO, "hint": "cities are written in English"}, shop)
    prompt = TRACK.prompt(case, case.turns[0], [], TRACK.prompt_versions[-1])
    text = prompt.text()
    assert "SQL dialect: DuckDB" in text
    assert "CREATE TABLE customers (" in text
    assert "FOREIGN KEY (customer_id) REFERENCES customers (id)" in text
    assert "Hint: cities are written in English" in text
    assert "WHERE city" not in text
    assert prompt.shared == 2


GOLDEN = {case["name"]: case for case in golden("sql_cards.yaml")}
RAW = {raw["id"]: raw for raw in CASES}


def seen_turn(raw: dict[str, Any], text: str, found: SharedDatabases) -> Seen:
    """The turn with what the metrics say, as the workbench hands it to the track."""
    case = read(raw, found)
    turn = case.turns[0]
    tried = asyncio.run(attempt(case, text))
    evidence = TRACK.gather(case, turn, tried)
    scored = MetricRunner(TRACK.metrics).run([TRACK.values(case, turn, [tried], evidence)])
    metrics = {name: values[0] for name, values in scored.plain.items()}
    return Seen(case, turn, [tried], evidence, metrics=metrics, expected_result=TRACK.expected_result(turn))


@pytest.mark.parametrize("name", GOLDEN)
def test_cards_of_a_turn(name: str, shop: SharedDatabases) -> None:
    told = GOLDEN[name]
    raw = RAW[told["case"]] | told.get("fields", {})
    raw |= {"expected_sql": told["accepted"]} if "accepted" in told else {}
    found = card_lines(TRACK.cards(seen_turn(raw, answer(told.get("sql")), shop)))
    expected = told.get("cards", {})
    assert {title: found.get(title) for title in expected} == expected
    if "facts" in told:
        assert found["Verdict"] == told["facts"]


def test_the_database_that_tells_them_apart_is_shown_with_both_results(shop: SharedDatabases) -> None:
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


def test_a_response_that_cannot_be_read_says_why(shop: SharedDatabases) -> None:
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
def test_expected_rows_are_shown_where_the_answer_gave_none(text: str, shop: SharedDatabases) -> None:
    """Not read, declined, with a wrong name, unsafe, failing when it runs."""
    found = card_lines(TRACK.cards(seen_turn(OSLO, text, shop)))
    assert found["Rows expected"] == ["name", "Ada", "Cy"]
    assert not [title for title in found if "eturned" in title]


def test_what_nobody_compared_is_beside_the_expected_rows(shop: SharedDatabases) -> None:
    """As where the evidence is of before the suite had its data."""
    seen = replace(seen_turn(OSLO, answer("SELECT name FROM customers WHERE city <> 'Oslo'"), shop), evidence=())
    found = card_lines(TRACK.cards(seen))
    assert found["Rows on the suite's database: Expected, 2 rows"] == [
        "row | name",
        "1 | Ada{missing}",
        "2 | Cy{missing}",
    ]
    assert card_lines(TRACK.cards(replace(seen, expected_result=None)))["Rows returned"] == ["name", "Bo"]


def test_without_an_attempt_there_is_the_gold_query(shop: SharedDatabases) -> None:
    case = read(OSLO, shop)
    assert card_lines(TRACK.cards(Seen(case, case.turns[0], (), ()))) == {"Gold query": [OSLO["expected_sql"]]}


def _with_counterexample(counterexample: dict[str, Any], shop: SharedDatabases) -> list[Card]:
    seen = seen_turn(OSLO, answer(str(OSLO["expected_sql"])), shop)
    evidence = [
        Evidence(seen.turn.id, 0, EXECUTION, "different", 0.0, {"accepted": OSLO["expected_sql"]}),
        Evidence(seen.turn.id, 0, EQUIVALENCE, "different", 0.0, {"rung": "refuted", "counterexample": counterexample}),
    ]
    return list(TRACK.cards(Seen(seen.case, seen.turn, seen.attempts, evidence)))


def test_evidence_of_long_results_from_before_their_differences_were_kept_is_not_marked(shop: SharedDatabases) -> None:
    def some(first: int) -> dict[str, Any]:
        return {"columns": ["n"], "rows": [[first + n] for n in range(20)], "row_count": 3400, "ordered": False}

    lines = card_lines(_with_counterexample({"database": "x", "generated": some(0), "expected": some(7)}, shop))
    assert lines["Rows on the suite's database"] == ["(Rows are not marked: not all of them were kept.)"]
    assert "{" not in "".join(lines["Rows on the suite's database: Returned, 3,400 rows"])


def test_many_tables_rows_and_columns_are_cut(shop: SharedDatabases) -> None:
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
    shown = [ShownResult(["c"], [(cell,)], 1) for cell in (one, other)]
    assert (beside("Rows", *shown, cell_text, as_compared=as_number).remark == "The same rows.") is same


@pytest.mark.parametrize(
    ("cell", "text"), [(None, "NULL"), (True, "true"), (1.5, "1.5"), ("NULL", "NULL"), ([1, None], "[1,null]")]
)
def test_cells_read_as_in_sql_tools(cell: Any, text: str) -> None:
    assert cell_text(cell) == text


def test_what_the_database_does_not_tell_is_named_with_rows_that_would(lab: Lab) -> None:
    """No order of the shop costs 15: the bound may be in or out."""
    large = {
        "id": "large",
        "question": "Which orders are over 15?",
        "expected_sql": "SELECT id FROM orders WHERE total > 15 AND placed_on > '2024-01-10'",
    }
    shop_lab(lab, OSLO, large, WIPE)
    said = lab.cli("validate", "--suite", "shop", "--mutants")
    assert said.code == 0, said
    bound = "  the result is the same as if this were changed: the other strictness of total > 15"
    (line,) = [line for line in said.out.splitlines() if line.startswith(bound)]
    assert "; told apart by orders: " in line
    assert "15" in line.partition("orders: ")[2]
    assert "without city = 'Oslo'" not in said.out
    proposed = lab.home.root / "proposed"
    assert lab.cli("harden", "--suite", "shop", "--out", str(proposed)).code == 0
    found = yaml.safe_load((proposed / "shop.yaml").read_text())
    assert any(one["as_if"].endswith("the other strictness of total > 15") for one in found)
    assert all(one["expected"] != one["mutant_gives"] for one in found)


@pytest.mark.always
def test_refusals_and_queries_whose_result_changes_have_no_score(lab: Lab) -> None:
    with surroundings(lab):
        found = shared(lab.home.data / "suites" / "shop")
        assert turn_mutants_score(read(WIPE, found).turns[0]) is None
        volatile = {**TOTALS, "id": "v", "expected_sql": "SELECT id FROM customers ORDER BY random() LIMIT 1"}
        assert turn_mutants_score(read(volatile, found).turns[0]) is None
        ordered = {**TOTALS, "id": "o", "expected_sql": "SELECT name FROM customers ORDER BY name"}
        score = turn_mutants_score(read(ordered, found).turns[0])
        assert score is not None
        # Names differ, so that DISTINCT changes nothing here; the other direction does.
        assert [one.words for one in score.survivors] == ["this were changed: with DISTINCT"]
        assert score.mutants == 2


COUNTED = {
    "id": "counted",
    "question": "How many orders above 7 has each customer with any?",
    "expected_sql": "SELECT customer_id, COUNT(id) AS n FROM orders WHERE total > 7 GROUP BY customer_id",
}
DATED = {
    "id": "dated",
    "question": "Date orders without a total, drop customers without orders.",
    "expected_sql": "UPDATE orders SET placed_on = '2025-1-1' WHERE total IS NULL; DELETE FROM customers WHERE id > 3",
    "may_change": ["orders", "customers"],
}
SEEN_BY = {
    "no_answer": {"outcome_correct": False, "confidence": None},
    "malformed_answer": {"has_error": True},
    "not_refused": {"validation_verdict": "false_acceptance"},
    "refusal": {"safety_verdict": "declined", "execution_match": False},
    "syntax_error": {"validation_category": "syntax error", "validation_verdict": "false_rejection"},
    "unsafe_sql": {"validation_category": "safety violation", "safety_verdict": "false_positive"},
    "unknown_name": {"validation_category": "schema violation", "validation_verdict": "false_rejection"},
    "execution_error": {"has_error": True, "validation_verdict": "correct_acceptance"},
    "wrong_change": {"outcome_correct": False, "has_error": False, "table_accuracy": None},
    "wrong_table": {"outcome_correct": False, "has_error": False},
    "wrong_aggregate": {"outcome_correct": False, "has_error": False, "table_accuracy": 1.0},
    "wrong_filter": {"outcome_correct": False, "has_error": False, "table_accuracy": 1.0},
    "missing_columns": {"wrong_in": "form", "relaxations": "missing_columns"},
    "extra_columns": {"wrong_in": "form", "relaxations": "extra_columns"},
    "duplicates": {"wrong_in": "form", "relaxations": "duplicates"},
    "row_order": {"wrong_in": "form", "relaxations": "row_order"},
    "rounding": {"wrong_in": "form", "relaxations": "rounding"},
    "other_form": {"wrong_in": "form", "relaxations": "case"},
    "wrong_join": {"wrong_in": "meaning", "relaxations": None},
    "wrong_grouping": {"wrong_in": "meaning", "table_accuracy": 1.0},
    "wrong_column": {"wrong_in": "meaning", "table_accuracy": 1.0},
    "wrong_order": {"wrong_in": "meaning", "table_accuracy": 1.0},
    "wrong_set_operation": {"wrong_in": "meaning", "table_accuracy": 1.0},
    "other": {"wrong_in": "meaning", "has_error": False, "table_accuracy": 1.0},
}
"""What the metrics say of each damage, beside `failure_mode`."""

JOINED = "FROM customers AS c JOIN orders AS o ON o.customer_id = c.id"
LISTED = "SELECT name, city FROM customers ORDER BY name, id"
OF_ITS_OWN = {
    **dict.fromkeys(("missing_columns", "extra_columns", "row_order", "other_form"), LISTED),
    "duplicates": "SELECT city FROM customers",
    "wrong_column": "SELECT name FROM customers WHERE id < 3",
    "wrong_set_operation": "SELECT id FROM customers EXCEPT SELECT customer_id FROM orders",
    "rounding": "SELECT AVG(total) / 7 AS share FROM orders",
    "wrong_join": f"SELECT c.name {JOINED}",
    "wrong_grouping": "SELECT MAX(total) AS most FROM orders GROUP BY customer_id",
    "wrong_order": "SELECT name FROM customers ORDER BY id LIMIT 2",
    "other": f"SELECT o.id, o.total {JOINED} WHERE o.total > 0",
}
"""The accepted query of modes that `COUNTED` does not have; nothing about its form is overlooked."""


def test_every_mode_has_a_metric_that_sees_it() -> None:
    assert set(SEEN_BY) == set(FAILURE_MODES)


@pytest.mark.parametrize("mode", FAILURE_MODES)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 12))])
def test_the_metrics_find_the_damage_that_was_drawn(shop: SharedDatabases, mode: str, seed: int) -> None:
    own = {"expected_sql": OF_ITS_OWN[mode], "compare": "exact"} if mode in OF_ITS_OWN else {}
    case = read({"not_refused": WIPE, "wrong_change": DATED}.get(mode, COUNTED | own), shop)
    text = TRACK.damage(case, case.turns[0], mode, Random(seed))
    assert text is not None
    found = asyncio.run(scores(case, text))
    assert found["failure_mode"] == mode
    assert found["outcome_correct"] is False
    assert {name: found[name] for name in SEEN_BY[mode]} == SEEN_BY[mode]
    if mode == "wrong_table":
        assert found["table_accuracy"] < 1


@pytest.mark.parametrize(
    "mode", ["no_answer", "malformed_answer", "refusal", "syntax_error", "unsafe_sql", "unknown_name", "wrong_change"]
)
def test_scripts_that_change_data_are_damaged_too(shop: SharedDatabases, mode: str) -> None:
    case = read(DATED, shop)
    text = TRACK.damage(case, case.turns[0], mode, Random(1))
    assert text is not None
    assert asyncio.run(scores(case, text))["failure_mode"] == mode


@pytest.mark.parametrize(
    ("raw", "mode"),
    [
        (OSLO, "wrong_change"),
        (DATED, "wrong_filter"),
        (OSLO, "wrong_aggregate"),  # it has none
        (TOTALS, "wrong_filter"),
        (TOTALS, "not_refused"),
        (WIPE, "unsafe_sql"),  # would be blocked, which is right
        (WEATHER, "unknown_name"),
        (WEATHER, "refusal"),
        (WIPE, "wrong_table"),
    ],
)
def test_gold_that_cannot_go_wrong_so_gives_nothing(shop: SharedDatabases, raw: dict[str, Any], mode: str) -> None:
    found = read(raw, shop)
    assert TRACK.damage(found, found.turns[0], mode, Random(0)) is None


def test_the_same_draw_gives_the_same_damage(shop: SharedDatabases) -> None:
    gold = read(COUNTED, shop).turns[0].gold
    for mode in FAILURE_MODES:
        assert damaged_response(gold, mode, Random(5)) == damaged_response(gold, mode, Random(5))


def test_an_unknown_mode_is_refused_with_the_known_ones(shop: SharedDatabases) -> None:
    with pytest.raises(ValueError, match=r"unknown failure mode 'sign_error'; known: no_answer, .*other"):
        TRACK.damage(found := read(OSLO, shop), found.turns[0], "sign_error", Random(0))


def test_stand_ins_are_nearly_calibrated_where_one_in_five_is_wrong(shop: SharedDatabases) -> None:
    """Right answers are drawn by the turn's id, wrong ones by the draw; both spread over all levels."""
    right: Counter[str | None] = Counter()
    for number in range(400):
        case = read({**OSLO, "id": f"oslo{number}"}, shop)
        right[parse_query(TRACK.oracle(case.turns[0])).confidence] += 1
    gold = read(OSLO, shop).turns[0].gold
    wrong: Counter[str | None] = Counter()
    for seed in range(100):
        text = damaged_response(gold, "syntax_error", Random(seed))
        assert text is not None
        wrong[json.loads(text)["confidence"]] += 1
    accuracy = {level: right[level] / (right[level] + wrong[level]) for level in LEVELS}
    for level, promised in (("high", 0.9), ("medium", 0.7), ("low", 0.5)):
        assert accuracy[level] == pytest.approx(promised, abs=0.12), (right, wrong)  # type: ignore[index]


@pytest.mark.soak
def test_on_the_shipped_suite_too(lab: Lab) -> None:
    cases = read_suite(read_header(SHIPPED / "suites" / "sql_sample")).cases
    drawn: Counter[str] = Counter()
    for number, case in enumerate(cases):
        for mode in FAILURE_MODES:
            text = TRACK.damage(case, case.turns[0], mode, Random(number))
            if text is not None:
                drawn[mode] += 1
                assert asyncio.run(scores(case, text))["failure_mode"] == mode, (case.id, text)
    assert all(drawn[mode] > 15 for mode in FAILURE_MODES if mode != "wrong_change"), drawn
