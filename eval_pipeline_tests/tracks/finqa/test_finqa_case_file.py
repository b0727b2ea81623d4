"""Cases of a suite, and those that are imported from ConvFinQA."""

import json
from collections import defaultdict
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.model import Case
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.data_sets.convfinqa import page_of, read_convfinqa
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    Constant,
    Label,
    Literal,
    ProgramStep,
    StepReference,
    parse_program,
)
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.support import SHIPPED

from .helpers import case_of, cases, gold_turn, raw_case, scored

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
        ({"program": None}, "program", "found nothing"),
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
    with pytest.raises(CaseError, match=r"YAML reads a bare yes as true: put it in quotes"):
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


CLEANED: dict[str, Any] = {
    "id": "Single_ACME/2020/page_12.pdf-3",
    "doc": {
        "pre_text": "sales .",
        "post_text": "more .",
        "table": {"2020": {"sales": 412.5, "costs": 20.0}, "2019": {"sales": 371.0, "other": "nm"}},
    },
    "dialogue": {
        "conv_questions": ["sales?", "growth?", "more than 5?"],
        "conv_answers": ["412.5", "11.2%", "yes"],
        "turn_program": ["412.5", "subtract(412.5, 371.0), divide(#0, 371.0)", "greater(412.5, const_5)"],
        "executed_answers": [412.5, 0.11186, "yes"],
        "qa_split": [False, False, True],
    },
    "features": {
        "num_dialogue_turns": 3,
        "has_type2_question": True,
        "has_duplicate_columns": True,
        "has_non_numeric_values": True,
    },
}
ORIGINAL: dict[str, Any] = {
    "id": "Double_ACME/2020/page_12.pdf",
    "filename": "ACME/2020/page_12.pdf",
    "pre_text": ["sales .", "and costs ."],
    "post_text": ["more ."],
    "table": [["", "2020", "2020"], ["sales", "$ 412.5", "371.0"], ["costs", "( 20 )", "-"]],
    "qa_0": {"question": "growth?"},
    "qa_1": {"question": "more?"},
    "annotation": {
        "dialogue_break": ["sales?", "growth?"],
        "turn_program": ["412.5", "subtract(412.5, 371.0), divide(#0, 371.0)"],
        "exe_ans_list": [412.5, 0.11186],
        "answer_list": ["412.5", "11.2%"],
        "qa_split": [0, 1],
        "original_program_0": "subtract(412.5, 371.0), divide(#0, 371.0)",
    },
}


def _write(folder: Path, data: Any) -> Path:
    path = folder / "data.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def _case(raw: Any) -> Case:
    return TRACK.read_case(raw, "suite", "file", 1)


def test_the_cleaned_form(tmp_path: Path) -> None:
    second = {**CLEANED, "id": "Single_ACME/2020/page_12.pdf-4", "features": {}}
    raws = list(read_convfinqa(_write(tmp_path, {"train": [CLEANED], "dev": [second]}), None))
    first, other = (_case(raw) for raw in raws)
    assert first.cluster == other.cluster == "ACME/2020/page_12.pdf"
    assert first.context.table == (
        ("", "2020", "2019"),
        ("sales", 412.5, 371.0),
        ("costs", 20.0, ""),
        ("other", "", "nm"),
    )
    assert first.features["has_duplicate_columns"] is True
    assert other.features == {
        "has_type2_question": True,
        "has_duplicate_columns": False,
        "has_non_numeric_values": True,
        "num_dialogue_turns": 3,
    }
    assert [TRACK.expected_printed(turn) for turn in first.turns] == ["412.5", "11.2%", "yes"]
    assert TRACK.check_gold(first) == []


def test_the_original_form(tmp_path: Path) -> None:
    [raw] = read_convfinqa(_write(tmp_path, [ORIGINAL]), None)
    case = _case(raw)
    assert (case.id, case.cluster) == ("Double_ACME/2020/page_12.pdf", "ACME/2020/page_12.pdf")
    assert case.context.pre_text == "sales . and costs ."
    assert case.context.table[1] == ("sales", "$ 412.5", "371.0")
    assert set(case.features.values()) == {True, 2}
    assert [TRACK.expected_printed(turn) for turn in case.turns] == ["412.5", "11.2%"]
    assert TRACK.check_gold(case) == []


def test_the_original_form_without_printed_answers(tmp_path: Path) -> None:
    entry = deepcopy(ORIGINAL)
    entry["annotation"]["answer_list"] = ["412.5"]
    entry["annotation"]["exe_ans_list"] = ["412.5", 0.11186]
    [raw] = read_convfinqa(_write(tmp_path, [entry]), None)
    assert [turn.gold.printed for turn in _case(raw).turns] == [None, None]
    assert _case(raw).turns[0].gold.expected == 412.5


def test_the_limit(tmp_path: Path) -> None:
    assert len(list(read_convfinqa(_write(tmp_path, [ORIGINAL, ORIGINAL, {"broken": 1}]), 2))) == 2


@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        ('{"dev": [\n{"id": }]}', "", "is not JSON"),
        ("[[[", "", "is not JSON"),
        (5, "", "expected a list of conversations"),
        ({}, "", "expected a list of conversations"),
        ({"dev": 5}, "dev", "expected a list"),
        ({"dev": [CLEANED, 5]}, "dev.1", "expected a mapping, found 5"),
        ({"dev": [{**CLEANED, "id": 5}]}, "dev.0.id", "expected a text, found 5"),
        ({"dev": [{**CLEANED, "doc": {}}]}, "dev.0.doc.pre_text", "is missing"),
        ({"dev": [{**CLEANED, "dialogue": {**CLEANED["dialogue"], "turn_program": ["1"]}}]},
         "dev.0.dialogue.turn_program", "has 1 entries, expected 3"),
        ([{**ORIGINAL, "annotation": {"dialogue_break": ["q"], "turn_program": ["5"]}}],
         "0.annotation.exe_ans_list", "is missing"),
        ([{**ORIGINAL, "table": "sales"}], "0.table", "expected a list, found 'sales'"),
    ],
)  # fmt: skip
def test_malformed_input_is_named(tmp_path: Path, data: Any, field: str, says: str) -> None:
    source = _write(tmp_path, data)
    with pytest.raises(InputError) as raised:
        list(read_convfinqa(source, None))
    problem = raised.value.problems[0]
    assert (problem.file, problem.field) == (str(source), field)
    assert says in problem.message
    assert problem.line == (2 if data == '{"dev": [\n{"id": }]}' else 1 if data == "[[[" else None)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_convfinqa(tmp_path / "none.json", None))


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("Single_UNP/2014/page_35.pdf-3", "UNP/2014/page_35.pdf"),
        ("Double_STT/2008/page_83.pdf", "STT/2008/page_83.pdf"),
        ("UNP/2014/page_35.pdf-12", "UNP/2014/page_35.pdf"),
        ("other", "other"),
    ],
)
def test_the_page_of_a_conversation(name: str, page: str) -> None:
    assert page_of(name) == page


def test_every_real_gold_program_gives_its_answer() -> None:
    assert (len(cases()), sum(len(case.turns) for case in cases())) == (119, 423)
    assert [problem for case in cases() for problem in TRACK.check_gold(case)] == []


@pytest.mark.parametrize(("run", "correct", "conversations"), [("a", 346, 85), ("b", 341, 83)])
def test_real_predictions(run: str, correct: int, conversations: int) -> None:
    matches = defaultdict(list)
    for (case, _), found in scored(run).items():
        matches[case].append(found["numerical_match"])
    assert sum(map(sum, matches.values())) == correct
    assert sum(map(all, matches.values())) == conversations
