"""A suite with packages of its own: installed by the command, used by answers and reference code."""

from pathlib import Path

import pytest

from eval_pipeline.tracks.pandas_code.runner import MissingPackagesError
from eval_pipeline.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.sandbox.test_layers import wheel
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, needs_sandbox, scores, stall_lab

CASE = {
    "id": "one",
    "tables": "sold",
    "turns": [{"question": "Sum?", "code": "import tinypack\nresult = df.amount.sum() + tinypack.ANSWER"}],
}


@needs_sandbox
def test_packages_are_installed_by_their_command_only(lab: Lab, tmp_path: Path) -> None:
    stall_lab(lab, CASE, packages="packages.txt", timed_runs=1)
    folder = lab.home.data / "suites" / "stall"
    (folder / "packages.txt").write_text(wheel(tmp_path / "wheels"))
    shared = TRACK.read_shared(folder, {"packages": "packages.txt", "timed_runs": 1})
    case = TRACK.read_case(CASE, "stall", "cases.yaml", 1, shared)
    with pytest.raises(MissingPackagesError, match="`eval-pipeline packages install --suite stall` does that"):
        TRACK.check_gold(case)
    for told in ("tinypack==1.0 installed", "tinypack==1.0 were installed before"):
        ran = lab.cli("packages", "install", "--suite", "stall", "--wheels", str(tmp_path / "wheels"))
        assert ran.code == 0 and told in ran.text, ran.text
    assert TRACK.check_gold(case) == []
    found = scores(case, answer("from tinypack import ANSWER\nresult = df['amount'].sum() + ANSWER"), measured=True)
    assert (found["result_match"], found["performance_score"]) == (True, 1.0)
