"""Files that are not quite what is expected: a byte order mark, other encodings and kinds, and nothing in them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.foreign import lines_of, read_text
from eval_pipeline.operations.importing import Columns, _kept_packages, import_suite
from eval_pipeline_tests.support import TWO_CASES, Lab

ROW = {"case_id": "alpha", "turn_index": 0, "answer": "50"}
TALK = {
    "id": "Single_A/2020/page_1.pdf-1",
    "doc": {"pre_text": "", "post_text": "", "table": {"2020": {"x": "50", "y": "7"}}},
    "dialogue": {
        "conv_questions": ["a?"],
        "conv_answers": ["57"],
        "turn_program": ["add(50, 7)"],
        "executed_answers": [57.0],
    },
}
TASK = {
    "task_id": "PandasEval/0",
    "prompt": "import pandas as pd\ndef f(df):\n",
    "entry_point": "f",
    "canonical_solution": ["    return df"],
    "test": "def check(candidate):\n    assert False\n",
}
BOM = b"\xef\xbb\xbf"
TEXT = json.dumps([TALK])
KINDS = {
    "UTF-16 text": TEXT.encode("utf-16"),
    "UTF-16 text of the other order": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "a gzip file": gzip.compress(TEXT.encode()),
    "a zip file": b"PK\x03\x04 and more",
    "a Parquet file": b"PAR1 and more",
    "an SQLite database": b"SQLite format 3\0 and more",
}


@pytest.fixture
def home(lab: Lab) -> Lab:
    lab.suite()
    lab.versions()
    return lab


def predictions(lab: Lab, content: bytes, *options: str, form: str = "predictions") -> Any:
    file = lab.home.root.parent / "rows.jsonl"
    file.write_bytes(content)
    return lab.cli("import", form, str(file), "--suite", "small", "--model-version", "old", *options)


def test_a_byte_order_mark_is_left_out_everywhere(home: Lab, tmp_path: Path) -> None:
    source = tmp_path / "dev.json"
    source.write_bytes(BOM + TEXT.encode())
    assert import_suite(home.workspace(), "convfinqa", source, "foreign").cases == 1
    assert predictions(home, BOM + json.dumps(ROW).encode()).code == 0
    home.evaluate(version="old")
    lines = BOM + b"".join(json.dumps(case).encode() + b"\n" for case in TWO_CASES)
    folder = home.suite("marked", ())
    (folder / "cases.jsonl").write_bytes(lines)
    (folder / "suite.yaml").write_text('{name: marked, version: "1", track: finqa, cases: cases.jsonl}')
    assert home.cli("validate", "--suite", "marked").code == 0
    assert read_text(source) == TEXT
    assert list(lines_of(source)) == [TEXT.encode()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_kind_is_told_as_that(home: Lab, tmp_path: Path, kind: str) -> None:
    told = f"is {kind.removesuffix(' of the other order')}; expected text in UTF-8"
    for name, form in (("dev.json", "convfinqa"), ("rows.json", "text"), ("rows.csv", "text"), ("q.jsonl", "bird")):
        source = tmp_path / name
        source.write_bytes(KINDS[kind])
        with pytest.raises(InputError, match=told):
            import_suite(home.workspace(), form, source, "foreign", None, (), Columns())
    for form in ("predictions", "promptfoo", "lm-eval"):
        said = predictions(home, KINDS[kind], form=form)
        assert (said.code, told in said.text, said.text.count("\n")) == (2, True, 1), said.text


@pytest.mark.parametrize("data", [[], {"dev": []}, {"dev": [], "test": []}])
def test_a_data_set_without_cases_is_no_suite(lab: Lab, tmp_path: Path, data: Any) -> None:
    source = tmp_path / "dev.json"
    source.write_text(json.dumps(data))
    said = lab.cli("import", "convfinqa", str(source), "--suite", "foreign")
    assert said.code == 2
    assert f"{source}: has no case; nothing was imported" in said.text
    assert list(lab.home.imported_suites.iterdir()) == []


def test_a_data_set_whose_cases_are_all_left_out_is_no_suite(lab: Lab, tmp_path: Path) -> None:
    source = tmp_path / "tasks.jsonl"
    source.write_text(json.dumps(TASK))
    with pytest.raises(InputError, match=r"tasks\.jsonl: no case is left, since no gold holds, e\.g\. foreign/pandas"):
        import_suite(lab.workspace(), "pandaseval", source, "foreign")


@pytest.mark.parametrize(("form", "content"), [("predictions", b""), ("predictions", b"\n\n"), ("lm-eval", b"")])
def test_a_file_without_answers_is_not_imported(home: Lab, form: str, content: bytes) -> None:
    said = predictions(home, content, form=form)
    assert said.code == 2
    assert "rows.jsonl: holds no prediction; nothing was imported" in said.text
    assert not home.home.imported_model_versions.exists()


def test_a_file_none_of_whose_answers_is_wanted_is_not_imported(home: Lab) -> None:
    said = predictions(home, json.dumps(ROW | {"model": "a"}).encode(), "--only", "model=b")
    assert said.code == 2
    assert "holds no prediction with --only 'model=b'; it has 1 others; nothing was imported" in said.text
    assert not home.home.imported_model_versions.exists()


def test_a_long_cell_of_a_table_is_read(lab: Lab, tmp_path: Path) -> None:
    source = tmp_path / "long.csv"
    source.write_text(f"question,answer\n{'x' * 150_000},a\nshort,b\n")
    assert import_suite(lab.workspace(), "text", source, "foreign").cases == 2
    source.write_text(f"question,answer\n{'x' * 250_000},a\nshort,b\n")
    with pytest.raises(InputError, match=r"long\.csv:2: .*more than 200,000 characters"):
        import_suite(lab.workspace(), "text", source, "foreign")


def test_importing_again_keeps_the_list_of_packages_that_people_added(lab: Lab, tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("question,answer\na,b\n")
    made = import_suite(lab.workspace(), "text", source, "foreign").folder
    header = made / "suite.yaml"
    packages = f"pandas==2.0.3 --hash=sha256:{'0' * 64}\n"
    (made / "packages.txt").write_text(packages)
    header.write_text(header.read_text().replace("options:", "options:\n  packages: packages.txt"))
    kept = _kept_packages(made, tmp_path)
    assert (kept, (tmp_path / "packages.txt").read_text()) == ({"packages": "packages.txt"}, packages)
    (made / "packages.txt").unlink()
    assert _kept_packages(made, tmp_path) == _kept_packages(tmp_path, tmp_path) == {}
