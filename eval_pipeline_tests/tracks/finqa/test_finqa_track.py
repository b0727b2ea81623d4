"""The track: prompts, validator, evidence, recorded answers; cards of turns; mutants of gold programs."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from eval_pipeline.core.model import Attempt, Case, Message, Ran
from eval_pipeline.operations.suite_work.mutation import suite_mutants
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.registry import load_track
from eval_pipeline.tracks.scored.mutation_score import mutation_score
from eval_pipeline.tracks.shown.cards import Card, TableCard
from eval_pipeline_plugins.tracks.finqa.cards import inlined
from eval_pipeline_plugins.tracks.finqa.mistakes.carried import program_text
from eval_pipeline_plugins.tracks.finqa.mutants import program_mutants
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.card_lines import card_lines

from .helpers import attempt_at, case_of, failed_call, gold_turn, measured, raw_case, sample_cases, validation_of

CASE = case_of(
    gold_turn("412.5", printed="412.5"), gold_turn("subtract(412.5, 371.0), divide(#0, 371.0)", 0.11186, "11.2%")
)
FIRST, SECOND = CASE.turns


def _plan(*steps: dict[str, Any]) -> str:
    return json.dumps({"plan": list(steps)})


def _compute(operation: str, *arguments: Any) -> dict[str, Any]:
    return {"tool": "compute", "operation": operation, "args": list(arguments)}


def test_the_registry_finds_the_track() -> None:
    assert load_track("finqa") is TRACK


def test_metrics_take_values_or_earlier_metrics() -> None:
    known = set(TRACK.values(CASE, FIRST, [attempt_at(CASE, FIRST, "")], ()))
    for metric in TRACK.metrics:
        assert set(metric.inputs()) <= known
        assert metric.name not in known
        known.add(metric.name)
    assert TRACK.primary_metric in known
    assert set(TRACK.complexity_columns) == set(TRACK.complexity_axes)


@pytest.mark.parametrize("version", TRACK.prompt_versions)
def test_prompts_share_system_and_document(version: str) -> None:
    first = TRACK.prompt(CASE, FIRST, [], version)
    second = TRACK.prompt(CASE, SECOND, ["412.5"], version)
    assert first.shared == second.shared == 2
    assert first.messages[:2] == second.messages[:2]
    assert [message.role for message in second.messages] == ["system", "user", "user", "assistant", "user"]
    assert second.messages[2:] == (Message("user", "what?"), Message("assistant", "412.5"), Message("user", "what?"))
    document = first.messages[1].text
    assert document == (
        "sales were 412.5, up from 371.\n\n| (in millions) | 2020 | 2019 |\n| net sales | 412.5 | 188 |\n"
        "| costs | (20) | $ (30) |\n| notes | see page 4 |  |\n| 2018 | 30 | 12% |\n\nthe rate was 12.5%."
    )
    schema = first.answer_schema
    assert schema is not None
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("version", TRACK.prompt_versions)
def test_the_example_in_the_instructions_is_right(version: str) -> None:
    text = TRACK.prompt(CASE, FIRST, [], version).messages[0].text
    attempt = attempt_at(CASE, FIRST, text[text.index("Example.") :])
    assert attempt.outcome == Ran({"value": pytest.approx(0.05), "percent": False})


def test_an_earlier_turn_without_an_answer_is_shown_so() -> None:
    assert TRACK.prompt(CASE, SECOND, [""], "plan-1").messages[3].text == "(no answer)"
    with pytest.raises(ValueError, match="shorter"):
        TRACK.prompt(CASE, SECOND, [], "plan-1")


@pytest.mark.parametrize(
    ("response", "verdict", "check", "found"),
    [
        (_plan({"tool": "extract", "value": 412.5}), "valid", "steps", 1),
        (_plan({"tool": "extract", "value": 12.5}), "valid", "operands_not_found", []),
        (_plan({"tool": "extract", "value": 0.125}), "valid", "operands_not_found", []),
        (_plan({"tool": "extract", "value": -371}), "valid", "operands_not_found", []),
        (_plan({"tool": "extract", "value": 412500}), "valid", "operands_not_found", []),
        (_plan({"tool": "extract", "value": 412500000}), "valid", "operands_not_found", []),
        (_plan({"tool": "extract", "value": 0.11186}), "valid", "operands_not_found", []),
        (_plan({"tool": "extract", "value": 11.2}), "valid", "operands_not_found", []),
        (_plan({"tool": "extract", "value": 30}), "valid", "operands_not_found", []),
        (_plan(_compute("divide", 188, 12)), "valid", "operands_not_found", []),
        (_plan(_compute("divide", 188, "const_10000")), "valid", "operands_not_found", []),
        (_plan({"tool": "extract", "value": 413.7}), "suspicious", "operands_not_found", [413.7]),
        (_plan(_compute("growth", 412.5, 371)), "invalid", "unknown_operations", ["growth"]),
        (_plan(_compute("add", "#0", "#3")), "invalid", "dangling_references", ["#0", "#3"]),
        (_plan(_compute("subtract", 412.5)), "invalid", "unknown_operations", []),
        ("nothing", "invalid", "steps", 0),
    ],
)
def test_the_validator(response: str, verdict: str, check: str, found: Any) -> None:
    row = validation_of(CASE, response)
    assert (row.verdict, row.checks[check]) == (verdict, found)
    assert row.parsed is (response != "nothing")
    assert bool(row.errors) is (verdict != "valid")


def test_a_recorded_calculation_that_cannot_be_read_is_suspicious() -> None:
    plan = TRACK.parse(TRACK.from_recorded({"answer": "5", "calculation": "1.2 billion"}), recorded=True)
    row = TRACK.validate(plan, None, CASE)
    assert (row.parsed, row.verdict) == (False, "suspicious")
    assert "billion" in row.errors[0]


def test_no_response_is_invalid() -> None:
    assert TRACK.validate(None, None, CASE).errors == ("there is no response",)


def test_the_executor_runs_plans() -> None:
    async def run() -> Any:
        async with TRACK.executor() as executor:
            return await executor.execute(TRACK.parse('{"calculation": "5 - 3"}', recorded=False), CASE)

    assert asyncio.run(run()) == Ran({"value": 2.0, "percent": False})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"value": 0.25, "percent": True}, "25%"),
        ({"value": 0.1118598382749, "percent": False}, "0.1118598383"),
        ({"value": 37754280.76, "percent": False}, "37754280.76"),
        ({"text": "yes"}, "yes"),
    ],
)
def test_answers_as_people_read_them(value: Any, text: str) -> None:
    assert TRACK.answer_text(value) == text


@pytest.mark.parametrize(
    ("attempt", "verdict", "value"),
    [
        (attempt_at(CASE, FIRST, _plan({"tool": "extract", "value": 412.5})), "equal", 0.0),
        (attempt_at(CASE, FIRST, _plan({"tool": "extract", "value": 330})), "different", 0.2),
        (attempt_at(CASE, FIRST, _plan({"tool": "extract", "value": "yes"})), "different", None),
        (attempt_at(CASE, FIRST, ""), "no_value", None),
        (failed_call(FIRST), "no_value", None),
    ],
)
def test_evidence(attempt: Attempt, verdict: str, value: float | None) -> None:
    [evidence] = TRACK.gather(CASE, FIRST, attempt)
    assert (evidence.kind, evidence.verdict) == ("value", verdict)
    assert evidence.value == pytest.approx(value)
    assert evidence.details["expected"] == 412.5
    assert evidence.details["expected_printed"] == "412.5"
    json.dumps(evidence.details, allow_nan=False)


def test_the_row_of_a_turn() -> None:
    attempt = attempt_at(CASE, SECOND, '{"calculation": "412.5 - 371"}')
    row = TRACK.turn_row(CASE, SECOND, [attempt])
    assert set(row) == {column.name for column in (*TRACK.feature_columns, *TRACK.turn_columns)}
    assert row["ground_truth_program"] == "subtract(412.5, 371.0), divide(#0, 371.0)"
    assert row["plan"]["plan"] == [{"tool": "compute", "operation": "subtract", "args": [412.5, 371.0]}]
    assert TRACK.gold_complexity(SECOND) == 2
    failed = failed_call(SECOND)
    assert TRACK.turn_row(CASE, SECOND, [failed])["plan"] is None


def test_the_score_is_partial_credit_and_reasoning_that_is_not_shown_earns_nothing() -> None:
    assert TRACK.score({"partial_credit": 0.5, "numerical_match": True}) == 0.5
    assert TRACK.score({"partial_credit": 0.0, "numerical_match": True}) == 0.0
    assert TRACK.score({"partial_credit": None, "numerical_match": True}) == pytest.approx(1 / 3)
    assert TRACK.score({"partial_credit": None, "numerical_match": False}) == 0.0


RECORDED = [
    ({"answer": "25", "unit": "percent", "calculation": "3 / 12"}, 0.25, ["divide"], True),
    ({"answer": "25", "unit": "percent", "calculation": "3 / 12 * 100"}, 0.25, ["divide", "multiply"], True),
    ({"answer": "25%", "unit": "percent", "calculation": "25%"}, 0.25, [], True),
    ({"answer": "25", "unit": "percent", "calculation": "25"}, 0.25, [], True),
    ({"answer": "25.1", "unit": "percent", "calculation": "25"}, 0.251, [], True),
    ({"answer": "26", "unit": "percent", "calculation": "25"}, 0.26, [], True),
    ({"answer": "0.25", "unit": "ratio", "calculation": "3 / 12"}, 0.25, ["divide"], False),
    ({"answer": "5", "unit": "millions", "calculation": "5"}, 5.0, [], False),
    ({"answer": 5, "calculation": "2 + 2"}, 5.0, ["add"], False),
    ({"answer": "1,234.5"}, 1234.5, None, False),
    ({"answer": "5", "calculation": "1.2 billion"}, 5.0, None, False),
    ({"answer": "5", "calculation": "5 / 0"}, 5.0, ["divide"], False),
    ({"answer": "yes", "unit": "none", "calculation": "2 > 1"}, "yes", ["greater"], False),
    ({"answer": "<UNKNOWN>", "unit": "ratio"}, "<UNKNOWN>", None, False),
]


@pytest.mark.parametrize(("row", "answer", "operations", "percent"), RECORDED, ids=lambda value: str(value))
def test_recorded_answers_are_the_prediction(
    row: dict[str, Any], answer: float | str, operations: list[str] | None, percent: bool
) -> None:
    attempt = attempt_at(CASE, FIRST, TRACK.from_recorded(row), recorded=True)
    values = TRACK.values(CASE, FIRST, [attempt], ())
    assert isinstance(attempt.outcome, Ran)
    assert values["predicted"] == (answer if isinstance(answer, str) else pytest.approx(answer))
    assert values["predicted_percent"] is percent
    found = values["plan_operation_list"]
    assert (None if found is None else list(found)) == operations
    assert measured(CASE, FIRST, attempt)["has_error"] is False
    assert TRACK.artefact_from_json(json.loads(json.dumps(TRACK.artefact_json(attempt.artefact)))) == attempt.artefact


@pytest.mark.parametrize(
    "row", [{}, {"answer": True}, {"answer": [5]}, {"answer": "5", "unit": 3}, {"answer": "5", "calculation": 5},
            {"response": {"plan": []}}],
)  # fmt: skip
def test_rows_that_are_no_predictions(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|needs"):
        TRACK.from_recorded(row)


def test_recorded_responses_are_given_as_they_are() -> None:
    assert TRACK.from_recorded({"response": "text", "answer": "5"}) == "text"
    assert TRACK.from_recorded({"answer": None}) == ""


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
    assert "is a guess" in found["Program"][0]
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


TABLE = [["", "2021", "2020"], ["Sales", "120", "80"], ["Costs", "90", "(60)"]]


@pytest.mark.parametrize("entry", golden("finqa_mutants.yaml"), ids=lambda entry: entry["program"])
def test_mutants_by_golden_cases(entry: dict[str, Any]) -> None:
    raw = raw_case(gold_turn(entry["program"], entry["answer"]))
    raw["document"] = {**raw["document"], "table": TABLE}
    (turn,) = (case := TRACK.read_case(raw, "s", "f", 1)).turns
    assert [words for words, _ in program_mutants(turn.gold.program, turn.gold.table)] == entry["mutants"]
    found = TRACK.turn_mutants(case, turn)
    assert found is not None
    assert found.mutants == len(entry["mutants"])
    assert [one.words for one in found.survivors] == entry["same"]


def test_a_program_that_does_not_give_its_answer_has_no_score() -> None:
    case = TRACK.read_case(raw_case(gold_turn("add(1, 2)", 4.0)), "s", "f", 1)
    assert TRACK.turn_mutants(case, case.turns[0]) is None


def test_the_sample_tells_nearly_all_mutants_of_numbers_from_its_gold() -> None:
    """A yes or no is also reached by many a wrong calculation; numbers are not."""
    cases = sample_cases()
    texts = {turn.id for case in cases for turn in case.turns if isinstance(turn.gold.expected, str)}
    turns = [*suite_mutants(TRACK, cases)]
    numbers = mutation_score([one for one in turns if one.turn_id not in texts], {})
    assert numbers.mutants > 1000
    assert numbers.share is not None
    assert numbers.share >= 0.97
