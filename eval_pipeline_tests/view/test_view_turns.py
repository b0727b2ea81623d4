"""Turns: what a filter shows, in which order, page by page."""

import csv
import io
from datetime import date

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.store.published.query import run_query
from eval_pipeline.view.evaluation import StoredEvaluation, TurnColumn, evaluation_at
from eval_pipeline.view.filtering import found
from eval_pipeline.view.filtering import sql as filtering_sql
from eval_pipeline.view.filtering.filter import OPERATORS, Condition, Filter, filter_of
from eval_pipeline.view.filtering.found import all_turns, count, order, page_of_turns
from eval_pipeline.view.filtering.sql import position_from, position_text, turns_sql
from eval_pipeline.view.page import Bench
from eval_pipeline.view.published import StoreView
from eval_pipeline_tests.view.homes import FALLING, HOSTILE, HOSTILE_CASE, HOSTILE_TEXTS, LAST, SUITE, TURNS
from eval_pipeline_tests.view.pages import Parts, is_harmless, turn_of, turns_of

ORDERS = ("", "question", "correct", "usd", "logic_f1", "failure_mode", "tags", "complexity", "answer", "attempts")
"""Columns of every type, with equal values, with none but empty ones, with some empty ones."""
HARM = Partition(SUITE, HOSTILE, LAST)


def shown(client: TestClient, **more: object) -> list[str]:
    """`<case>#<index>` of the turns that a page lists."""
    return names(client.get(turns_of(FALLING, **more)).text)


def names(html: str) -> list[str]:
    found = (row.partition("turn_id=harbour%2F")[2].partition("&")[0] for row in Parts(html).rows())
    return [name.replace("%23", "#") for name in found]


def test_a_filter_shows_what_it_says_in_the_order_asked_for(client: TestClient) -> None:
    assert len(shown(client)) == TURNS
    wrong = shown(client, verdict="wrong")
    assert wrong == [f"ship_{n:02}#1" for n in range(12)]
    assert shown(client, verdict="wrong", tag="odd") == [name for n, name in enumerate(wrong) if n % 2]
    assert shown(client, error_class="wrong_answer", column="turn_index", **{"is": "at_most", "value": "0"}) == []
    assert shown(client, q="SHIP_07") == ["ship_07#0", "ship_07#1"]
    assert shown(client, column="expected", **{"is": "is", "value": "24"}) == ["ship_07#1"]
    assert shown(client, column=["turn_index", "correct"], **{"is": ["is", "is"], "value": ["1", "no"]}) == wrong
    # The response that says `pwned = 2` stands in no column of the list.
    html = client.get(turns_of(HOSTILE, q="ONERROR=")).text
    assert len([row for row in Parts(html).rows() if "ship_" not in row]) == 1
    up, down = shown(client, sort="question"), shown(client, sort="question", order="desc")
    assert up != shown(client)
    assert up == down[::-1]
    # As texts 9 would be more than 24, and -1 at most 9.
    most = shown(client, column="answer", **{"is": "at_most", "value": "9"})
    assert [turn for turn in most if turn.startswith("ship")] == [f"ship_{n:02}#1" for n in range(12)]
    least = shown(client, column="expected", **{"is": "at_least", "value": "9.0"})
    assert shown(client, column="expected", **{"is": "at_least", "value": "1E310"}) == []
    assert least == [turn for turn in shown(client) if turn.startswith("ship")]
    assert shown(client, column="question", **{"is": "at_least", "value": "what"}) != []


NUMBERS = ["-3", "12%", "0.5", "$7", "9", "10", "1e3", "1,234.5"]
WORDS = ["", "9 or 10", "Zebra", "abc", "inf", "nan"]


