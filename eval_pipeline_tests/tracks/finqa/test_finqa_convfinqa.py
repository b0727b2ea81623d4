import json
from collections import defaultdict
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.model import Case
from eval_pipeline.tracks.finqa.importers.convfinqa import page_of, read_convfinqa
from eval_pipeline.tracks.finqa.track import TRACK

from .shared_sample import cases, scored

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
