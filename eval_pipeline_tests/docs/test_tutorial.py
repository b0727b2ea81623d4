"""Every command of the tutorial runs as it is written, but for those that set the project up, and does what it says."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from eval_pipeline.cli.evaluating.demo import START
from eval_pipeline.providers.model_versions import load_model_versions

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)
ENTRIES = re.findall(r"^```yaml\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_the_commands_give_two_reports_and_their_comparison(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data", ignore=shutil.ignore_patterns("*_sample"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "eval-pipeline").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{START}" "$@"\n')
    (tmp_path / "bin" / "eval-pipeline").chmod(0o755)
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    script = "set -euo pipefail\ntrap 'kill -9 $(jobs -p)' EXIT\n" + "".join(BLOCKS[1:])
    for port in ("8761", "8762"):
        script = script.replace(port, str(free_port()))
    script = script.replace("/tmp/my_app.py", str(tmp_path / "my_app.py"))
    environment = os.environ | {
        "EVAL_HOME": str(tmp_path / "home"),
        "EVAL_DATA": str(tmp_path / "data"),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "200",
    }
    done = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "my-app-1" in done.stdout
    assert "my-app-1  40%" in done.stdout, "two of five turns are right at first"
    assert "my-app-2  80%" in done.stdout, "four of five are right then"
    assert "not significant" in done.stdout
    reports = tmp_path / "home" / "reports"
    assert len(list(reports.glob("my_pages/my-app-*/*/report.html"))) == 2
    assert len(list(reports.glob("compare/my_pages/*/report.html"))) == 1


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: yaml.safe_load(entry)[0]["name"])
def test_entries_of_real_models_are_sound(entry: str, tmp_path: Path) -> None:
    file = tmp_path / "model_versions.yaml"
    file.write_text("model_versions:\n" + entry)
    assert len(load_model_versions([file])) == 1