@pytest.mark.parametrize("descending", [False, True])
def test_texts_that_are_numbers_are_sorted_as_numbers(look: StoreView, descending: bool) -> None:
    direction = "DESC" if descending else "ASC"
    keys = filtering_sql._keys("t", descending=descending)
    order = ", ".join(f"{key} {direction} NULLS LAST" for key in keys)
    values = ", ".join(f"('{word}')" for word in sorted([*NUMBERS, *WORDS], key=lambda word: word[::-1]))
    said = [row["t"] for row in look.rows(f"SELECT t FROM (VALUES {values}, (NULL)) AS v(t) ORDER BY {order}")]
    turned = -1 if descending else 1
    assert said == [*NUMBERS[::turned], *WORDS[::turned], None]


def test_addresses_are_completed_and_wrong_ones_told_in_a_sentence(client: TestClient) -> None:
    for more, words in {
        "sort=nothing": "unknown column &#39;nothing&#39;",
        "column=usd&is=at_least&value=x": "&#39;x&#39; does not fit usd; expected a number",
        "column=usd&is=near&value=1": "unknown condition &#39;near&#39;",
        "verdict=maybe": "unknown verdict",
        "after=[1]": "contains an invalid position",
        "q=%00": "not a text",
    }.items():
        answer = client.get(f"{turns_of(FALLING)}&{more}")
        assert (answer.status_code, words in answer.text) == (400, True), more
    for path in ("/suites/nowhere/turns", turns_of("nobody"), turns_of(FALLING, "2020-01-01"), "/nowhere"):
        assert client.get(path).status_code == 404
    answer = client.get(f"/suites/harbour/turns?model_version={FALLING}&verdict=wrong", follow_redirects=False)
    assert answer.headers["location"] == turns_of(FALLING, verdict="wrong")


def test_the_sql_that_is_shown_runs_as_it_is(client: TestClient, bench: Bench) -> None:
    empty = {"column": "logic_f1", "is": "empty", "value": ""}
    address = turns_of(FALLING, verdict="wrong", sort="usd", q="ship", **empty)
    for one in (address, turns_of(FALLING, verdict="wrong", tag="odd", sort="failure_mode")):
        html = client.get(one).text
        sql = html.partition('<pre class="code" id="sql" tabindex="0">')[2].partition("</pre>")[0]
        rows = run_query(bench.home.store, Parts(sql).texts[0] if "&" in sql else sql)
        assert rows["turn_id"].to_pylist() == [f"harbour/{name}" for name in names(html)]


@pytest.fixture(params=[FALLING, HOSTILE])
def evaluation(request: pytest.FixtureRequest, look: StoreView) -> StoredEvaluation:
    return evaluation_at(look, Partition(SUITE, request.param, LAST))


