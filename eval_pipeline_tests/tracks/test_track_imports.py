"""What tracks load, who asks all of them pays for; what is loaded to look what is out of date, each command."""

import subprocess
import sys

import pytest

LOOK = "; import sys; print(*sys.modules)"
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
        ("from eval_pipeline.tracks.registry import all_tracks; all_tracks()", OF_ONE_TRACK),
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
