"""Evaluations for the tests of the reports, made by the real stages from the sample suite."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from eval_pipeline.chain.delivering import figures_of
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.stages.reporting import profile
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.chains import INGESTING, aggregates, ran, ran_of_suite

SUITE = "sample"
DAY = date(2026, 1, 5)
DATA = Path(__file__).parents[2] / "data" / "suites" / "finqa_sample"
HOSTILE_ID = "=1+1/../..\\x y~%☃"
HOSTILE_QUESTION = '=HYPERLINK("http://x.invalid","click") what?'

_RATES = {"execution_error": 0.15, "sign_error": 0.1, "scale_error": 0.1, "wrong_operations": 0.1, "no_answer": 0.05}
_MODELS: list[dict[str, Any]] = [
    {"name": "weak", "provider": "simulated", "options": {"seed": 7, "rates": _RATES, "slope": 0.3}},
    {"name": "priced", "provider": "simulated", "options": {"seed": 8, "rates": _RATES}, "samples_per_turn": 2}
    | {"price": {"input": 3.0, "output": 15.0}},
    {"name": "null", "provider": "null"},
]


@dataclass(frozen=True)
class Made:
    """An evaluation in a home."""

    workspace: Workspace
    partition: Partition

    @property
    def evaluation(self) -> Evaluation:
        track = self.workspace.track(self.partition.suite)
        return Evaluation(self.workspace.record, self.partition, profile(track, figures_of(track)))


def make_home(root: Path, files: int = 14) -> Home:
    """A home with some of the sample's cases and one whose texts mean harm."""
    suite = root / "data" / "suites" / SUITE
    (suite / "cases").mkdir(parents=True)
    header = {"name": SUITE, "version": "3", "track": "finqa", "description": "For tests.", "cases": "cases/*.yaml"}
    (suite / "suite.yaml").write_text(json.dumps(header))
    for path in sorted((DATA / "cases").glob("*.yaml"))[:files]:
        shutil.copy(path, suite / "cases" / path.name)
    (suite / "cases" / "zz_hostile.yaml").write_text(json.dumps(_hostile_case(), ensure_ascii=False))
    (root / "data" / "model_versions.yaml").write_text(json.dumps({"model_versions": _MODELS}))
    return Home(root / "eval", root / "data")


def evaluate(home: Home, model_version: str, scope: Scope | None = None, day: date = DAY) -> Made:
    """Runs every stage up to the aggregates."""
    workspace, run = Workspace(home), RunContext("run-1")
    partition = Partition(SUITE, model_version, day)
    ran_of_suite(workspace, SUITE, *INGESTING)
    stages = ("generations", "recovery_attempts", "evidence", "turn_metrics", *aggregates(workspace, partition))
    ran(workspace, partition, *stages, run=run, scope=scope or Scope())
    return Made(workspace, partition)


def hashes(folder: Path) -> dict[str, str]:
    """Of each file of a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _hostile_case() -> dict[str, Any]:
    return {
        "id": HOSTILE_ID,
        "tags": ["@tag"],
        "document": {"pre_text": "Sales were 10.", "table": [["", "2020"], ["sales", "10"]], "post_text": ""},
        "turns": [
            {"question": HOSTILE_QUESTION, "program": "10", "answer": 10, "printed": "10"},
            {"question": "-2+3 \U0001f600 _x0041_ and half?\nreally?", "program": "divide(10, 2)", "answer": 5},
            {"question": "+" + "long " * 9000, "program": "multiply(10, 2), add(#0, 10)", "answer": 30},
        ],
    }