@pytest.mark.parametrize("descending", [False, True])
def test_pages_walk_through_every_order_without_loss(
    look: StoreView, evaluation: StoredEvaluation, descending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forwards and back, whatever is sorted by, also where values are equal or empty."""
    monkeypatch.setattr(found, "PAGE_SIZE", 11)
    for column in ORDERS:
        filtered = Filter(sort=column, descending=descending)
        all_of_them = [tuple(row.values())[:4] for row in look.rows(turns_sql(evaluation, filtered, ()))]
        assert len(set(all_of_them)) == TURNS
        walked, beyond, last = [], None, None
        for _ in range(TURNS):
            last = page_of_turns(look, evaluation, filtered, beyond, backwards=False)
            walked += [tuple(row.values())[:4] for row in last.rows]
            beyond = position_from(position_text(last.last))
            if not last.after:
                break
        assert walked == all_of_them, column
        back = [tuple(row.values())[:4] for row in last.rows]
        while last.before:
            place = position_from(position_text(last.first))
            last = page_of_turns(look, evaluation, filtered, place, backwards=True)
            back = [tuple(row.values())[:4] for row in last.rows] + back
        assert back == all_of_them, column


def test_places_in_a_filter(look: StoreView, evaluation: StoredEvaluation) -> None:
    filtered = Filter(sort="question", descending=True)
    turns = order(look, evaluation, filtered)
    rows = look.rows(turns_sql(evaluation, filtered, ()))
    assert [turns.at(place) for place in range(-1, TURNS + 1)] == [
        None, *((row["turn_id"], row["sample"]) for row in rows), None,
    ]  # fmt: skip
    assert [turns.place(row["turn_id"], row["sample"]) for row in rows] == list(range(TURNS))
    assert turns.place("harbour/nobody#0", 0) is None
    assert turns.place(rows[0]["turn_id"], 1) is None


def test_all_turns_are_those_of_the_filter_in_its_order(
    look: StoreView, evaluation: StoredEvaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "_ROWS_AT_ONCE", 5)
    for filtered in (Filter(sort="usd"), Filter(sort="question"), Filter(text="ship_1"), Filter(text="nothing at all")):
        tables = list(all_turns(look, evaluation, filtered))
        ids = [turn for table in tables for turn in table["turn_id"].to_pylist()]
        assert ids == [row["turn_id"] for row in look.rows(turns_sql(evaluation, filtered, ()))]
        assert set(tables[0].column_names) == set(evaluation.columns)


SAID = st.text(max_size=12) | st.sampled_from(
    ["'", "''; DROP TABLE runs --", "%", "\\", "1e999", "-0", "nan", "☃", "9" * 40, "1.5", "yes"]
)


@settings(max_examples=40)
@given(st.data())
def test_whatever_is_filtered_by_is_a_query_or_a_sentence(bench: Bench, data: st.DataObject) -> None:
    with bench.published.look() as look:
        evaluation = evaluation_at(look, HARM)
        columns = st.sampled_from([*evaluation.columns, ""])
        query = [
            ("q", data.draw(SAID)), ("tag", data.draw(SAID)), ("error_class", data.draw(SAID)),
            ("sort", data.draw(columns)), ("column", data.draw(columns)),
            ("is", data.draw(st.sampled_from(OPERATORS))), ("value", data.draw(SAID)),
        ]  # fmt: skip
        try:
            filtered = filter_of(QueryParams(query), evaluation.columns)
            assert filter_of(QueryParams([*pairs(filtered)]), evaluation.columns) == filtered
            assert 0 <= count(look, evaluation, filtered) <= TURNS
        except UsageError:
            return
    with bench.published.look() as look:
        assert len(look.rows("SELECT * FROM duckdb_tables() WHERE database_name = 'store'")) > 30


def pairs(filtered: Filter) -> list[tuple[str, str]]:
    found = []
    for name, value in filtered.arguments.items():
        found += [(name, one) for one in value] if isinstance(value, list) else [(name, value)]
    return found


def test_conditions_mean_what_they_say(look: StoreView) -> None:
    evaluation = evaluation_at(look, HARM)
    for condition, sql in {
        Condition("tokens", "at_least", "200"): "tokens >= 200",
        Condition("tokens", "is_not", "120"): "tokens IS DISTINCT FROM 120",
        Condition("usd", "empty", ""): "usd IS NULL",
        Condition("answer", "not_empty", ""): "answer IS NOT NULL",
        Condition("score", "at_most", "0.5"): "score <= 0.5",
        Condition("question", "contains", "SHIP"): "question ILIKE '%ship%'",
        Condition("correct", "is", "yes"): "correct",
    }.items():
        (row,) = look.rows(f"SELECT count(*) AS n FROM turn_results WHERE model_version = '{HOSTILE}' AND ({sql})")
        assert count(look, evaluation, Filter(conditions=(condition,))) == row["n"], condition


@pytest.mark.parametrize(("said", "condition"), [("yes", "t.read = true"), ("no", "t.read = false")])
def test_a_filter_of_its_own_may_be_a_boolean(said: str, condition: str) -> None:
    column = TurnColumn("read_otherwise", "t.read", "BOOLEAN", "", True)
    evaluation = StoredEvaluation(Partition("s", "m", date(2026, 1, 2)), "text", {"read_otherwise": column}, {})
    sql = filtering_sql.count_sql(evaluation, Filter(read_otherwise=said))
    assert condition in sql
    assert 'LEFT JOIN "text_turns" AS t' in sql
    with pytest.raises(UsageError, match="'maybe' does not fit read_otherwise; expected yes or no"):
        filtering_sql.count_sql(evaluation, Filter(read_otherwise="maybe"))


def test_hostile_turns_are_listed_and_nothing_runs(client: TestClient) -> None:
    for more in ({}, {"tag": HOSTILE_TEXTS[0]}, {"q": HOSTILE_TEXTS[1], "show": ["tags", "case_id"]}):
        html = client.get(turns_of(HOSTILE, **more)).text
        is_harmless(html)
        assert len(html) < 500_000
    rows = Parts(client.get(turns_of(HOSTILE, tag=HOSTILE_TEXTS[0])).text).rows()
    assert len(rows) == len(HOSTILE_TEXTS)
    for address in rows:
        assert client.get(address).status_code == 200
    assert client.get(turn_of(f"harbour/{HOSTILE_CASE}#0", HOSTILE)).status_code == 200


@pytest.mark.parametrize(
    ("said", "found"),
    [("330", True), ("+330", True), ("330.0", True), ("330.5", False), ("1e999", False), ("9" * 40, False)],
)
def test_numbers_are_read_however_they_are_written(look: StoreView, said: str, found: bool) -> None:
    """Turns that were asked three times took 330 tokens."""
    filtered = Filter(conditions=(Condition("tokens", "is", said),))
    assert (count(look, evaluation_at(look, HARM), filtered) > 0) == found


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("1,234.5", 1234.5),
        (" $7 ", 7.0),
        ("12%", 0.12),
        ("-3", -3.0),
        (".5", 0.5),
        ("1e5", 1e5),
        ("0." + "3" * 60, 1 / 3),
        ("+inf", None),
        ("nan", None),
        ("1e999", None),
        ("twelve", None),
        ("2019 to 2020", None),
        (":5", None),
        ("", None),
    ],
)
def test_a_text_is_a_number_as_people_write_them(look: StoreView, said: str, number: float | None) -> None:
    (row,) = look.rows(f"SELECT {filtering_sql._number('said')} AS number FROM (SELECT $said AS said)", {"said": said})
    assert row["number"] == (None if number is None else pytest.approx(number))


def got(client: TestClient, form: str, **more: object) -> bytes:
    (address,) = Parts(client.get(turns_of(HOSTILE, **more)).text).links(f"turns.{form}?")
    answer = client.get(address)
    assert answer.headers["content-disposition"].startswith("attachment")
    return answer.content


@pytest.mark.always
def test_what_is_downloaded_is_harmless_in_csv_and_as_it_is_in_parquet(client: TestClient) -> None:
    rows = pq.read_table(io.BytesIO(got(client, "parquet", tag=HOSTILE_TEXTS[0], sort="turn_index", order="desc")))
    assert rows["turn_index"].to_pylist() == [6, 5, 4, 3, 2, 1, 0]
    assert rows["question"][6].as_py() == f"what of {HOSTILE_TEXTS[0]}?"
    assert {"logic_f1", "failure_mode", "tokens", "tags"} <= set(rows.column_names)
    text = got(client, "csv").decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 31
    for row in rows:
        for name, value in row.items():
            assert not value.startswith(("=", "@", "+", "\t")), name
    assert "\x1b" not in text and "\u202e" not in text
    assert {row["case_id"][:2] for row in rows} == {"sh", "'="}
    assert got(client, "csv", q="nothing at all").decode().count("\n") == 1
    assert pq.read_table(io.BytesIO(got(client, "parquet", q="nothing at all"))).num_rows == 0
    assert client.get(turns_of(HOSTILE).replace("/turns?", "/turns.exe?")).status_code == 400
