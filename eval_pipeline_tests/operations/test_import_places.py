"""What is wrong with a data set names the user's file, line or entry, not what the import makes of it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.operations.imports.importing import ImportedColumns, import_suite
from eval_pipeline.operations.recorded.entries import Entry
from eval_pipeline.operations.recorded.placing import _find_index
from eval_pipeline.operations.upkeep.completing import complete_left
from eval_pipeline.tracks.importing import PlacedCase, UsersFiles, add_origin
from eval_pipeline_tests.killing import killed_at
from eval_pipeline_tests.support import Lab

DIALOGUE = {
    "conv_questions": ["a?"],
    "conv_answers": ["57"],
    "turn_program": ["add(50, 7)"],
    "executed_answers": [57.0],
}
TALK = {
    "id": "Single_A/2020/page_1.pdf-1",
    "doc": {"pre_text": "", "post_text": "", "table": {"2020": {"x": "50", "y": "7"}}},
    "dialogue": DIALOGUE,
}
TASK = {
    "task_id": "PandasEval/0",
    "prompt": "import pandas as pd\ndef f(df):\n",
    "entry_point": "f",
    "canonical_solution": ["    return df"],
    "test": "def check(candidate):\n    assert True\n",
}
QUESTION = {"id": 1, "question": "Mean?", "format": "@m[x]", "file_name": "my data.csv"}
LABEL = {"id": 1, "common_answers": [["m", "2"]]}


def lines(*entries: Any) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def problems(lab: Lab, form: str, source: Path, text: str, further: tuple[Path, ...] = ()) -> str:
    """What the import of a data set says."""
    source.write_text(text)
    with pytest.raises(InputError) as found:
        import_suite(lab.workspace(), form, source, "foreign", None, further, ImportedColumns())
    assert not (lab.home.imported_suites / "foreign").exists()
    assert ".importing-" not in str(found.value)
    return str(found.value).replace(f"{source.parent}/", "")


ROWS = [{"id": "1", "question": "q", "answer": "x"}] * 2
FORMS = {"dev": "convfinqa", "rows": "text", "tasks": "pandaseval"}
DATA: dict[str, str] = {
    "dev.json: dev.2.id: duplicate id 'Single_A/2020/page_1.pdf-1', first used at dev.0": json.dumps(
        {"dev": [TALK, TALK | {"id": "other"}, TALK]}
    ),
    "dev.json: 0.dialogue.executed_answers.0: expected a finite number or a text, found NaN": json.dumps(
        [TALK | {"dialogue": DIALOGUE | {"executed_answers": [float("nan")]}}]
    ),
    "dev.json: 0.doc.table.2020.x: expected a text or a finite number, found infinity": json.dumps(
        [TALK | {"doc": TALK["doc"] | {"table": {"2020": {"x": float("inf")}}}}]  # type: ignore[operator]
    ),
    'dev.json: 0.turns.0.answer: expected a number without quotes, "yes" or "no", found the text "perhaps"': json.dumps(
        [TALK | {"dialogue": DIALOGUE | {"executed_answers": ["perhaps"]}}]
    ),
    "rows.csv:5: id: duplicate id '1', first used at line 2": 'id,question,answer\n1,"a\nb",x\n2,c,y\n1,d,y\n',
    "rows.json:1: row 2.id: duplicate id '1', first used at row 1": json.dumps(ROWS),
    "rows.json:1: row 2.answer: is empty": json.dumps([{"question": "q", "answer": "x"}, {"question": "q"}]),
    "rows.ndjson:2: id: duplicate id '1', first used at line 1": lines(*ROWS),
    "tasks.jsonl:3: id: duplicate id 'pandaseval_0', first used at line 2": "\n" + lines(TASK, TASK),
}


@pytest.mark.parametrize("told", DATA)
def test_the_users_file_and_place_are_named(lab: Lab, tmp_path: Path, told: str) -> None:
    source = tmp_path / told.split(":")[0]
    assert problems(lab, FORMS[source.stem], source, DATA[told]).startswith(told)


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """A file of labels, and a folder with a table that nothing can be read from."""
    (tmp_path / "labels.jsonl").write_text(lines(LABEL))
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "my data.csv").write_bytes(b"")
    return tmp_path / "labels.jsonl", tmp_path / "tables"


def test_a_table_that_cannot_be_read_is_the_users(lab: Lab, tmp_path: Path, tables: tuple[Path, Path]) -> None:
    said = problems(lab, "dabench", tmp_path / "q.jsonl", lines(QUESTION), tables)
    assert said.startswith("tables/my data.csv: pandas does not read it")


def test_questions_of_dabench_are_told_with_their_line(lab: Lab, tmp_path: Path, tables: tuple[Path, Path]) -> None:
    (tables[1] / "my data.csv").write_text("x\n1\n")
    said = problems(lab, "dabench", tmp_path / "q.jsonl", lines(QUESTION, QUESTION), tables)
    assert said == "q.jsonl:2: id: duplicate id 'dabench_001', first used at line 1"
    said = problems(lab, "dabench", tmp_path / "q.jsonl", lines(QUESTION, QUESTION | {"id": 2}), tables)
    assert said.startswith("q.jsonl:2: 2.id: has no label")


def test_a_label_of_the_wrong_type_is_one_sentence(lab: Lab, tmp_path: Path, tables: tuple[Path, Path]) -> None:
    tables[0].write_text(lines(LABEL | {"common_answers": [["m", 2.0]]}))
    said = problems(lab, "dabench", tmp_path / "q.jsonl", lines(QUESTION), tables)
    assert said == "labels.jsonl:1: common_answers.0.1: expected a text, found 2.0; write it in quotes"
    tables[0].write_text(lines(LABEL | {"common_answers": []}))
    said = problems(lab, "dabench", tmp_path / "q.jsonl", lines(QUESTION), tables)
    assert said == "labels.jsonl:1: common_answers: expected at least 1 item, found []"


def test_a_list_of_terms_is_the_users(lab: Lab, tmp_path: Path) -> None:
    terms = tmp_path / "terms.csv"
    terms.write_text("dataset_id,dimension,id,name\nA:F,GEO,FR\n")
    wanted = "{dataset_id: 'A:F', dimensions: [{dimension_name: GEO, values: [{id: FR, name: France}]}]}"
    target = f"{{indicator_selection: [{wanted}]}}"
    text = f"name: bikes\nconversation:\n- {{role: user, content: France, target: {target}}}\n"
    assert problems(lab, "statgpt", tmp_path / "cases.yaml", text, (terms,)).startswith("terms.csv:2: name: must")


@pytest.mark.parametrize(("name", "place"), [("dev.json", ": 1.db_id"), ("dev.jsonl", ":2: db_id")])
def test_an_unknown_database_is_told_with_its_question(lab: Lab, tmp_path: Path, name: str, place: str) -> None:
    asked = [{"db_id": db, "question": "q", "query": "SELECT 1"} for db in ("shop", "nope", "nope")]
    schema = [{"db_id": "shop", "table_names_original": ["c"], "column_names_original": [[-1, "*"], [0, "x"]]}]
    (tmp_path / "tables.json").write_text(json.dumps(schema))
    text = json.dumps(asked) if name == "dev.json" else lines(*asked)
    said = problems(lab, "spider", tmp_path / name, text, (tmp_path / "tables.json",))
    assert said == f"{name}{place}: no database 'nope' among those given with --databases (shop)"


def test_what_has_no_known_place_is_told_with_the_case(tmp_path: Path) -> None:
    made = tmp_path / "aside" / "set"
    made.mkdir(parents=True)
    known = UsersFiles(made, "cases.jsonl", Path("their.json"))
    known.cases = [{"id": "a"}, PlacedCase({"id": "b"}, "dev.1"), {"id": "a"}]
    add_origin(made, made / "tables" / "t.csv", Path("their") / "t 1.csv")
    known.take_origins()
    told = {
        Problem("set/cases.jsonl", 3, "id", "first used at set/cases.jsonl:1"): "their.json: id: first used at case 1 "
        "(case 'a')",
        Problem("set/cases.jsonl", 2, "id", "like set/cases.jsonl:2"): "their.json: dev.1.id: like dev.1",
        Problem("set/cases.jsonl", None, "", "no"): "their.json: no",
        Problem(str(made / "tables" / "t.csv"), 4, "x", "no"): "their/t 1.csv:4: x: no",
        Problem("set/tables/t.csv", 4, "x", f"see {made}/tables/t.csv"): "their/t 1.csv:4: x: see their/t 1.csv",
        Problem(str(made / "made.csv"), None, "", "no"): "set/made.csv: no",
        Problem("other/set/x.csv", None, "", "no"): "other/set/x.csv: no",
    }
    assert {str(known.told(problem)): text for problem, text in told.items()} == {text: text for text in told.values()}


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "interrupted"])
def test_an_import_that_ends_between_its_two_renames_loses_no_suite(lab: Lab, tmp_path: Path, killed: bool) -> None:
    source, folder = tmp_path / "rows.jsonl", lab.home.imported_suites / "foreign"
    source.write_text('{"id": "1", "question": "q", "answer": "x"}\n')
    import_suite(lab.workspace(), "text", source, "foreign", None, (), ImportedColumns())
    (folder / "reviews").mkdir()
    (folder / "reviews" / "one").write_text("what somebody said")
    if killed and (child := os.fork()):
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    else:
        end = (lambda: os._exit(9)) if killed else None
        with killed_at("eval_pipeline.operations.imports.importing.Path.rename", done=True, end=end):
            import_suite(lab.workspace(), "text", source, "foreign", None, (), ImportedColumns())
    assert folder.exists() != killed
    assert complete_left(lab.workspace()) == []
    assert (folder / "reviews" / "one").read_text() == "what somebody said"
    assert [path.name for path in folder.parent.iterdir()] == ["foreign"]


@pytest.mark.parametrize(("told", "index"), [("3", 3), (3, 3), ("third", "third"), (1.5, 1.5)])
def test_an_index_is_read_as_it_is_unless_it_is_digits(told: Any, index: Any) -> None:
    row: dict[str, Any] = {}
    _find_index(row, Entry(1, found={"metadata": {"turn_index": told}}))
    assert row == {"turn_index": index}
