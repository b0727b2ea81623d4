r"""Halves of surrogate pairs (`"\ud83d"`, or bytes of an argument that are not UTF-8) leave every home readable.

In files of others they become U+FFFD; in arguments they are refused, and nothing is written.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.core.foreign import parsed_json
from eval_pipeline.core.model_versions import ModelVersion, Predictions
from eval_pipeline.core.provenance import Provenance
from eval_pipeline.operations.importing import import_suite
from eval_pipeline.operations.recorded.wanted import Wanted
from eval_pipeline.providers import imported_versions
from eval_pipeline.providers.imported_versions import save_imported
from eval_pipeline.providers.model_versions import load_model_versions
from eval_pipeline_tests.support import Lab

HALF = "\ud83d"
LATIN = os.fsdecode(b"caf\xe9")
LINE = {"case_id": "alpha", "turn_index": 0, "answer": "50"}
FIELDS = ("model", "prompt", "prompt_version", "history", "tool", "stop_reason", "unit", "reason", "confidence")


@pytest.fixture
def home(lab: Lab) -> Lab:
    lab.suite()
    lab.versions()
    return lab


def imported(lab: Lab, row: Mapping[str, Any], *options: str) -> Any:
    file = lab.home.root.parent / "rows.jsonl"
    file.write_text(json.dumps(LINE | {"turn_index": 1}) + "\n" + json.dumps(row) + "\n")
    return lab.cli("import", "predictions", str(file), "--suite", "small", "--model-version", "old", *options)


@pytest.mark.parametrize("name", FIELDS)
def test_a_half_in_any_field_is_replaced_and_the_home_stays_usable(home: Lab, name: str) -> None:
    said = imported(home, LINE | {name: f"cut {HALF}"})
    assert said.code == 0, said.text
    written = home.home.imported_model_versions.read_text()
    assert home.workspace().model_versions["old"].provider == "recorded", written
    assert "\\uD83D" not in written


@pytest.mark.parametrize("name", ["sampling", "response"])
def test_halves_within_values_and_names_are_replaced(home: Lab, name: str) -> None:
    row = {"case_id": "alpha", "turn_index": 0, name: {f"a{HALF}": [f"b{HALF}"]}}
    assert imported(home, row).code == 0
    assert "old" in home.workspace().model_versions


@pytest.mark.parametrize("row", [{"response": f"{HALF} cut"}, {"answer": f"about {HALF}"}, {"error": f"boom {HALF}"}])
def test_an_answer_cut_inside_an_emoji_is_imported_and_scored(home: Lab, row: dict[str, str]) -> None:
    said = imported(home, {"case_id": "alpha", "turn_index": 0} | row)
    assert said.code == 0, said.text
    assert "\ufffd" in said.text
    home.evaluate(version="old")


def test_an_unknown_name_and_an_unknown_case_are_clear_sentences(home: Lab) -> None:
    said = imported(home, LINE | {f"foo{HALF}": 1})
    assert (said.code, "foo\ufffd: unknown field" in said.text) == (2, True), said.text
    said = imported(home, LINE | {"case_id": f"alpha {HALF}"})
    assert (said.code, "the suite has no case 'alpha \ufffd'" in said.text) == (2, True), said.text


@pytest.mark.parametrize(
    "options",
    [
        ("--model", LATIN),
        (f"--model={LATIN}",),
        ("--prompt-version", LATIN),
        ("--tool", LATIN),
        ("--history", LATIN),
        ("--sampling", f"stop={LATIN}"),
        ("--priced-as", LATIN),
        ("--model-version", LATIN),
        ("--suite", LATIN),
        ("--prompt-file", LATIN),
    ],
)
def test_an_argument_that_is_not_utf_8_is_refused_and_nothing_is_written(home: Lab, options: tuple[str, ...]) -> None:
    said = imported(home, LINE, *options)
    assert said.code == 2
    assert "caf\\udce9' is not UTF-8 text" in said.text
    assert said.text.count("\n") == 1
    assert not home.home.imported_model_versions.exists()
    assert not home.home.predictions.exists()


def test_a_file_may_have_a_name_that_is_not_utf_8(home: Lab, tmp_path: Path) -> None:
    file = tmp_path / f"{LATIN}.jsonl"
    file.write_text('{"question": "a", "answer": "x"}\n{"question": "b", "answer": "y"}\n')
    said = home.cli("import", "text", str(file), "--suite", "cafe")
    assert said.code == 0, said.text
    assert "cafe" in home.workspace().suites
    file.write_text(json.dumps(LINE) + "\n")
    said = home.cli("import", "predictions", str(file), "--suite", "small", "--model-version", "old")
    assert said.code == 0, said.text
    file.write_text("no\n")
    said = home.cli("import", "predictions", str(file), "--suite", "small", "--model-version", "old2")
    assert said.code == 2
    assert "not a JSON object" in said.text


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
    "text": ([{"id": f"a{HALF}", "question": f"q{HALF}", "answer": "x"}, {"question": "q", "answer": "y"}], ()),
    "convfinqa": (
        [
            {
                "id": f"Single_A/2020/page_1.pdf-1{HALF}",
                "doc": {"pre_text": HALF, "post_text": "", "table": {"2020": {f"x{HALF}": "50", "y": "7"}}},
                "dialogue": {
                    "conv_questions": [f"what{HALF}?"],
                    "conv_answers": ["57"],
                    "turn_program": ["add(50, 7)"],
                    "executed_answers": [57.0],
                },
            }
        ],
        (),
    ),
    "pandaseval": (
        [
            {
                "task_id": "PandasEval/0",
                "prompt": f"import pandas as pd\n# {HALF}\ndef f(df):\n",
                "entry_point": "f",
                "canonical_solution": ["    return df"],
                "test": "def check(candidate):\n    assert True\n",
            }
        ],
        (),
    ),
}


@pytest.mark.parametrize("form", SUITES)
def test_halves_in_data_sets_are_replaced(lab: Lab, tmp_path: Path, form: str) -> None:
    entries, further = SUITES[form]
    source = tmp_path / ("set.json" if form == "convfinqa" else "set.jsonl")
    listed = json.dumps(entries) if form == "convfinqa" else "".join(json.dumps(one) + "\n" for one in entries)
    source.write_text(listed)
    made = import_suite(lab.workspace(), form, source, "foreign", None, further)
    assert made.cases == len(entries)
    assert "\ufffd" in (made.folder / "cases.jsonl").read_text()


def test_whole_pairs_stay_and_nothing_else_changes() -> None:
    assert parsed_json('["\\ud83d\\ude00", "\\ude00", "\\\\ud83d", "\ud83d"]') == [
        "\U0001f600",
        "\ufffd",
        "\\ud83d",
        "\ufffd",
    ]
