"""What a change of the code does to figures on record: somebody changes a tolerance without a word."""

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from eval_pipeline.cli.evaluating.demo import START
from eval_pipeline.fingerprints import libraries
from eval_pipeline.workspace import workspace
from eval_pipeline_tests.support import ROOT, WIDE, Lab, case, copied_product

MATCHING = "eval_pipeline_plugins/tracks/finqa/programs/matching.py"
DAY = ("--eval-date", "2026-03-01")
CASES = [case(f"c{number:02d}", ("add(50, 1)", 51.0), ("subtract(50, 1)", 49.0)) for number in range(20)]
ANSWERS = [
    {"case_id": found["id"], "turn_index": index, "answer": answer}
    for found in CASES
    for index, answer in enumerate((51, 50 if found["id"] < "c10" else 49))  # 50 is 2% beside 49
]


class Installed:
    """A copy of the project's code, as a user has it installed, that a test may change."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self.folder, self._lab = folder, lab
        copied_product(folder)

    def change(self, file: str, old: str, new: str) -> None:
        """Changes a line of the code, and no version."""
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """`eval-pipeline` of this copy."""
        environment = os.environ | self._lab.environment | {"COLUMNS": str(WIDE), "PYTHONPATH": f"{self.folder}:{ROOT}"}
        command = [sys.executable, "-c", START, *arguments]
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def installed(tmp_path: Path, lab: Lab) -> Installed:
    return Installed(tmp_path / "installed", lab)


@pytest.fixture
def lab_with_twins(lab: Lab, installed: Installed, module_folder: Path) -> Lab:
    """Two model versions with the same answers, of which the installed code has evaluated the first."""

    def make(home: Lab) -> None:
        home.suite(cases=CASES)
        answers = home.home.data / "answers.jsonl"
        answers.write_text("\n".join(map(json.dumps, ANSWERS)))
        for name in ("one", "twin"):
            given = ("--suite", "small", "--model-version", name)
            assert home.cli("import", "predictions", str(answers), *given).code == 0
        assert evaluated(installed, "one").returncode == 0

    return lab.made_once(module_folder / "evaluated", make)


def evaluated(installed: Installed, name: str) -> "subprocess.CompletedProcess[str]":
    return installed.run("run", "--no-report", "--model-version", name, *DAY)


def accuracy(lab: Lab, name: str, table: str = "statistics") -> float:
    found: float = lab.one(
        f"SELECT mean FROM {table} WHERE model_version = '{name}' AND metric = 'correct' AND split = 'all'"
    )
    return found


def test_a_changed_tolerance_is_never_silently_compared(installed: Installed, lab_with_twins: Lab) -> None:
    lab = lab_with_twins
    before = accuracy(lab, "one")
    calls = lab.one("SELECT count(*) FROM attempts")
    installed.change(MATCHING, "RELATIVE = 0.01", "RELATIVE = 0.5")

    assert evaluated(installed, "twin").returncode == 0
    assert (accuracy(lab, "twin"), before) == (1.0, 0.75)
    assert accuracy(lab, "twin") > before == accuracy(lab, "one"), "the twin was scored by the new code only"
    versions = lab.sql("SELECT DISTINCT model_version, scorer_version FROM metrics WHERE metric = 'numerical_match'")
    assert len({version for _, version in versions}) == 2
    compared = installed.run("compare", "one", "twin")
    assert compared.returncode == 1
    assert "not compared: they were not scored by the same code" in compared.stdout
    assert "`eval-pipeline rescore --suite small --model-version one --model-version twin" in compared.stdout
    assert "accuracy" not in compared.stdout and "better" not in compared.stdout
    assert lab.sql("SELECT verdict, difference FROM model_comparisons") == [(None, None)]

    assert accuracy(lab, "one") == before
    done = installed.run("rescore")
    assert done.returncode == 0, done.stdout + done.stderr
    assert accuracy(lab, "one") == accuracy(lab, "twin")
    assert accuracy(lab, "one", "superseded_statistics") == before
    assert lab.one("SELECT count(*) FROM attempts") == 2 * calls
    same = installed.run("compare", "one", "twin")
    assert same.returncode == 0 and "not significant" in same.stdout


def test_a_run_after_the_change_scores_again_and_asks_nobody(installed: Installed, lab_with_twins: Lab) -> None:
    before = accuracy(lab_with_twins, "one")
    installed.change(MATCHING, "RELATIVE = 0.01", "RELATIVE = 0.5")
    evaluated(installed, "one")
    assert accuracy(lab_with_twins, "one") > before
    ran = lab_with_twins.sql("SELECT calls FROM runs ORDER BY started_at")
    assert [calls for (calls,) in ran][1:] == [0]


def test_what_changes_no_figure_changes_nothing(installed: Installed, lab_with_twins: Lab) -> None:
    files = lab_with_twins.record_files()
    installed.change(MATCHING, "RELATIVE = 0.01", "# a remark\nNOBODY_READS_THIS = 7\nRELATIVE = 0.01")
    assert evaluated(installed, "one").returncode == 0
    assert lab_with_twins.record_files() == files
    assert "0 of 1 evaluation," in installed.run("rescore").stderr


@pytest.mark.always
def test_another_version_of_a_library_is_told_with_its_cost_and_followed_when_asked_for(
    lab_with_twins: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("run", "--no-report", "--model-version", "one", *DAY)
    files = lab_with_twins.record_files()
    monkeypatch.setattr(libraries, "_version", lambda distribution: "99.0")
    # those of this process have looked at the versions before, and must not be asked by other tests after this one
    monkeypatch.setattr(workspace, "_fingerprints", lru_cache(workspace._fingerprints.__wrapped__))
    told = lab_with_twins.cli(*run)
    assert told.code == 0
    assert "numpy" in told.err and "(now 99.0)" in told.err
    assert "eval-pipeline rescore --suite small --model-version one --eval-date 2026-03-01" in told.err
    assert "40 turns, and asks no model" in told.err
    assert lab_with_twins.record_files() == files
    assert "1 of 1 evaluation," in lab_with_twins.cli("rescore").err
    assert lab_with_twins.record_files() != files
    assert "99.0" not in lab_with_twins.cli(*run).err
