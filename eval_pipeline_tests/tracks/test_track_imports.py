"""Every evaluation asks every track for its tables: what that loads, each of them pays for."""

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
        ("from eval_pipeline.workspace.track_tables import track_tables; track_tables()", OF_ONE_TRACK),
        (
            "import eval_pipeline.stages.generate, eval_pipeline.stages.score, eval_pipeline.tracks.pandas_code.track; "
            "from eval_pipeline.workspace.track_tables import track_tables; track_tables()",
            ("pandas.core.frame",),
        ),
        ("import eval_pipeline.chain.freshness", OF_FILES),
    ],
    ids=["the tables of all tracks", "tracks without pandas", "looking what is out of date"],
)
def test_what_every_evaluation_loads_is_not_what_one_kind_needs(code: str, unwanted: tuple[str, ...]) -> None:
    said = subprocess.run([sys.executable, "-c", code + LOOK], capture_output=True, text=True, check=True)
    loaded = said.stdout.split()
    assert "eval_pipeline.workspace.track_tables" in loaded
    assert [name for name in loaded if name.endswith(unwanted)] == []
