"""Files that are not quite what is expected: a byte order mark, other encodings and kinds, nothing, half characters."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import EvalError, InputError, UsageError
from eval_pipeline.core.model_versions import ModelVersion, Predictions
from eval_pipeline.core.provenance import Provenance
from eval_pipeline.core.reading.foreign import lines_of, read_text
from eval_pipeline.core.reading.json_reading import parsed_json
from eval_pipeline.operations.imports.importing import ImportedColumns, _kept_packages, import_suite
from eval_pipeline.operations.recorded.wanted import Wanted
from eval_pipeline.providers import imported_versions
from eval_pipeline.providers.imported_versions import save_imported
from eval_pipeline.providers.model_versions import load_model_versions
from eval_pipeline_tests.operations.imports import imported
from eval_pipeline_tests.operations.test_import_places import DIALOGUE, TALK, TASK, lines
from eval_pipeline_tests.support import TWO_CASES, Lab

ROW = {"case_id": "alpha", "turn_index": 0, "answer": "50"}
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


def predictions(lab: Lab, content: bytes, *options: str, form: str = "predictions", code: int = 2) -> str:
    file = lab.home.root.parent / "rows.jsonl"
    file.write_bytes(content)
    return imported(lab, file, *options, form=form, code=code)


def test_a_byte_order_mark_is_left_out_everywhere(home: Lab, tmp_path: Path) -> None:
    source = tmp_path / "dev.json"
    source.write_bytes(BOM + TEXT.encode())
    assert import_suite(home.workspace(), "convfinqa", source, "foreign").cases == 1
    predictions(home, BOM + json.dumps(ROW).encode(), code=0)
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
        if name.endswith(".csv") and kind.startswith("UTF-16"):  # as Excel writes it: what it says is read
            continue
        with pytest.raises(InputError, match=told):
            import_suite(home.workspace(), form, source, "foreign", None, (), ImportedColumns())
    for form in ("predictions", "promptfoo", "lm-eval"):
        said = predictions(home, KINDS[kind], form=form)
        assert (told in said, said.count("\n")) == (True, 1), said


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
    source.write_text(json.dumps(TASK | {"test": "def check(candidate):\n    assert False\n"}))
    with pytest.raises(InputError, match=r"tasks\.jsonl: no case is left, since no gold holds, e\.g\. foreign/pandas"):
        import_suite(lab.workspace(), "pandaseval", source, "foreign")


@pytest.mark.parametrize(("form", "content"), [("predictions", b""), ("predictions", b"\n\n"), ("lm-eval", b"")])
def test_a_file_without_answers_is_not_imported(home: Lab, form: str, content: bytes) -> None:
    assert "rows.jsonl: holds no prediction; nothing was imported" in predictions(home, content, form=form)
    assert not home.home.imported_model_versions.exists()


def test_a_file_none_of_whose_answers_is_wanted_is_not_imported(home: Lab) -> None:
    said = predictions(home, json.dumps(ROW | {"model": "a"}).encode(), "--only", "model=b")
    assert "holds no prediction with --only 'model=b'; it has 1 others; nothing was imported" in said
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


HALF = "\ud83d"
LATIN = os.fsdecode(b"caf\xe9")
OTHER = ROW | {"turn_index": 1}
FIELDS = ("model", "prompt", "prompt_version", "history", "tool", "stop_reason", "unit", "reason", "confidence")


@pytest.mark.parametrize("name", FIELDS)
def test_a_half_in_any_field_is_replaced_and_the_home_stays_usable(home: Lab, name: str) -> None:
    imported(home, [OTHER, ROW | {name: f"cut {HALF}"}])
    written = home.home.imported_model_versions.read_text()
    assert home.workspace().model_versions["old"].provider == "recorded", written
    assert "\\uD83D" not in written


@pytest.mark.parametrize("name", ["sampling", "response"])
def test_halves_within_values_and_names_are_replaced(home: Lab, name: str) -> None:
    imported(home, [OTHER, {"case_id": "alpha", "turn_index": 0, name: {f"a{HALF}": [f"b{HALF}"]}}])
    assert "old" in home.workspace().model_versions


@pytest.mark.parametrize("row", [{"response": f"{HALF} cut"}, {"answer": f"about {HALF}"}, {"error": f"boom {HALF}"}])
def test_an_answer_cut_inside_an_emoji_is_imported_and_scored(home: Lab, row: dict[str, str]) -> None:
    assert "\ufffd" in imported(home, [OTHER, {"case_id": "alpha", "turn_index": 0} | row])
    home.evaluate(version="old")


def test_an_unknown_name_and_an_unknown_case_are_clear_sentences(home: Lab) -> None:
    for changed, told in (
        ({f"foo{HALF}": 1}, "foo\ufffd: unknown field"),
        ({"case_id": f"alpha {HALF}"}, "the suite has no case 'alpha \ufffd'"),
    ):
        assert told in imported(home, [OTHER, ROW | changed], code=2)


@pytest.mark.parametrize(
    "options",
    [
        (f"--model={LATIN}",),
        ("--sampling", f"stop={LATIN}"),
        *((f"--{name}", LATIN) for name in "model prompt-version tool history priced-as prompt-file".split()),
        *((f"--{name}", LATIN) for name in ("model-version", "suite")),
    ],
)
def test_an_argument_that_is_not_utf_8_is_refused_and_nothing_is_written(home: Lab, options: tuple[str, ...]) -> None:
    said = imported(home, [OTHER, ROW], *options, code=2)
    assert "caf\\udce9' is not UTF-8 text" in said
    assert said.count("\n") == 1
    assert not home.home.imported_model_versions.exists()
    assert not home.home.predictions.exists()


def test_a_file_may_have_a_name_that_is_not_utf_8(home: Lab, tmp_path: Path) -> None:
    file = tmp_path / f"{LATIN}.jsonl"
    file.write_text('{"question": "a", "answer": "x"}\n{"question": "b", "answer": "y"}\n')
    said = home.cli("import", "text", str(file), "--suite", "cafe")
    assert said.code == 0, said.text
    assert "cafe" in home.workspace().suites
    file.write_text(json.dumps(ROW) + "\n")
    imported(home, file)
    file.write_text("no\n")
    assert "not a JSON object" in imported(home, file, name="old2", code=2)


@pytest.mark.parametrize("told", [{"model": LATIN}, {"prompt": HALF}, {"sampling": ["stop=" + HALF]}])
def test_options_given_from_python_are_refused_too(told: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected text that UTF-8 can hold"):
        Wanted.of("predictions", (), (), (), told)


def entry(name: str, **more: Any) -> ModelVersion:
    files = {"small": Predictions(file=f"{name}/small.jsonl", content_hash="abc")}
    return ModelVersion(name=name, provider="recorded", predictions=files, **more)


def test_no_file_is_written_that_cannot_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "model_versions.yaml"
    save_imported(path, entry("sound", description="\x00\x1b\x85\ufeff\ufffe é: on"))
    before = path.read_bytes()
    half = Predictions(file="a", content_hash="b", provenance=Provenance.model_construct(model=HALF))
    for wrong in (entry("a", priced_as=HALF), entry("a").model_copy(update={"predictions": {"small": half}})):
        with pytest.raises(EvalError, match=r"model_versions\.yaml: .*nothing was changed"):
            save_imported(path, wrong)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model_versions.yaml"]
    assert list(load_model_versions([path])) == ["sound"]


def test_a_file_that_reads_back_otherwise_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model_versions.yaml"
    monkeypatch.setattr(imported_versions, "_as_written", lambda version: {"name": "other", "provider": "recorded"})
    with pytest.raises(EvalError, match="nothing was changed"):
        save_imported(path, entry("a"))
    assert not path.exists()


SUITES = {
    "text": [{"id": f"a{HALF}", "question": f"q{HALF}", "answer": "x"}, {"question": "q", "answer": "y"}],
    "convfinqa": [
        {
            "id": f"{TALK['id']}{HALF}",
            "doc": {"pre_text": HALF, "post_text": "", "table": {"2020": {f"x{HALF}": "50", "y": "7"}}},
            "dialogue": DIALOGUE | {"conv_questions": [f"what{HALF}?"]},
        }
    ],
    "pandaseval": [TASK | {"prompt": f"import pandas as pd\n# {HALF}\ndef f(df):\n"}],
}


@pytest.mark.parametrize("form", SUITES)
def test_halves_in_data_sets_are_replaced(lab: Lab, tmp_path: Path, form: str) -> None:
    entries = SUITES[form]
    source = tmp_path / ("set.json" if form == "convfinqa" else "set.jsonl")
    source.write_text(json.dumps(entries) if form == "convfinqa" else lines(*entries))
    made = import_suite(lab.workspace(), form, source, "foreign")
    assert made.cases == len(entries)
    assert "\ufffd" in (made.folder / "cases.jsonl").read_text()


def test_whole_pairs_stay_and_nothing_else_changes() -> None:
    read = parsed_json('["\\ud83d\\ude00", "\\ude00", "\\\\ud83d", "\ud83d"]')
    assert read == ["\U0001f600", "\ufffd", "\\ud83d", "\ufffd"]
