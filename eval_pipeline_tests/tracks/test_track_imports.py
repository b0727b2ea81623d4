"""What is loaded to know all columns, to look what is out of date, and for a turn; what tracks name is there."""

import inspect
import subprocess
import sys

import pytest

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.registry import all_tracks
from eval_pipeline_tests.support import DAY, SHIPPED, Lab, python
from eval_pipeline_tests.tracks.sql.helpers import OSLO, shop_lab

LOOK = "; import sys; print(*sys.modules)"
RUN = """
import contextlib, io, sys
from eval_pipeline.cli.app import command_line
with contextlib.redirect_stdout(io.StringIO()):
    assert command_line() == 0
"""
START = "import sys, eval_pipeline.definitions\n"
OURS = "print(*(name for name in sys.modules if name.partition('.')[0] in ('eval_pipeline', 'eval_pipeline_plugins')))"
OF_ONE_TRACK = (
    "pandas",
    ".case_file",
    ".damage",
    ".source",
    ".question",
    ".catalogue.catalogue",
    ".snippet",
    ".sandbox",
)
OF_FILES = (".workbook", ".page", ".charts", ".book")


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        (
            "from eval_pipeline.workspace.tabled.track_tables import track_tables; track_tables()",
            (*OF_ONE_TRACK, ".track", ".prompt", ".failure_mode", ".matching", "eval_pipeline.tracks.capabilities"),
        ),
        (
            "import eval_pipeline.stages.generate, eval_pipeline.stages.score, "
            "eval_pipeline_plugins.tracks.pandas_code.track; "
            "from eval_pipeline.tracks.registry import all_tracks; all_tracks()",
            ("pandas.core.frame",),
        ),
        (
            "import eval_pipeline.chain.evaluation",
            (*OF_FILES, "eval_pipeline.stages.score", "eval_pipeline.statistics"),
        ),
    ],
    ids=["the tables of all tracks", "tracks without pandas", "looking what is out of date"],
)
def test_what_every_evaluation_loads_is_not_what_one_kind_needs(code: str, unwanted: tuple[str, ...]) -> None:
    said = subprocess.run([sys.executable, "-c", code + LOOK], capture_output=True, text=True, check=True)
    loaded = said.stdout.split()
    assert "eval_pipeline.tracks.registry" in loaded
    assert [name for name in loaded if name.endswith(unwanted)] == []


def test_a_turn_of_sql_from_case_to_workbook_loads_no_other_track_and_few_modules(lab: Lab) -> None:
    shop_lab(lab, OSLO)
    lab.versions({"name": "oracle", "provider": "oracle"})
    run = ("run", "--suite", "shop", "--model-version", "oracle", "--eval-date")
    assert lab.cli(*run, str(DAY)).code == 0  # what the next finds of it is no part of the turn, as fingerprints are
    child = python(lab, "-c", RUN + OURS, *run, "2026-03-02")
    assert (lab.home.reports / "shop" / "oracle" / "2026-03-02" / "report.xlsx").exists(), child.stderr
    loaded = child.stdout.split()
    others = [name for name in loaded if name.startswith("eval_pipeline_plugins.tracks.") and name.endswith(".track")]
    assert others == ["eval_pipeline_plugins.tracks.sql.track"]
    assert len(loaded) <= 480
    of_all_tracks = f"import os; os.environ['EVAL_DATA'] = {str(SHIPPED)!r}\n"
    started = python(lab, "-c", of_all_tracks + START + OURS).stdout.split()
    assert "eval_pipeline.definitions" in started
    assert len(started) <= 380, "what Dagster loads at start-up"


@pytest.mark.parametrize("track", all_tracks(), ids=lambda track: track.name)
def test_what_a_track_names_by_its_place_is_there_and_takes_what_it_is_given(track: Track) -> None:
    for name, value in vars(type(track)).items():
        if isinstance(value, Later):
            asked = next(vars(kind)[name] for kind in type(track).__mro__[1:] if name in vars(kind))
            arguments = list(inspect.signature(asked).parameters)[1:]
            keywords = {one: None for one in arguments if one == "recorded"}
            inspect.signature(value.function()).bind(*[None for one in arguments if one not in keywords], **keywords)
    known = {metric.name for metric in track.metrics}
    for metric in track.metrics:
        assert callable(metric.loaded()) and len(set(metric.inputs())) == len(metric.inputs()), metric.name
        assert metric.name not in metric.inputs() and len(known) == len(track.metrics)
