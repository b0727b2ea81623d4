"""The tables of tracks that are kept between processes: those that they have, and only while no code has changed."""

import json
from pathlib import Path

import pytest

from eval_pipeline.core.hashing.sealed import read_sealed, write_sealed
from eval_pipeline.workspace.tabled import kept_tables
from eval_pipeline.workspace.tabled.track_tables import _of_track, all_tracks

TABLES = {track.name: _of_track(track) for track in all_tracks()}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tables of all tracks are kept."""
    monkeypatch.setattr(kept_tables, "_PLACE", tmp_path / "tables")
    monkeypatch.setattr(kept_tables, "_extended", lambda: False)
    monkeypatch.setattr(kept_tables, "LOADED_NS", 1 << 63)
    kept_tables.keep_tables(TABLES)
    return tmp_path / "tables"


def test_kept_tables_are_those_that_the_tracks_have(kept: Path) -> None:
    assert kept_tables.kept_tables() == TABLES


def test_tables_count_only_while_no_file_has_changed(kept: Path) -> None:
    found = json.loads(read_sealed(kept) or "")
    states = found["states"]
    assert len(states) > 300 and "../eval_pipeline_plugins/tracks/finqa/metrics/__init__.py" in states
    name = "../eval_pipeline_plugins/tracks/finqa/metrics/__init__.py"
    for changed in (states | {name: [1, 1]}, states | {"gone.py": states[name]}):
        write_sealed(kept, json.dumps(found | {"states": changed}))
        assert kept_tables.kept_tables() == {}


def test_damaged_ones_and_those_beside_packages_that_add_metrics_do_not_count(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = kept.read_text()
    kept.write_text(text.replace("VARCHAR", "BIGINT", 1))
    assert kept_tables.kept_tables() == {}
    kept.write_text(text)
    assert kept_tables.kept_tables() == TABLES
    monkeypatch.setattr(kept_tables, "_extended", lambda: True)
    assert kept_tables.kept_tables() == {}


def test_code_that_was_edited_after_it_was_loaded_is_not_kept(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.unlink()
    newest = max(path.stat().st_ctime_ns for path in Path(kept_tables.__file__).parents[1].rglob("*.py"))
    monkeypatch.setattr(kept_tables, "LOADED_NS", newest - 10**12)
    kept_tables.keep_tables(TABLES)
    assert not kept.exists()
