"""How each track tells that its gold contradicts itself, and when two answers are the same."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.core.model import Turn
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.tracks.abilities import answer_keys_of, doubts_of
from eval_pipeline.tracks.capabilities import Contradiction
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentGold
from eval_pipeline_plugins.tracks.agent.cases.settings import AnswerCheck, StateCheck
from eval_pipeline_plugins.tracks.agent.track import TRACK as AGENT
from eval_pipeline_plugins.tracks.finqa.cases.audit import answer_keys, printed_distance
from eval_pipeline_plugins.tracks.finqa.track import TRACK as FINQA
from eval_pipeline_plugins.tracks.pandas_code.results.reading import answer_key as pandas_key
from eval_pipeline_plugins.tracks.sql.gold.audit import answer_key as sql_key
from eval_pipeline_tests.support import SHIPPED, case


def number(value: float) -> dict[str, Any]:
    return {"value": value, "percent": False}


@pytest.mark.parametrize(
    ("answers", "groups"),
    [
        ([number(100.0), number(100.9), number(102.5)], [0, 0, 1]),  # 100.9 within 1% of 100, 102.5 not
        ([number(0.2466), number(0.246), number(24.66)], [0, 0, 1]),  # another power of ten is another answer
        ([number(-5.0), number(5.0)], [0, 1]),
        ([number(0.0), number(0.0005)], [0, 0]),  # within 0.001
        ([{"text": "Yes"}, {"text": "yes"}, number(1.0)], [0, 0, 1]),
        ([number(float("inf")), number(1.0)], [0, 1]),
    ],
)
def test_finqa_answers_are_the_same_by_its_primary_metric(answers: list[dict[str, Any]], groups: list[int]) -> None:
    keys = answer_keys(answers)
    assert [list(dict.fromkeys(keys)).index(key) for key in keys] == groups


@pytest.mark.parametrize(
    ("answer", "printed", "far"),
    [
        (0.25, "25%", None),
        (0.256, "25%", True),  # 26%
        (0.2625, "25%", True),  # 5% away
        (0.4898, "48.9%", False),
        (50.8, "50.3%", False),  # 1% away where both count percent
        (7301.0, "7304", False),
        (332.0, "432", True),
        (-2.1, "2.1", True),
        (50.3, "50.3%", None),  # the gold counts percent itself
        ("yes", "yes", None),
        ("yes", "no", True),
        (12.0, "n/a", None),
    ],
)
def test_finqa_printed_against_executed(answer: float | str, printed: str, far: bool | None) -> None:
    raw = case("one", ("50", answer))
    raw["turns"][0]["printed"] = printed
    distance = printed_distance(FINQA.read_case(raw, "s", "f", 1).turns[0].gold)
    assert (None if distance is None else distance > 0.02) is far


def rows(*found: tuple[Any, ...], count: int | None = None, names: tuple[str, ...] = ("a", "b")) -> dict[str, Any]:
    return {
        "sql": "SELECT 1",
        "columns": list(names),
        "rows": [list(row) for row in found],
        "row_count": count or len(found),
    }


def test_sql_answers_are_the_same_by_their_rows() -> None:
    one = rows((1, "x"), (2, "y"))
    assert sql_key(one) == sql_key(rows((2, "y"), (1, "x"), names=("c", "d"))) == sql_key(rows((1.0, "x"), (2.0, "y")))
    assert sql_key(one) != sql_key(rows((1, "x")))
    assert sql_key(one) != sql_key(rows((1, "x"), (2, "y"), count=30))
    assert sql_key({"declined": "no"}) == sql_key({"declined": "never"}) != sql_key(one)
    nothing = {"columns": None, "rows": None, "row_count": None}
    assert sql_key({"sql": "SELECT  1", **nothing}) == sql_key({"sql": "select 1", **nothing})


def test_pandas_answers_are_the_same_by_what_the_record_shows() -> None:
    value = {"result": {"kind": "value", "value": 34.65}}
    assert pandas_key(value) == pandas_key({"result": {"kind": "value", "value": 34.650000000001}})
    assert pandas_key(value) != pandas_key({"result": {"kind": "value", "value": 34.66}})


@cache
def suite(name: str) -> Any:
    source = read_header(SHIPPED / "suites" / name)
    return source.track(), read_suite(source)


@pytest.mark.always
def test_sdmx_selections_are_the_same_in_whatever_order() -> None:
    def told(*terms: str) -> dict[str, Any]:
        values = [{"id": term, "name": term} for term in terms]
        return {"indicator_selection": [{"dataset_id": "D", "dimensions": [{"dimension_name": "I", "values": values}]}]}

    track, found = suite("sdmx_sample")
    keys = answer_keys_of(track, found.cases[0].turns[0], [told("A", "B"), told("B", "A"), told("A")])
    assert keys[0] == keys[1] != keys[2]


def test_text_answers_are_the_same_whatever_stands_around_them() -> None:
    track, found = suite("tickets_sample")
    told = [{"answer": "billing", "text": "It is billing."}, {"answer": "billing", "text": "billing"}, {"answer": "x"}]
    keys = answer_keys_of(track, found.cases[0].turns[0], told)
    assert keys[0] == keys[1] != keys[2]


def test_sdmx_a_target_that_names_a_rejected_data_set() -> None:
    import json

    track, found = suite("sdmx_sample")
    raw = next(
        json.loads(text)
        for text in found.contents
        if json.loads(text)["conversation"][0]["target"]["indicator_selection"]
    )
    data_set = raw["conversation"][0]["target"]["indicator_selection"][0]["dataset_id"]
    raw["rejected_datasets"] = ["ANOTHER", data_set]
    (doubt,) = doubts_of(track, track.read_case(raw, "s", "f", 1, found.shared))[:1]
    assert doubt.evidence == f"the target names data sets that the case rejects: {data_set}" and doubt.score == 0.6


ANSWERED = AgentGold((), ((7,),), unanswerable=False, checks=(AnswerCheck(), StateCheck()), compare=Contract())
LABELLED = replace(ANSWERED, checks=(AnswerCheck(labels=("approve", "reject")),))
IN_ORDER = replace(ANSWERED, checks=(AnswerCheck(compare=Contract(insist=(Relaxation.ROW_ORDER,))),))
CHANGED = AgentGold((), (("done",),), unanswerable=False, checks=(StateCheck(),), compare=Contract())


@pytest.mark.parametrize(
    ("gold", "attempts", "groups"),
    [
        (ANSWERED, [(12197, {}), ("12,197", {}), ("The net revenue is 12197.", {}), (12198, {})], [0, 0, 0, 1]),
        (ANSWERED, [("It is 12197.", {}), (12197.0, {})], [0, 0]),
        (ANSWERED, [(8, {}), (8, {"a.csv": None})], [0, 1]),
        (ANSWERED, [(None, {}), (8, {}), (None, {})], [0, 1, 0]),
        (ANSWERED, [("3", {}), ("3.14159", {}), (3, {}), (3.14159, {})], [0, 1, 0, 1]),
        (ANSWERED, [([1, 2], {}), ([2, 1], {})], [0, 0]),
        (IN_ORDER, [([1, 2], {}), ([2, 1], {})], [0, 1]),
        (LABELLED, [("approve", {}), ("I approve.", {}), ("approve, reject", {}), ("reject", {})], [0, 0, 1, 2]),
        (ANSWERED, [(5, {}), ("5 hours", {}), ("5 days", {})], [0, 0, 1]),
        (
            CHANGED,
            [("It is removed.", {}), ("I cannot find it.", {}), ("Shall I?", {}), ("Shall I?", {})],
            [0, 1, 2, 2],
        ),
        (CHANGED, [("done", {"a.csv": None}), ("I removed it.", {"a.csv": None}), ("done", {})], [0, 0, 1]),
    ],
)
def test_attempts_of_agents_are_the_same_by_what_they_say_and_leave(
    gold: AgentGold, attempts: list[tuple[Any, dict[str, Any]]], groups: list[int]
) -> None:
    turn = Turn("s/c#0", 0, "What is the net revenue?", gold)
    keys = answer_keys_of(
        AGENT, turn, [{"answers": [] if said is None else [said], "end_state": left} for said, left in attempts]
    )
    assert [list(dict.fromkeys(keys)).index(key) for key in keys] == groups


@pytest.mark.parametrize("gold", [ANSWERED, CHANGED])
def test_gold_of_agents_is_the_same_when_it_is_read_from_the_record(gold: AgentGold) -> None:
    told = AGENT.gold_json(Turn("s/c#0", 0, "?", gold))
    assert json_hash(told) == json_hash(parse_json(json_text(told)))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"expected_sql": ["SELECT 1 AS n", "SELECT 2 AS n"]}, None),  # each of them is right
        ({"expected_sql": ["SELECT 1 AS n", "SELECT 1.0 AS m"]}, None),
        ({"expected_sql": ["SELECT 1 AS n"], "expected_tables": ["nowhere"]}, "does not read just the expected tables"),
    ],
)
def test_sql_golds_are_doubted_for_tables_but_not_for_being_several(more: dict[str, Any], told: str | None) -> None:
    track, found = suite("sql_sample")
    database = next(iter(found.shared.databases))
    case = track.read_case({"id": "x", "question": "?", "database": database, **more}, "s", "f", 1, found.shared)
    doubts = doubts_of(track, case)
    assert [told in doubt.evidence for doubt in doubts] == [True] * (told is not None) if told else doubts == []


def test_gold_that_does_not_hold_is_told_once() -> None:
    raw = case("one", ("50", 51.0))
    raw["turns"][0]["printed"] = "99"
    (doubt,) = doubts_of(FINQA, FINQA.read_case(raw, "s", "f", 1))
    assert doubt == Contradiction("s/one#0", "the program '50' gives 50, the answer is 51", 1.0)
