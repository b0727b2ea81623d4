import json
from typing import Any

import pytest
import yaml

from eval_pipeline.core.model import Case
from eval_pipeline.suites import read_header, read_suite
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.finqa.program import Constant, Label, Literal, ProgramStep, StepReference, parse_program
from eval_pipeline.tracks.finqa.track import TRACK
from eval_pipeline_tests.support import SHIPPED

from .helpers import case_of, gold_turn, raw_case

GROWTH = {
    "question": "and the growth?",
    "program": "subtract(412.5, 371.0), divide(#0, 371.0)",
    "answer": 0.11186,
    "printed": "11.2%",
}


def _read(raw: dict[str, Any]) -> Case:
    return TRACK.read_case(raw, "suite", "cases.jsonl", 7)


def test_a_case_as_it_is_read() -> None:
    case = _read(raw_case(gold_turn("412.5"), GROWTH, tags=["growth"], features={"has_type2_question": True}))
    assert (case.id, case.cluster, case.tags) == ("acme", "acme", ("growth",))
    assert case.features == {
        "has_type2_question": True,
        "has_duplicate_columns": False,
        "has_non_numeric_values": False,
        "num_dialogue_turns": 2,
    }
    assert [turn.id for turn in case.turns] == ["suite/acme#0", "suite/acme#1"]
    assert (case.source_file, case.source_line) == ("cases.jsonl", 7)
    growth = case.turns[1]
    assert TRACK.expected_text(growth) == "0.11186"
    assert TRACK.expected_printed(growth) == "11.2%"
    assert TRACK.gold_json(growth) == {"program": GROWTH["program"], "answer": 0.11186, "printed": "11.2%"}
    assert TRACK.gold_complexity(growth) == 2
    assert not TRACK.gold_is_empty(growth)


def test_the_contents_that_are_kept_give_the_cases_back() -> None:
    found = read_suite(read_header(SHIPPED / "suites" / "finqa_sample"))
    assert len(found.cases) >= 40
    for case, content in zip(found.cases, found.contents, strict=True):
        assert TRACK.read_case(json.loads(content), "finqa_sample", case.source_file, case.source_line) == case


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"program": "subtract(5)"}, "program", "takes two arguments, found 1"),
        ({"program": "growth(5, 3)"}, "program", "unknown operation 'growth'"),
        ({"program": "subtract(5, #0)"}, "program", "#0 is not an earlier step"),
        ({"program": "subtract(5, sales)"}, "program", "'sales' is not a number"),
        ({"program": "subtract(5, 3"}, "program", "not closed"),
        ({"program": "subtract(5, 3) divide(#0, 3)"}, "program", "expected a comma"),
        ({"program": "table_sum(, none)"}, "program", "needs the label"),
        ({"program": "what?"}, "program", "expected a number or operation"),
        ({"program": ""}, "program", "is empty"),
        ({"program": ", ".join(["add(1, 2)"] * 201)}, "program", "more than 200 steps"),
        ({"program": None}, "program", "found NoneType"),
        ({"answer": "maybe"}, "answer", 'found the text "maybe"'),
        ({"answer": "0.5"}, "answer", "without quotes"),
        ({"answer": float("nan")}, "answer", "finite"),
        ({"answer": None}, "answer", "number"),
        ({"question": ""}, "question", "at least 1 character"),
        ({"printed": 11}, "printed", "expected a text, found 11"),
        ({"answr": 5}, "answr", "unknown field; allowed: question, program, answer, printed"),
    ],
)
def test_a_wrong_turn_names_its_field(changes: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(CaseError) as raised:
        _read(raw_case(gold_turn("412.5"), {**GROWTH, **changes}))
    found = {".".join(str(part) for part in place) for place, _ in raised.value.problems}
    assert found == {f"turns.1.{field}"}
    assert says in str(raised.value)


def test_a_bare_yes_of_yaml_is_told_to_be_quoted() -> None:
    raw = yaml.safe_load("{question: q, program: 'greater(2, 1)', answer: yes}")
    with pytest.raises(CaseError, match=r"YAML reads a bare yes as True: put it in quotes"):
        _read(raw_case(raw))


@pytest.mark.parametrize("row", [["sales", True], ["sales", None], ["sales", float("inf")], "sales", 5])
def test_a_wrong_table_is_refused(row: Any) -> None:
    raw = raw_case(gold_turn("412.5"))
    raw["document"] = {**raw["document"], "table": [["", "2020"], row]}
    with pytest.raises(CaseError, match=r"document\.table\.1"):
        _read(raw)


@pytest.mark.parametrize("change", [{"turns": []}, {"id": ""}, {"extra": 1}, {"features": {"num_dialogue_turns": 3}}])
def test_a_wrong_case_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CaseError):
        _read({**raw_case(gold_turn("412.5")), **change})


def test_a_bare_number_is_a_program() -> None:
    assert _read(raw_case({**GROWTH, "program": 412.5, "answer": 412.5})).turns[0].gold.program_text == "412.5"


def test_programs_are_read() -> None:
    program = parse_program("subtract(const_m1, 8.04%), exp( #0 , -.3 ),greater(#1, const_1000000)")
    assert program.steps == (
        ProgramStep("subtract", (Constant("const_m1", -1.0), Literal(0.0804, True))),
        ProgramStep("exp", (StepReference(0), Literal(-0.3))),
        ProgramStep("greater", (StepReference(1), Constant("const_1000000", 1e6))),
    )
    labels = parse_program("table_max(dividends, per share ( basic ), none), table_min(net sales)")
    assert labels.steps == (
        ProgramStep("table_max", (Label("dividends, per share ( basic )"),)),
        ProgramStep("table_min", (Label("net sales"),)),
    )


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (gold_turn("subtract(5, 3)", 3), "gives 2, the answer is 3"),
        (gold_turn("412.5", "yes"), "gives 412.5, the answer is yes"),
        (gold_turn("greater(1, 2)", "yes"), "gives no, the answer is yes"),
        (gold_turn("divide(5, 0)", 1), "does not run: step 0: divide divides by zero"),
        (gold_turn("table_sum(no such row)", 1), "has no row"),
    ],
)
def test_gold_that_does_not_hold(turn: dict[str, Any], says: str) -> None:
    case = case_of(gold_turn("412.5"), turn)
    [(found, message)] = TRACK.check_gold(case)
    assert found is case.turns[1]
    assert says in message


def test_gold_that_holds() -> None:
    assert (
        TRACK.check_gold(case_of(GROWTH, gold_turn("greater(2, 1)", "yes"), gold_turn("table_sum(costs)", -50))) == []
    )
