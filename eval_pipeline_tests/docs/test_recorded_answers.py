"""The commands of the guide to recorded answers run as they are written, and say what it says."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from eval_pipeline.operations.recorded.forms import ALL_LOGS
from eval_pipeline.operations.recorded.rows import FIELD_NAMES
from eval_pipeline_tests.support import SHIPPED, Lab

GUIDE = (Path(__file__).parents[2] / "docs" / "recorded-answers.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def arguments(command: str, folder: Path) -> list[str]:
    """Of a command of the guide, its files in a folder of the test."""
    import shlex

    return [word.replace("/tmp", str(folder)) for word in shlex.split(command.replace("\\\n", " "))][1:]


def test_the_commands_do_what_the_guide_says(lab: Lab, tmp_path: Path) -> None:
    (lab.home.data / "model_versions.yaml").write_text("model_versions: []\n")
    (lab.home.data / "suites").rmdir()
    (lab.home.data / "suites").symlink_to(SHIPPED / "suites")
    rows = re.search(r"<<'END'\n(.*?)^END$", BLOCKS[0], re.MULTILINE | re.DOTALL)
    assert rows
    (tmp_path / "answers.jsonl").write_text(rows[1])
    importing = re.search(r"^eval-pipeline import .*?[^\\]$", BLOCKS[0], re.MULTILINE | re.DOTALL)
    assert importing
    said = lab.cli(*arguments(importing[0], tmp_path))
    assert said.code == 0, said.text
    printed = re.search(r"^```\n(4 of 4.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert printed
    for line in printed[1].splitlines():
        assert line.removesuffix("…").strip() in said.out
    lab.evaluate("finqa_sample", "my-answers", publish=True)
    (query,) = re.findall(r"^```sql\n(.*?);\n```", GUIDE, re.MULTILINE | re.DOTALL)
    assert ("gpt-5", 4) in lab.sql(query)
    if find_spec("inspect_ai") is None:
        pytest.skip("the export needs the extra `inspect`; the rest is as the guide says")
    (export,) = [block for block in BLOCKS if "export inspect" in block]
    said = lab.cli(*arguments(export, tmp_path))
    assert said.code == 0, said.text
    assert (tmp_path / "logs" / "my-answers.eval").is_file()


def test_a_wrong_import_is_taken_out_as_the_guide_says(lab: Lab, tmp_path: Path) -> None:
    lab.suite("finqa_sample")
    lab.versions()
    (block,) = [block for block in BLOCKS if "eval-pipeline remove" in block]
    rows = tmp_path / "rows.jsonl"
    importing = ("import", "predictions", str(rows), "--suite", "finqa_sample", "--model-version", "my-answers")
    for answer in ("1", "50"):
        rows.write_text(json.dumps({"case_id": "alpha", "turn_index": 0, "answer": answer}) + "\n")
        said = lab.cli(*importing)
        assert said.code == 0, said.text
        for line in block.splitlines():
            said = lab.cli(*arguments(line.partition("#")[0], tmp_path))
            assert said.code == 0, said.text
        assert "my-answers" not in lab.workspace().model_versions


def test_every_field_and_command_is_in_the_guide() -> None:
    fields = GUIDE.partition("## Rows")[2].partition("\n## ")[0]
    assert {name for name in FIELD_NAMES if f"`{name}`" not in fields} == set()
    assert {name for name in ("predictions", "log", "inspect") if f"eval-pipeline import {name}" not in GUIDE} == set()
    logs = GUIDE.partition("## From any log to a suite")[2].partition("\n## ")[0]
    assert {name for name in ALL_LOGS.names() if f"`{name}`" not in logs} == set()
