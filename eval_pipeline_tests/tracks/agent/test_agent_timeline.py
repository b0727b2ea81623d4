"""The timeline of an attempt: what each step gave and had taken by then, tables as rows, and the wrong step."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.core.model import Evidence, Ran, ToolCall
from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.shown.cards import CardCell, FactsCard, Mark, TimelineCard
from eval_pipeline_plugins.tracks.agent.cards import turn_cards, work_done
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentGold
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite
from eval_pipeline_plugins.tracks.agent.timeline import arguments_shown, timeline
from eval_pipeline_plugins.tracks.agent.trajectory import parse_trajectory

MODEL = {"kind": "model", "text": "", "input_tokens": 100, "output_tokens": 20, "usd": 0.01, "latency_ms": 1500.0}


def query(text: str, result: str, rows: int | None, **told: Any) -> dict[str, Any]:
    return {"kind": "tool", "name": "sql", "arguments": {"query": text}, "result": result, "rows": rows, **told}


def card(*steps: dict[str, Any], evidence: tuple[Evidence, ...] = ()) -> TimelineCard:
    artefact = parse_trajectory(json.dumps({"steps": steps, "answer": 1, "ended": "answered", "end_state": {}}))
    seen: Any = SimpleNamespace(attempts=[SimpleNamespace(artefact=artefact)], evidence=evidence)
    (found,) = timeline(seen)
    return found


def test_each_step_says_what_was_taken_by_then() -> None:
    steps = card(MODEL, query("q", "n\n1", 1, bytes=3, seconds=0.5), MODEL).steps
    assert [(step.place, step.by, step.spent) for step in steps] == [
        (0, "model", "$0.0100 · 120 tokens · 2 s"),
        (1, "sql", "$0.0100 · 120 tokens · 2 s"),
        (2, "model", "$0.0200 · 240 tokens · 4 s"),
    ]
    assert steps[0].facts == ["100 + 20 tokens"]
    assert steps[1].facts == ["1 row", "3 B"]


def test_what_a_cell_has_made_is_told_with_its_size_or_value() -> None:
    made = [
        {"name": "df", "kind": "DataFrame", "rows": 1200, "columns": [["a", ""], ["b", ""], ["c", ""]]},
        {"name": "n", "kind": "int", "rows": None, "columns": [["", "ab"]], "values": [["4"]]},
        {"name": "odd", "kind": "int", "rows": None, "columns": [["", "ab"]], "values": [[]]},
    ]
    step = {"kind": "tool", "name": "python", "arguments": {"code": "x"}, "result": "", "made": made}
    assert card(step).steps[0].facts == ["made: df 1,200×3, n = 4, odd = ?"]
    assert card({**step, "made": 7}).steps[0].facts == []


def test_what_is_unknown_of_one_step_is_not_added_up() -> None:
    unknown = {**MODEL, "usd": None, "output_tokens": None}
    assert [step.spent for step in card(MODEL, unknown, MODEL).steps] == [
        "$0.0100 · 120 tokens · 2 s",
        "3 s",
        "5 s",
    ]  # of 4.5


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (query("q", "a | b\n1 | 2\n3 | NULL", 2), [["a", "b"], ["1", "2"], ["3", "NULL"]]),
        (query("q", "a | b\n1 | 2 | 3", 1), "a | b\n1 | 2 | 3"),  # a cell has what separates cells
        (query("q", "a\n1\n2", 1), "a\n1\n2"),  # a cell has a line's end
        (query("q", "a\n1\n(of 900 rows)", 900, cut=True), "a\n1\n(of 900 rows)"),
        (query("q", "a | b\n1 | 2", 1, error_class="value_error"), "a | b\n1 | 2"),
        (query("q", "(nothing)", 0), "(nothing)"),
        ({**query("q", "a | b\n1 | 2", 1), "name": "shell"}, "a | b\n1 | 2"),
    ],
)
def test_what_a_query_gives_is_shown_as_rows_if_they_can_be_told_apart(step: dict[str, Any], expected: object) -> None:
    assert card(step).steps[0].result == expected


def test_only_the_first_wrong_step_is_marked_and_says_why() -> None:
    why = Evidence(
        "t", 0, "way", "wrong_table", None, {"mode": "wrong_table", "step": 1, "words": "orders_old was read"}
    )
    steps = card(MODEL, query("q", "n\n1", 1), MODEL, evidence=(why,)).steps
    assert [step.remark for step in steps] == ["", "orders_old was read", ""]
    nowhere = Evidence("t", 0, "way", "told", None, {"step": None, "words": "no"})
    assert not any(step.remark for step in card(MODEL, evidence=(nowhere,)).steps)


def test_a_long_attempt_is_shown_in_part_and_says_so() -> None:
    found = card(*[MODEL] * 205)
    assert (len(found.steps), found.left_out) == (200, 5)


def test_arguments_are_read_without_quotes_and_the_longest_comes_last() -> None:
    assert arguments_shown({}) == ""
    assert arguments_shown({"query": "SELECT 1"}) == "SELECT 1"
    assert arguments_shown({"query": "SELECT 1\nFROM t", "database": "crm"}) == "database: crm\nSELECT 1\nFROM t"
    assert arguments_shown({"path": "notes/left.csv", "text": "n\n2\n"}) == "path: notes/left.csv\nn\n2\n"
    assert arguments_shown({"query": "TABLE t", "database": "customers"}) == "database: customers\nTABLE t"
    assert arguments_shown({"content": "", "file_path": "a"}) == "file_path: a\n"
    assert arguments_shown({"answer": [1, 2]}) == "[1,2]"


@pytest.mark.parametrize(("task_correct", "mark"), [(None, None), (False, Mark.WRONG)])
def test_nobody_is_blamed_where_the_world_itself_failed(task_correct: bool | None, mark: Mark | None) -> None:
    outcome = Ran({"answers": [], "ended": "harness", "why": "no space left", "end_state": {}})
    metrics = {"task_correct": task_correct, "failure_mode": "harness"}
    gold = AgentGold((), ((7,),), unanswerable=False, checks=(), compare=Contract())
    case: Any = SimpleNamespace(context=SimpleNamespace(world=WorldOfSuite("shop", "A shop.", {}, "", Path())))
    turn: Any = SimpleNamespace(gold=gold)
    attempt: Any = SimpleNamespace(artefact=None, outcome=outcome)
    facts = next(
        card for card in turn_cards(Seen(case, turn, [attempt], [], metrics=metrics)) if isinstance(card, FactsCard)
    )
    told = dict(facts.facts)
    assert [told[name] for name in ("ended", "failure mode")] == [
        CardCell(one, mark) for one in ("no space left", "harness")
    ]


def test_whoever_judges_sees_what_was_done_whatever_the_checks_say_of_it() -> None:
    told = {"steps": [query("q", "n\n1", 1)], "answer": 1, "ended": "answered", "end_state": {"a.csv": None}}
    gold = AgentGold((ToolCall("", "sql", {"query": "right"}),), ((7,),), False, (), Contract())
    case: Any = SimpleNamespace(context=SimpleNamespace(world=WorldOfSuite("shop", "A shop.", {}, "", Path())))
    turn: Any = SimpleNamespace(gold=gold)
    attempt: Any = SimpleNamespace(artefact=parse_trajectory(json.dumps(told)), outcome=Ran({**told, "answers": [1]}))
    why = Evidence("t", 0, "way", "invented", None, {"step": 0, "words": "nothing gave 1"})
    blamed, alone = (work_done(Seen(case, turn, [attempt], found)) for found in ([why], []))
    assert blamed == alone is not None
    assert [one.title for one in blamed.cards] == ["A solution", "What it did", "Changed files"]
    assert work_done(Seen(case, turn, [], [])) is None
